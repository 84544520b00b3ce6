package httptool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/net/http/httpguts"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/schema"
	"github.com/toolcrib/toolcrib/tools"
)

// invokeFunc makes one attempt at a call.
type invokeFunc = func(context.Context, json.RawMessage) (tools.ToolResult, error)

// templateKind returns the transport of a call template or provider.
func templateKind(n node) string { return or(n.text("call_template_type"), n.text("provider_type")) }

// add makes a tool of an entry of a manual.
func (m *manualReader) add(n node, space string, shared node) error {
	name := n.text("name")
	if name == "" {
		return n.errorf("a tool without a name")
	}
	if space != "" && !strings.HasPrefix(name, space+".") {
		name = space + "." + name
	}
	t := tools.Tool{
		Name: tools.CanonicalName(namePrefix(m.cfg.Prefix, m.cfg.Name), name), SourceName: name,
		Description: strings.TrimSpace(n.text("description")), Tags: (&operation{node: n}).tags(),
		Source: m.SourceID(), Transport: tools.TransportHTTP, Namespace: m.cfg.Name, Policy: m.cfg.Policy,
	}
	if !m.selects(t.Tags, name, n.text("name"), t.Name) {
		return nil
	}
	if m.taken[t.Name] {
		return n.errorf("the tool %q is there twice", name)
	}
	if err := m.describe(&t, n); err != nil {
		return err
	}
	template := common(n)
	if !template.ok() {
		template = shared
	}
	invoke, err := m.invoker(&t, template)
	if err != nil {
		return err
	}
	m.taken[t.Name] = true
	m.list = append(m.list, tools.ResolveOptions(m.cfg.Options...).Descriptor(t, invoke))
	return nil
}

// describe reads the schemas of a tool. Inputs that are not described are any
// object.
func (m *manualReader) describe(t *tools.Tool, n node) error {
	t.ArgsSchema = json.RawMessage(`{"type":"object"}`)
	if in := n.child("inputs"); in.kind() == rawjson.KindObject && rawjson.Len(in.raw) > 0 {
		raw, err := rawjson.Compact(in.raw)
		if err == nil {
			raw, err = setDefault(raw, "type", []byte(`"object"`), false)
		}
		if err == nil {
			_, err = schema.Compile(raw, nil)
		}
		if err != nil {
			return in.errorf("inputs: %v", err)
		}
		t.ArgsSchema = raw
	}
	out := n.child("outputs")
	if m.cfg.Responses == ResponsesOmitted || out.kind() != rawjson.KindObject {
		return nil
	}
	r := reader{OpenAPI: &OpenAPI{cfg: OpenAPIConfig{Responses: m.cfg.Responses}}}
	raw := r.outSchema(out.raw, out.child("$defs").raw)
	if _, err := schema.Compile(raw, nil); raw != nil && err == nil {
		t.OutSchema = raw
	}
	return nil
}

// invoker returns what runs a tool, or why nothing does.
func (m *manualReader) invoker(t *tools.Tool, template node) (invokeFunc, error) {
	switch kind := templateKind(template); {
	case !template.ok():
		return nil, errors.New("the manual does not say how the tool is called: expected a tool_call_template")
	case kind == "http":
		e, err := m.endpoint(t, template)
		if err != nil {
			return nil, err
		}
		t.SideEffects, t.Safety = effects(e.method)
		return e.invoke, nil
	case kind == "text" && m.cfg.AllowText:
		return m.text(t, template)
	case kind == "text":
		return nil, unsupported(template.errorf("it answers with a text, which is not admitted: set allow_text"))
	case kind == "cli":
		return nil, unsupported(template.errorf("it runs a command on this machine, which no manual may do: add the program as an MCP server"))
	case kind == "mcp":
		return nil, unsupported(template.errorf("it is a tool of an MCP server: add that as a source of its own"))
	default:
		return nil, unsupported(template.errorf("the transport %q is not supported: expected http", kind))
	}
}

// text returns what answers with a text that is read now.
func (m *manualReader) text(t *tools.Tool, template node) (invokeFunc, error) {
	content := []byte(template.text("content"))
	if file := template.text("file_path"); file != "" && len(content) == 0 {
		if m.lib.folder == nil {
			return nil, template.errorf("file_path: the manual was not read from a file")
		}
		var err error
		if content, err = m.lib.readFile(file); err != nil {
			return nil, template.errorf("file_path %s: %v", file, err)
		}
	}
	t.SideEffects, t.Safety = effects("GET")
	t.Safety.OpenWorld = tools.No
	structured := t.OutSchema != nil
	return func(context.Context, json.RawMessage) (tools.ToolResult, error) {
		return textResult(content, structured), nil
	}, nil
}

// textResult is the result that holds a text, or JSON where it is that.
func textResult(content []byte, structured bool) tools.ToolResult {
	if rawjson.Valid(content) {
		raw := json.RawMessage(slices.Clone(rawjson.Trim(content)))
		return tools.ToolResult{Value: raw, Structured: raw}
	}
	text := strings.ToValidUTF8(string(content), "\uFFFD")
	res := tools.ToolResult{Value: text, Content: []tools.Content{tools.TextContent(text)}}
	if structured {
		res.Structured = describe(res)
	}
	return res
}

// endpoint reads an HTTP call template.
func (m *manualReader) endpoint(t *tools.Tool, n node) (*endpoint, error) {
	e := &endpoint{caller: m.caller, method: strings.ToUpper(or(n.text("http_method"), "GET")), accept: "application/json, */*;q=0.5",
		structured: t.OutSchema != nil, rest: true}
	if !httpguts.ValidHeaderFieldName(e.method) {
		return nil, n.errorf("http_method %q is not a method", e.method)
	}
	if err := m.target(e, n); err != nil {
		return nil, err
	}
	e.label = e.method + " " + strings.Join(e.path, "")
	if err := m.fields(e, n); err != nil {
		return nil, err
	}
	auth, err := m.auth(n.child("auth"))
	if err != nil {
		return nil, err
	}
	if auth != nil {
		e.auth = credentials{auth}
	}
	if err := m.headers(e, n); err != nil {
		return nil, err
	}
	return e, nil
}

// variable matches a reference of UTCP to a variable of its client.
var variable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\$\{?[A-Za-z_][A-Za-z0-9_]*\}?`)
})

// target reads the URL template. Scheme and host are fixed; arguments stand in
// the path and the query.
func (m *manualReader) target(e *endpoint, n node) error {
	text := n.text("url")
	at := n.child("url")
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return n.errorf("url %q: expected a URL such as https://api.example.com/users/{id}", text)
	}
	end := len(rest)
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		end = i
	}
	base, err := url.Parse(scheme + "://" + rest[:end])
	switch {
	case strings.ContainsAny(rest[:end], "{}$"):
		return at.errorf("scheme and host of a URL must not come from arguments or variables")
	case variable().MatchString(rest[end:]):
		return at.errorf("the URL holds the variable %s: put what it stands for into a copy of the manual", variable().FindString(rest[end:]))
	case err != nil:
		return at.errorf("the URL is malformed")
	}
	if m.server != nil {
		base = m.server
	} else if err := m.caller.checkFound(base); err != nil {
		return unsupported(fmt.Errorf("url: %w", err))
	}
	e.base = base.Scheme + "://" + base.Host + strings.TrimRight(base.EscapedPath(), "/")
	path := rest[end:]
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	e.path = splitPath(path)
	for _, name := range pathNames(path) {
		if !slices.ContainsFunc(e.params, func(p *parameter) bool { return p.name == name }) {
			e.params = append(e.params, &parameter{arg: name, name: name, in: "path", style: "simple", required: true})
		}
	}
	return nil
}

// fields reads which arguments are headers, and which one is the body.
func (m *manualReader) fields(e *endpoint, n node) error {
	for _, v := range n.child("header_fields").elements {
		name, _ := rawjson.Unquote(v.raw)
		if !httpguts.ValidHeaderFieldName(name) {
			return v.errorf("%q is not a header name", name)
		}
		if !slices.Contains(ignoredHeaders[3:], strings.ToLower(name)) {
			e.params = append(e.params, &parameter{arg: name, name: name, in: "header", style: "simple"})
		}
	}
	field := "body"
	if raw := n.child("body_field"); raw.ok() {
		field, _ = rawjson.Unquote(raw.raw) // null means that there is none
	}
	if field == "" {
		return nil
	}
	media := or(n.text("content_type"), "application/json")
	for name, v := range n.child("headers").members {
		if strings.EqualFold(name, "Content-Type") {
			media = scalarText(v.raw)
		}
	}
	if !httpguts.ValidHeaderFieldValue(media) {
		return n.child("content_type").errorf("content_type is not a media type")
	}
	e.body = &bodyForm{arg: field, media: []string{media}, encoding: bodyEncoding(m.lib, bareMedia(media), node{})}
	return nil
}

// auth returns the credential of a tool: the configured one, else the one that
// the manual holds.
func (m *manualReader) auth(n node) (*Auth, error) {
	own, err := manualAuth(n)
	switch {
	case m.cfg.Auth == nil && err != nil:
		return nil, err
	case m.cfg.Auth == nil:
		return own, nil
	case !unplaced(m.cfg.Auth):
		return m.cfg.Auth, nil
	}
	place := keyPlace(n)
	auth := completed(m.cfg.Auth, place)
	if err := auth.Check(); err != nil {
		return nil, fmt.Errorf("the manual does not say where its key goes: %w", err)
	}
	return auth, nil
}

func keyPlace(n node) Auth {
	name := or(n.text("var_name"), "X-Api-Key")
	switch n.text("location") {
	case "query":
		return Auth{Query: name}
	case "cookie":
		return Auth{Cookie: name}
	}
	return Auth{Header: name}
}

// manualAuth reads a credential that stands in a manual. A variable is none:
// what it stands for only the operator knows.
func manualAuth(n node) (*Auth, error) {
	if n.kind() != rawjson.KindObject {
		return nil, nil
	}
	var auth Auth
	secret := ""
	switch kind := n.text("auth_type"); kind {
	case "api_key":
		auth = keyPlace(n)
		auth.Kind, secret = AuthAPIKey, n.text("api_key")
	case "basic":
		auth.Kind, secret = AuthBasic, n.text("username")+":"+n.text("password")
	case "":
		return nil, n.errorf("auth has no auth_type: set auth")
	default:
		return nil, unsupported(n.errorf("auth of the kind %q is not available: set auth to a token", kind))
	}
	if v := variable().FindString(secret); v != "" {
		return nil, unsupported(n.errorf("its credential is the variable %s: set auth", v))
	}
	if secret == "" || secret == ":" {
		return nil, n.errorf("its credential is empty: set auth")
	}
	auth.Secret = FixedSecret(secret)
	if err := auth.Check(); err != nil {
		return nil, n.errorf("%v", err)
	}
	return &auth, nil
}

// headers reads the headers of a template, which arguments may change, and
// those of the configuration, which nothing does.
func (m *manualReader) headers(e *endpoint, n node) error {
	e.headers, e.defaults = m.cfg.Headers, map[string]string{}
	for name, v := range n.child("headers").members {
		text := scalarText(v.raw)
		switch {
		case !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(text):
			return v.errorf("%q is not a header", name)
		case e.auth.hide("header", name) || configured(m.cfg.Headers, name):
		case len(e.auth) > 0 && strings.EqualFold(name, "Authorization"), strings.EqualFold(name, "Content-Type"):
		case variable().MatchString(text):
			return unsupported(v.errorf("the header %s holds the variable %s: set headers", name, variable().FindString(text)))
		default:
			e.defaults[name] = text
		}
	}
	e.hidden = append(secretValues(e.headers), secretValues(e.defaults)...)
	return nil
}

func configured(headers map[string]string, name string) bool {
	for known := range headers {
		if strings.EqualFold(known, name) {
			return true
		}
	}
	return false
}
