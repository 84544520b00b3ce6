package httptool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/toolcrib/toolcrib/tools"
)

// ResponseMode says what becomes of the response schemas of a document.
type ResponseMode string

// The ResponseMode values.
const (
	// ResponsesShown describes results by the document's schemas, and
	// accepts any result: a document that does not tell the truth about its
	// API must not turn a call that succeeded into a failure.
	ResponsesShown ResponseMode = ""
	// ResponsesChecked makes a result that breaks the document's schema an
	// error, for an API whose document can be relied upon.
	ResponsesChecked ResponseMode = "checked"
	// ResponsesOmitted leaves the results undescribed.
	ResponsesOmitted ResponseMode = "omitted"
)

// OpenAPIConfig describes an API by its OpenAPI 3 or Swagger 2.0 document.
type OpenAPIConfig struct {
	// Name identifies the source, and begins the names of its tools.
	Name string
	// Document is the path or URL of the document, in JSON or YAML.
	Document string
	// Content is the document itself, if it need not be read; Document, which
	// may then be empty, names it and resolves what is relative in it.
	Content []byte
	// ServerURL replaces every server that the document names.
	ServerURL string
	// ServerVariables are values for the variables of the document's servers;
	// a variable that is not here has its default.
	ServerVariables map[string]string
	// Auth is the credential of every operation for which Auths has none, or
	// nil.
	Auth *Auth
	// Auths are credentials by the names of the document's security schemes.
	// An operation carries those of the first of its security requirements
	// that is covered. The kind may be empty, and the place of a key too: the
	// document says them.
	Auths map[string]*Auth
	// Headers are sent with every request, and hide parameters of the same
	// name. Errors do not show their values.
	Headers map[string]string
	// Include and Exclude select operations. A pattern is matched against the
	// operationId, the tool's name, and "METHOD /path"; "*" stands for any
	// text; "tag:NAME" matches a tag. Without Include all are taken; what
	// Exclude matches is not.
	Include, Exclude []string
	// Prefix begins the tools' names: "" means Name and an underscore, "none"
	// nothing, and any other text itself.
	Prefix string
	// Policy is the reliability shell of every tool.
	Policy tools.ToolPolicy
	// Responses says what becomes of response schemas.
	Responses ResponseMode
	// Network says how document and API are reached.
	Network Network
	// Options are laid over every tool.
	Options []tools.DescriptorOption
}

// OpenAPI is the tools.ToolProvider of one API. It is safe for concurrent use.
type OpenAPI struct {
	cfg    OpenAPIConfig
	server *url.URL
	caller *caller

	leftOut
}

// NewOpenAPI checks the configuration and returns the source. The document is
// read by Discover.
func NewOpenAPI(cfg OpenAPIConfig) (*OpenAPI, error) {
	s := &OpenAPI{cfg: cfg}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("openapi %q: %w", cfg.Name, err)
	}
	s.cfg.Headers = maps.Clone(cfg.Headers)
	s.caller = newCaller(cfg.Network)
	s.nameConfigured(s.caller)
	return s, nil
}

// nameConfigured tells a caller which hosts the configuration names.
func (s *OpenAPI) nameConfigured(c *caller) {
	if s.server != nil {
		c.name(s.server)
	}
	if u, isURL, err := webLocation(s.cfg.Document); err == nil && isURL {
		c.name(u)
	}
}

func (s *OpenAPI) check() error {
	switch {
	case s.cfg.Name == "":
		return errors.New("name is missing")
	case s.cfg.Document == "" && s.cfg.Content == nil:
		return errors.New("document is missing: expected a file or URL")
	}
	if !slices.Contains([]ResponseMode{ResponsesShown, ResponsesChecked, ResponsesOmitted}, s.cfg.Responses) {
		return fmt.Errorf("unknown response mode %q: expected checked or omitted", s.cfg.Responses)
	}
	if err := checkHeaders(s.cfg.Headers); err != nil {
		return err
	}
	if s.cfg.Auth != nil {
		if err := completed(s.cfg.Auth, Auth{Header: "X-API-Key"}).Check(); err != nil {
			return err
		}
	}
	for name, auth := range s.cfg.Auths {
		if auth == nil {
			return fmt.Errorf("auths: %s has no credential", name)
		}
		// What is missing is found in the document later.
		if err := completed(auth, Auth{Kind: AuthAPIKey, Header: "X-API-Key"}).Check(); err != nil {
			return fmt.Errorf("auths: %s: %w", name, err)
		}
	}
	return s.checkURLs()
}

func (s *OpenAPI) checkURLs() error {
	u, isURL, err := webLocation(s.cfg.Document)
	if err != nil {
		return err
	}
	if isURL && s.cfg.Content == nil {
		if err := checkTarget(u, s.cfg.Network.AllowPrivate); err != nil {
			return fmt.Errorf("document: %w", err)
		}
	}
	if s.cfg.ServerURL == "" {
		return nil
	}
	if s.server, err = parseServer(s.cfg.ServerURL); err != nil {
		return err
	}
	if err := checkTarget(s.server, s.cfg.Network.AllowPrivate); err != nil {
		return fmt.Errorf("server_url: %w", err)
	}
	return nil
}

func checkHeaders(headers map[string]string) error {
	for name, value := range headers {
		if !httpguts.ValidHeaderFieldName(name) {
			return fmt.Errorf("headers: %q is not a header name", name)
		}
		if !httpguts.ValidHeaderFieldValue(value) {
			return fmt.Errorf("headers: the value of %s holds a line break or another control character", name)
		}
	}
	return nil
}

// SourceID is "openapi:" and the name.
func (s *OpenAPI) SourceID() tools.ToolSourceID { return tools.ToolSourceID("openapi:" + s.cfg.Name) }

// Connect does nothing: a document is read by Discover.
func (s *OpenAPI) Connect(context.Context) error { return nil }

// Close releases idle connections.
func (s *OpenAPI) Close(context.Context) error {
	s.caller.close()
	return nil
}

// Discover reads the document and returns a tool for each operation that can
// be called. The error is a *DocumentError when the document as a whole cannot
// be used; an operation that cannot be is left out alone, and Refused says why.
func (s *OpenAPI) Discover(ctx context.Context) ([]tools.ToolDescriptor, error) {
	list, refused, _, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	s.keepRefused(refused)
	return list, nil
}

// Check reads the document and reports every fault in it, such as a $ref that
// leads nowhere, as joined *DocumentErrors. What the document may say and this
// package does not support is no fault.
func (s *OpenAPI) Check(ctx context.Context) error {
	_, refused, problems, err := s.read(ctx)
	if err != nil {
		return err
	}
	return errors.Join(distinct(append(problems, faults(refused)...))...)
}

// distinct drops errors that say the same: one broken schema breaks many
// operations.
func distinct(list []error) []error {
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(err error) bool {
		if seen[err.Error()] {
			return true
		}
		seen[err.Error()] = true
		return false
	})
}

func (s *OpenAPI) read(ctx context.Context) (list []tools.ToolDescriptor, refused []tools.Refusal, problems []error, err error) {
	lib := newLibrary(ctx, s.caller)
	lib.values = s.cfg.ServerVariables
	defer lib.close()
	if err := lib.open(or(s.cfg.Document, s.cfg.Name), s.cfg.Content); err != nil {
		return nil, nil, nil, err
	}
	if err := lib.root.checkVersion(); err != nil {
		return nil, nil, nil, err
	}
	r := &reader{OpenAPI: s, lib: lib, requests: newSchemas(lib, false), responses: newSchemas(lib, true)}
	if err := r.security(); err != nil {
		return nil, nil, nil, err
	}
	ops, refused := lib.operations()
	names := s.names(ops)
	s.noteUnmatched(ops, names)
	for i := range ops {
		if !s.selected(&ops[i], names[i]) {
			continue
		}
		d, err := r.tool(&ops[i], names[i])
		if err != nil {
			refused = append(refused, tools.Refusal{Name: names[i], Err: err})
			continue
		}
		list = append(list, d)
	}
	slices.SortStableFunc(list, func(a, b tools.ToolDescriptor) int { return cmp.Compare(a.Tool.Name, b.Tool.Name) })
	return list, refused, r.problems, nil
}

// names gives each operation its canonical name. Characters that are not
// allowed become underscores; where two operations would share a name, or one
// is too long, a hash of the original sets them apart, and a repeated
// operationId is followed by method and path.
func (s *OpenAPI) names(ops []operation) []string {
	prefix := namePrefix(s.cfg.Prefix, s.cfg.Name)
	plain, ids := map[string]int{}, map[string]int{}
	source := make([]string, len(ops))
	for i := range ops {
		source[i] = ops[i].sourceName()
		ids[source[i]]++
	}
	for id := range ids {
		plain[nameText(id)]++
	}
	names := make([]string, len(ops))
	taken := map[string]bool{}
	for i := range ops {
		id := source[i]
		if ids[id] > 1 {
			id += "_" + ops[i].derivedName()
		} else if short := nameText(id); short != "" && plain[short] == 1 {
			id = short
		}
		names[i] = tools.CanonicalName(prefix, id)
		for n := 2; taken[names[i]]; n++ {
			names[i] = tools.CanonicalName(prefix, fmt.Sprintf("%s %d", id, n))
		}
		taken[names[i]] = true
	}
	return names
}

// namePrefix is what the names of a source's tools begin with.
func namePrefix(configured, source string) string {
	switch configured {
	case "":
		return nameText(source) + "_"
	case "none":
		return ""
	}
	return configured
}

// sourceName is the operation's name in the document.
func (o *operation) sourceName() string { return or(o.id(), o.derivedName()) }

func (s *OpenAPI) selected(o *operation, name string) bool {
	return selected(s.cfg.Include, s.cfg.Exclude, o.tags(), o.sourceName(), name, o.label())
}

func (s *OpenAPI) noteUnmatched(ops []operation, names []string) {
	s.keepUnmatched(slices.DeleteFunc(slices.Clone(s.cfg.Include), func(pattern string) bool {
		for i := range ops {
			if selected([]string{pattern}, nil, ops[i].tags(), ops[i].sourceName(), names[i], ops[i].label()) {
				return true
			}
		}
		return false
	}))
}

// selected reports whether the patterns choose a tool with these tags and
// names.
func selected(include, exclude, tags []string, names ...string) bool {
	matches := func(pattern string) bool {
		if tag, ok := strings.CutPrefix(pattern, "tag:"); ok {
			return slices.Contains(tags, tag)
		}
		return slices.ContainsFunc(names, func(name string) bool { return glob(pattern, name) })
	}
	if len(include) > 0 && !slices.ContainsFunc(include, matches) {
		return false
	}
	return !slices.ContainsFunc(exclude, matches)
}

// glob matches a pattern in which "*" stands for any text.
func glob(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == s
	}
	if !strings.HasPrefix(s, parts[0]) {
		return false
	}
	s = s[len(parts[0]):]
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return strings.HasSuffix(s, last)
}
