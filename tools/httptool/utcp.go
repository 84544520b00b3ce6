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

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// UTCPConfig describes an API by its UTCP manual.
type UTCPConfig struct {
	// Name identifies the source, and begins the names of its tools.
	Name string
	// Manual is the path or URL of the manual, in JSON or YAML: one whose
	// tools have a tool_call_template, or the older tool_provider. It may also
	// be a list of such templates or providers, whose manuals are then read
	// from their addresses.
	Manual string
	// Content is the manual itself, if it need not be read; Manual, which may
	// then be empty, names it.
	Content []byte
	// ServerURL replaces scheme and host of every tool's URL, and stands
	// before its path.
	ServerURL string
	// Auth is the credential of every tool, in place of what the manual says.
	// A key without a place goes where the manual has its own. A tool whose
	// credential is a variable, or one for OAuth, needs it.
	Auth *Auth
	// Headers are sent with every request. Errors do not show their values.
	Headers map[string]string
	// Include and Exclude select tools. A pattern is matched against the name
	// in the manual and the tool's name; "*" stands for any text; "tag:NAME"
	// matches a tag.
	Include, Exclude []string
	// Prefix begins the tools' names: "" means Name and an underscore, "none"
	// nothing, and any other text itself.
	Prefix string
	// AllowText admits tools that answer with a text of the manual, or with a
	// file in its folder. They are refused otherwise.
	AllowText bool
	// Policy is the reliability shell of every tool.
	Policy tools.ToolPolicy
	// Responses says what becomes of the schemas of outputs.
	Responses ResponseMode
	// Network says how manual and tools are reached.
	Network Network
	// Options are laid over every tool.
	Options []tools.DescriptorOption
}

// UTCP is the tools.ToolProvider of one manual. It is safe for concurrent use.
type UTCP struct {
	cfg    UTCPConfig
	server *url.URL
	caller *caller

	leftOut
}

// NewUTCP checks the configuration and returns the source. The manual is read
// by Discover.
func NewUTCP(cfg UTCPConfig) (*UTCP, error) {
	// What the two sources have in common is checked in one place.
	same := &OpenAPI{cfg: OpenAPIConfig{Name: cfg.Name, Document: or(cfg.Manual, cfg.Name), Content: cfg.Content, ServerURL: cfg.ServerURL,
		Auth: cfg.Auth, Headers: cfg.Headers, Responses: cfg.Responses, Network: cfg.Network}}
	err := same.check()
	if cfg.Name != "" && cfg.Manual == "" && cfg.Content == nil {
		err = errors.New("manual is missing: expected a file or URL")
	}
	if err != nil {
		return nil, fmt.Errorf("utcp %q: %w", cfg.Name, err)
	}
	cfg.Headers = maps.Clone(cfg.Headers)
	s := &UTCP{cfg: cfg, server: same.server, caller: newCaller(cfg.Network)}
	same.nameConfigured(s.caller)
	return s, nil
}

// SourceID is "utcp:" and the name.
func (s *UTCP) SourceID() tools.ToolSourceID { return tools.ToolSourceID("utcp:" + s.cfg.Name) }

// Connect does nothing: a manual is read by Discover.
func (s *UTCP) Connect(context.Context) error { return nil }

// Close releases idle connections.
func (s *UTCP) Close(context.Context) error {
	s.caller.close()
	return nil
}

// Discover reads the manual and returns its tools. The error is a
// *DocumentError when the manual as a whole cannot be used; a tool that cannot
// be is left out alone, and Refused says why.
func (s *UTCP) Discover(ctx context.Context) ([]tools.ToolDescriptor, error) {
	m, err := s.read(ctx, false)
	if err != nil {
		return nil, err
	}
	s.keepRefused(m.refused)
	s.keepUnmatched(m.unmatched())
	return m.list, nil
}

// Check reads the manual and reports every fault in it, as joined
// *DocumentErrors. What a manual may say and this package does not admit is no
// fault. The manuals of a list are read only where they are files.
func (s *UTCP) Check(ctx context.Context) error {
	m, err := s.read(ctx, true)
	if err != nil {
		return err
	}
	return errors.Join(faults(m.refused)...)
}

// faults returns why tools were refused, but for the limits of this package.
func faults(refused []tools.Refusal) []error {
	var list []error
	for _, r := range refused {
		var limit unsupportedError
		if !errors.As(r.Err, &limit) {
			list = append(list, r.Err)
		}
	}
	return list
}

func (s *UTCP) read(ctx context.Context, local bool) (*manualReader, error) {
	lib := newLibrary(ctx, s.caller)
	defer lib.close()
	if err := lib.open(or(s.cfg.Manual, s.cfg.Name), s.cfg.Content); err != nil {
		return nil, err
	}
	m := &manualReader{UTCP: s, lib: lib, local: local, taken: map[string]bool{}, matched: map[string]bool{}}
	if err := m.read(lib.root.root()); err != nil {
		return nil, err
	}
	slices.SortStableFunc(m.list, func(a, b tools.ToolDescriptor) int { return cmp.Compare(a.Tool.Name, b.Tool.Name) })
	return m, nil
}

// A manualReader turns the tools of manuals into tools of a catalog.
type manualReader struct {
	*UTCP
	lib     *library
	local   bool // manuals that are not files are passed over
	list    []tools.ToolDescriptor
	refused []tools.Refusal
	taken   map[string]bool
	matched map[string]bool // patterns of Include
}

// unmatched returns the patterns of Include that no tool has matched.
func (m *manualReader) unmatched() []string {
	return slices.DeleteFunc(slices.Clone(m.cfg.Include), func(pattern string) bool { return m.matched[pattern] })
}

// selects reports whether the patterns choose a tool with these tags and names,
// and notes which ones do.
func (m *manualReader) selects(tags []string, names ...string) bool {
	for _, pattern := range m.cfg.Include {
		if selected([]string{pattern}, nil, tags, names...) {
			m.matched[pattern] = true
		}
	}
	return selected(m.cfg.Include, m.cfg.Exclude, tags, names...)
}

// providerKeys are the members of a document that list providers, of which the
// manuals are read in turn.
var providerKeys = []string{"manual_call_templates", "providers"}

// read reads a manual, or a list of providers.
func (m *manualReader) read(root node) error {
	if root.kind() == rawjson.KindArray {
		m.providers(root)
		return nil
	}
	if root.kind() != rawjson.KindObject {
		return &DocumentError{Document: m.lib.root.name, Message: "expected a UTCP manual, an object in JSON or YAML"}
	}
	for _, key := range providerKeys {
		if list := root.child(key); list.kind() == rawjson.KindArray && !root.child("tools").ok() {
			m.providers(list)
			return nil
		}
	}
	switch list := root.child("tools"); {
	case list.kind() == rawjson.KindArray:
		m.entries(list, "", common(root))
		return nil
	case list.ok():
		return list.errorf("tools is not a list")
	case root.child("openapi").ok() || root.child("swagger").ok():
		return root.errorf("this is an OpenAPI document and no UTCP manual: add it as an OpenAPI source")
	}
	return root.errorf(`the member "tools" is missing: expected a UTCP manual`)
}

// common returns what a manual says once of how its tools are called, for
// tools that do not say it themselves.
func common(root node) node {
	for _, key := range templateKeys {
		if n := root.child(key); n.kind() == rawjson.KindObject {
			return n
		}
	}
	return node{}
}

// templateKeys are the members of a tool that say how it is called, the newer
// one first.
var templateKeys = []string{"tool_call_template", "tool_provider", "provider"}

func (m *manualReader) entries(list node, space string, shared node) {
	for _, n := range list.elements {
		if err := m.add(n, space, shared); err != nil {
			m.refused = append(m.refused, tools.Refusal{Name: or(n.text("name"), n.pointer), Err: err})
		}
	}
}

// providers reads the manual of each provider. One that cannot be read is
// refused alone.
func (m *manualReader) providers(list node) {
	for _, p := range list.elements {
		name := p.text("name")
		if err := m.provider(p, name); err != nil {
			m.refused = append(m.refused, tools.Refusal{Name: or(name, p.pointer), Err: err})
		}
	}
}

func (m *manualReader) provider(p node, name string) error {
	location := p.text("url")
	switch kind := templateKind(p); {
	case kind == "text" && p.text("file_path") != "":
		location = p.text("file_path")
	case kind != "http":
		return unsupported(p.errorf("manuals over %s are not read: expected http", or(kind, "an unknown transport")))
	case strings.ToUpper(or(p.text("http_method"), "GET")) != "GET":
		return unsupported(p.errorf("the manual is not read by a GET"))
	case m.local && kind == "http":
		return nil
	}
	doc, err := m.manual(p, location)
	if err != nil {
		return p.errorf("its manual cannot be read: %v", err)
	}
	root := doc.root()
	if root.child("tools").kind() != rawjson.KindArray {
		return root.errorf(`the member "tools" is missing: expected a UTCP manual`)
	}
	m.entries(root.child("tools"), name, common(root))
	return nil
}

// manual returns the manual that a provider names: a file in the folder of the
// list, or a URL. A list that came from the network names only its own origin.
func (m *manualReader) manual(p node, location string) (*document, error) {
	u, isURL, err := webLocation(location)
	if err != nil {
		return nil, err
	}
	if !isURL || m.lib.root.base != nil {
		return m.lib.related(p.doc, location)
	}
	content, err := m.lib.fetch(u)
	if err != nil {
		return nil, err
	}
	doc := &document{name: shownLocation(location), base: u}
	return doc, m.lib.add(doc, content)
}
