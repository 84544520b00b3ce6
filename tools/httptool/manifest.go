package httptool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"golang.org/x/net/http/httpguts"

	"github.com/toolcrib/toolcrib/schema"
	"github.com/toolcrib/toolcrib/tools"
)

// ManifestConfig describes HTTP endpoints by a manifest file.
type ManifestConfig struct {
	// Name identifies the source. Empty means File.
	Name string
	// File is the path of the manifest.
	File string
	// Content is the manifest itself, if it need not be read; File then only
	// names it in errors.
	Content []byte
	// Secret resolves a reference of the manifest, "${NAME}" or "file:PATH".
	// It is called once when the manifest is read, so that a missing secret
	// is found at once, and again for every request. Nil reads the
	// environment and files. Its error must not quote a secret.
	Secret func(ref string) (string, error)
	// Policy is the reliability shell of tools that do not state one.
	Policy tools.ToolPolicy
	// Network says how the endpoints are reached.
	Network Network
	// Options are laid over every tool.
	Options []tools.DescriptorOption
}

// Manifest is the tools.ToolProvider of the endpoints of one manifest. It is
// safe for concurrent use.
type Manifest struct {
	cfg    ManifestConfig
	caller *caller
	list   []tools.ToolDescriptor
}

// NewManifest reads a manifest. The error joins a *DocumentError for every
// fault, each with file, line and column, and what was expected.
func NewManifest(cfg ManifestConfig) (*Manifest, error) {
	cfg.Name = or(cfg.Name, cfg.File)
	content := cfg.Content
	if content == nil {
		var err error
		if content, err = os.ReadFile(cfg.File); err != nil {
			return nil, &DocumentError{Document: cfg.File, Message: plainFileError(err).Error()}
		}
	}
	if cfg.Secret == nil {
		cfg.Secret = lookupSecret
	}
	m := &Manifest{cfg: cfg, caller: newCaller(cfg.Network)}
	r := &manifestReader{file: or(cfg.File, cfg.Name)}
	root, err := parseYAML(content)
	if err != nil {
		line, column, message := yamlPosition(err)
		return nil, &DocumentError{Document: r.file, Line: line, Column: column, Message: message}
	}
	r.anchors = anchors{}
	ast.Walk(r.anchors, root)
	m.read(r, root)
	if len(r.faults) > 0 {
		return nil, errors.Join(r.faults...)
	}
	return m, nil
}

// lookupSecret reads the environment, or a file without the line break at its
// end.
func lookupSecret(ref string) (string, error) {
	if path, ok := strings.CutPrefix(ref, "file:"); ok {
		b, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("file %s: %w", path, plainFileError(err))
		}
		return strings.TrimRight(string(b), "\r\n"), nil
	}
	name := strings.TrimSuffix(strings.TrimPrefix(ref, "${"), "}")
	if s, ok := os.LookupEnv(name); ok && s != "" {
		return s, nil
	}
	return "", fmt.Errorf("the environment variable %s is not set", name)
}

// SourceID is "manifest:" and the name.
func (m *Manifest) SourceID() tools.ToolSourceID {
	return tools.ToolSourceID("manifest:" + m.cfg.Name)
}

// Connect does nothing: the endpoints are called one by one.
func (m *Manifest) Connect(context.Context) error { return nil }

// Discover returns the manifest's tools, sorted by name.
func (m *Manifest) Discover(context.Context) ([]tools.ToolDescriptor, error) {
	return slices.Clone(m.list), nil
}

// Close releases idle connections.
func (m *Manifest) Close(context.Context) error {
	m.caller.close()
	return nil
}

func (m *Manifest) read(r *manifestReader, root ast.Node) {
	top := r.object(root, "the manifest", "auth", "tools")
	auths := map[string]*Auth{}
	for _, n := range top.list("auth") {
		o := r.object(n, "an entry of auth", "name", "kind", "header", "query", "cookie", "secret")
		name := o.required("name", "the name that auth_ref uses")
		if auths[name] != nil {
			o.faultf("name", "auth %q is there twice", name)
		}
		auths[name] = m.auth(o)
	}
	if !top.has("tools") {
		top.faultf("tools", "tools is missing: expected a list of tools")
	}
	names := map[string]bool{}
	for _, n := range top.list("tools") {
		d := m.tool(r, n, auths)
		if names[d.Tool.Name] {
			r.faultf(n, "the tool %q is there twice", d.Tool.Name)
		}
		names[d.Tool.Name] = true
		m.list = append(m.list, d)
	}
	slices.SortFunc(m.list, func(a, b tools.ToolDescriptor) int { return strings.Compare(a.Tool.Name, b.Tool.Name) })
}

func (m *Manifest) auth(o *yamlObject) *Auth {
	a := &Auth{Header: o.text("header"), Query: o.text("query"), Cookie: o.text("cookie")}
	a.Kind = AuthKind(o.choice("kind", "api_key", "bearer", "basic", "cookie"))
	ref := o.required("secret", "a reference such as ${NAME} or file:PATH")
	switch {
	case ref == "":
	case !secretReference(ref):
		o.reader.faultf(o.members["secret"], "secret must be a reference such as ${NAME} or file:PATH, not the secret itself")
	default:
		if _, err := m.cfg.Secret(ref); err != nil {
			o.reader.faultf(o.members["secret"], "secret: %v", err)
		}
	}
	secret := m.cfg.Secret
	a.Secret = func(context.Context) (string, error) { return secret(ref) }
	if !o.has("kind") {
		o.faultf("kind", "kind is missing: expected api_key, bearer, basic or cookie")
	} else if a.Kind != "" {
		if err := a.Check(); err != nil {
			o.faultf("kind", "%v", err)
		}
	}
	return a
}

func secretReference(s string) bool {
	if path, ok := strings.CutPrefix(s, "file:"); ok {
		return path != ""
	}
	name, ok := strings.CutPrefix(s, "${")
	name, closed := strings.CutSuffix(name, "}")
	return ok && closed && name != "" && !strings.ContainsAny(name, "${}")
}

var manifestMethods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

func (m *Manifest) tool(r *manifestReader, n ast.Node, auths map[string]*Auth) tools.ToolDescriptor {
	o := r.object(n, "an entry of tools", "name", "method", "url_template", "description", "args_schema", "out_schema", "headers",
		"body_template", "auth_ref", "side_effect", "tags", "auth_scopes", "loading", "policy", "source_id")
	t := tools.Tool{
		Name: o.required("name", "the tool's name"), Description: o.text("description"), Transport: tools.TransportHTTP,
		ArgsSchema: o.schema("args_schema"), OutSchema: o.schema("out_schema"),
		Tags: o.texts("tags"), AuthScopes: o.texts("auth_scopes"), Policy: m.cfg.Policy,
		Loading: tools.LoadingMode(o.choice("loading", "always", "deferred")), Source: m.SourceID(),
	}
	if err := tools.CheckName(t.Name); err != nil && t.Name != "" {
		r.faultf(o.members["name"], "%v", err)
	}
	if id := o.text("source_id"); id != "" {
		t.Source, t.Namespace = tools.ToolSourceID(id), id
	}
	if o.has("policy") {
		t.Policy = o.policy("policy")
	}
	e := m.endpoint(o, auths)
	e.label = or(t.Name, "tool")
	t.SideEffects, t.Safety = effects(e.method)
	if s := o.choice("side_effect", "pure", "read", "write", "external", "stateful"); s != "" {
		declared(&t, tools.SideEffect(s))
	}
	return tools.ResolveOptions(m.cfg.Options...).Descriptor(t, e.invoke)
}

// declared lays the manifest's word about effects over what the method says.
func declared(t *tools.Tool, s tools.SideEffect) {
	t.SideEffects = s
	if s == tools.SideEffectPure || s == tools.SideEffectRead {
		t.Safety.ReadOnly, t.Safety.Idempotent, t.Safety.Destructive = tools.Yes, tools.Yes, tools.No
		return
	}
	if t.Safety.ReadOnly == tools.Yes {
		t.Safety.ReadOnly, t.Safety.Idempotent = tools.No, tools.Unset
	}
}

// schema reads a JSON Schema and tries it.
func (o *yamlObject) schema(key string) json.RawMessage {
	raw := o.json(key)
	if raw == nil {
		return nil
	}
	if _, err := schema.Compile(raw, nil); err != nil {
		o.reader.faultf(o.members[key], "%s: %v", key, err)
	}
	return raw
}

func (o *yamlObject) policy(key string) tools.ToolPolicy {
	p := o.reader.object(o.members[key], "policy", "max_attempts", "timeout_ms", "retry_on", "backoff_base_ms", "backoff_mult",
		"backoff_max_ms", "jitter", "validate")
	policy := tools.ToolPolicy{
		TimeoutMS:   p.whole("timeout_ms", -1),
		BackoffBase: time.Duration(p.number("backoff_base_ms", 0) * float64(time.Millisecond)),
		BackoffMax:  time.Duration(p.number("backoff_max_ms", 0) * float64(time.Millisecond)),
		BackoffMult: p.number("backoff_mult", 1),
		Validate:    tools.ValidateMode(p.choice("validate", "both", "in", "out", "none")),
	}
	if p.has("max_attempts") {
		if policy.MaxRetries = p.whole("max_attempts", 1) - 1; policy.MaxRetries <= 0 {
			policy.MaxRetries = -1
		}
	}
	if b, ok := p.members["jitter"].(*ast.BoolNode); ok {
		policy.Jitter = b.Value
	} else if p.has("jitter") {
		p.faultf("jitter", "expected jitter to be true or false")
	}
	if p.has("retry_on") {
		policy.RetryOn = []tools.ErrorClass{}
		for _, class := range p.texts("retry_on") {
			if !slices.Contains([]string{"transient", "timeout", "5xx", "permanent"}, class) {
				p.faultf("retry_on", "retry_on: unknown class %q: expected transient, timeout, 5xx or permanent", class)
			}
			policy.RetryOn = append(policy.RetryOn, tools.ErrorClass(class))
		}
	}
	return policy
}

func (m *Manifest) endpoint(o *yamlObject, auths map[string]*Auth) *filledEndpoint {
	e := &filledEndpoint{caller: m.caller, method: strings.ToUpper(o.required("method", strings.Join(manifestMethods, ", ")))}
	if e.method != "" && !slices.Contains(manifestMethods, e.method) {
		o.reader.faultf(o.members["method"], "method is %q: expected one of %s", e.method, strings.Join(manifestMethods, ", "))
	}
	text := o.required("url_template", "a URL such as https://api.example.com/users/{{.Args.id}}")
	if text != "" {
		m.checkURL(o, text)
		e.url = o.filler("url_template", text, placeURL)
	}
	if ref := o.text("auth_ref"); ref != "" {
		if auths[ref] == nil {
			o.reader.faultf(o.members["auth_ref"], "auth_ref names %q, and there is no such entry under auth", ref)
		}
		e.auth = credentials{auths[ref]}
	}
	m.headers(o, e)
	m.bodyTemplate(o, e)
	return e
}

// checkURL refuses a host that can never be called. The host stands before the
// first value.
func (m *Manifest) checkURL(o *yamlObject, text string) {
	lead, _, _ := strings.Cut(text, "{{")
	u, err := url.Parse(lead)
	if err != nil {
		u = &url.URL{}
	}
	if err := checkTarget(u, m.cfg.Network.AllowPrivate); err != nil {
		o.reader.faultf(o.members["url_template"], "url_template: %v", err)
		return
	}
	m.caller.name(u)
}

func (o *yamlObject) filler(key, text string, where place) *filler {
	f, err := newFiller(text, where)
	if err != nil {
		o.reader.faultf(o.members[key], "%s: %v", key, err)
	}
	return f
}

func (m *Manifest) headers(o *yamlObject, e *filledEndpoint) {
	if !o.has("headers") {
		return
	}
	h := o.reader.object(o.members["headers"], "headers")
	for name := range h.members {
		text := h.text(name)
		if !httpguts.ValidHeaderFieldName(name) {
			h.faultf(name, "%q is not a header name", name)
		} else if f := h.filler(name, text, placeHeader); f != nil {
			e.headers = append(e.headers, filledHeader{http.CanonicalHeaderKey(name), f})
		}
		if strings.EqualFold(name, "Content-Type") {
			e.media = text
		}
	}
	slices.SortFunc(e.headers, func(a, b filledHeader) int { return strings.Compare(a.name, b.name) })
}

func (m *Manifest) bodyTemplate(o *yamlObject, e *filledEndpoint) {
	e.sendsArgs = e.method == http.MethodPost || e.method == http.MethodPut || e.method == http.MethodPatch
	if !o.has("body_template") {
		return
	}
	text := o.text("body_template")
	if literal(o.members["body_template"]) {
		text = strings.TrimSuffix(text, "\n")
	}
	e.body = o.filler("body_template", text, bodyPlace(or(e.media, "application/json")))
}

func bodyPlace(media string) place {
	kind := bareMedia(media)
	switch {
	case isJSON(kind):
		return placeJSON
	case kind == "application/x-www-form-urlencoded":
		return placeForm
	case strings.HasSuffix(kind, "xml"), kind == "text/html":
		return placeXML
	}
	return placeText
}
