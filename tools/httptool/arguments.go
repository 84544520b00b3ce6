package httptool

import (
	"encoding/json"
	"fmt"
	"mime"
	"regexp"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// ignoredHeaders are header parameters that OpenAPI says to ignore, and those
// that belong to the connection.
var ignoredHeaders = []string{"accept", "content-type", "authorization", "host", "content-length", "transfer-encoding",
	"connection", "upgrade", "te", "trailer", "keep-alive", "proxy-authorization", "expect"}

// A form is what an operation takes: its parameters, its body, and the schema
// of the arguments that hold both.
type form struct {
	params []*parameter
	body   *bodyForm
	schema json.RawMessage
	// example is one set of arguments from the document's own examples, or
	// nil when a required one has none.
	example json.RawMessage
}

// A bodyForm says how the argument of the request body is written.
type bodyForm struct {
	arg       string
	media     string // the Content-Type
	encoding  string // json, form or text
	required  bool
	deepProps map[string]*parameter // for form: how single properties are written
}

// formBuilder collects the arguments of one operation.
type formBuilder struct {
	schemas *schemas
	hidden  func(in, name string) bool
	form    form
	props   []byte // members of "properties", each with a comma before it
	taken   map[string]bool
	need    []string
	refs    []string
	sample  []byte
	partial bool // a required argument has no example
}

// build reads the parameters and the body of an operation.
func (b *formBuilder) build(l *library, o *operation) error {
	b.taken = map[string]bool{}
	list, err := b.parameters(l, o)
	if err != nil {
		return err
	}
	for _, n := range list {
		if err := b.parameter(l, n); err != nil {
			return err
		}
	}
	for _, name := range undeclared(o.path, b.form.params) {
		p := &parameter{name: name, in: "path", style: "simple", required: true}
		if err := b.add(p, json.RawMessage(`{"type":"string"}`), nil); err != nil {
			return err
		}
	}
	if err := b.body(l, o); err != nil {
		return err
	}
	return b.finish()
}

// parameters returns those of the operation and, where it does not redefine
// them, of its path; path parameters first, so that they keep their names.
func (b *formBuilder) parameters(l *library, o *operation) ([]node, error) {
	var list []node
	seen := map[string]bool{}
	for _, owner := range []node{o.node, o.item} {
		for _, n := range owner.child("parameters").elements {
			n, err := l.deref(n)
			if err != nil {
				return nil, err
			}
			in, name := n.text("in"), n.text("name")
			id := in + "\x00" + name
			if seen[id] || name == "" || b.ignored(o, in, name) {
				continue
			}
			seen[id] = true
			list = append(list, n)
		}
	}
	rank := []string{"path", "query", "header", "cookie"}
	slices.SortStableFunc(list, func(x, y node) int {
		return slices.Index(rank, x.text("in")) - slices.Index(rank, y.text("in"))
	})
	return list, nil
}

func (b *formBuilder) ignored(o *operation, in, name string) bool {
	if in == "header" && slices.Contains(ignoredHeaders, strings.ToLower(name)) {
		return true
	}
	if in == "path" && !slices.Contains(pathNames(o.path), name) {
		return true
	}
	return b.hidden(in, name)
}

var pathVariable = regexp.MustCompile(`\{([^{}]*)\}`)

func pathNames(path string) []string {
	var names []string
	for _, m := range pathVariable.FindAllStringSubmatch(path, -1) {
		names = append(names, m[1])
	}
	return names
}

// undeclared returns the variables of a path that no parameter declares.
func undeclared(path string, params []*parameter) []string {
	var names []string
	for _, name := range pathNames(path) {
		declared := slices.ContainsFunc(params, func(p *parameter) bool { return p.in == "path" && p.name == name })
		if !declared && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// styles are the parameter styles of each place, the default one first.
var styles = map[string][]string{
	"path":   {"simple", "label", "matrix"},
	"query":  {"form", "spaceDelimited", "pipeDelimited", "deepObject"},
	"header": {"simple"},
	"cookie": {"form", "cookie"},
}

func (b *formBuilder) parameter(l *library, n node) error {
	p := &parameter{name: n.text("name"), in: n.text("in"), style: n.text("style"), reserved: n.flag("allowReserved", false)}
	known, ok := styles[p.in]
	if !ok {
		return unsupported(fmt.Errorf("parameter %q: parameters in %q are not supported: expected path, query, header or cookie", p.name, p.in))
	}
	p.style = or(p.style, known[0])
	if !slices.Contains(known, p.style) {
		return n.errorf("parameter %q: the style %q is not one of %s", p.name, p.style, strings.Join(known, ", "))
	}
	p.explode = n.flag("explode", p.style == "form" || p.style == "cookie" || p.style == "deepObject")
	p.required = p.in == "path" || n.flag("required", false)
	source := n.child("schema")
	for media, content := range n.child("content").members {
		if !isJSON(bareMedia(media)) {
			return unsupported(fmt.Errorf("parameter %q: the content type %q is not supported: expected application/json", p.name, media))
		}
		source, p.json = content.child("schema"), true
		break
	}
	raw, err := b.convert(source)
	if err != nil {
		return err
	}
	if raw, err = annotate(raw, n); err != nil {
		return err
	}
	return b.add(p, raw, exampleOf(l, n, source))
}

func bareMedia(s string) string {
	kind, _, err := mime.ParseMediaType(s)
	if err != nil {
		return strings.ToLower(strings.TrimSpace(s))
	}
	return kind
}

func (b *formBuilder) convert(n node) (json.RawMessage, error) {
	if !n.ok() {
		return json.RawMessage("{}"), nil
	}
	raw, refs, err := b.schemas.convert(n)
	b.refs = append(b.refs, refs...)
	return raw, err
}

// annotate lays a parameter's own description and deprecation over its schema.
func annotate(raw json.RawMessage, n node) (json.RawMessage, error) {
	var err error
	if text := strings.TrimSpace(n.text("description")); text != "" {
		if raw, err = setDefault(raw, "description", rawjson.Quote(text), true); err != nil {
			return nil, err
		}
	}
	if n.flag("deprecated", false) {
		return setDefault(raw, "deprecated", []byte("true"), true)
	}
	return raw, nil
}

// exampleOf returns a parameter's or media type's example, or that of its
// schema, or nil.
func exampleOf(l *library, n, schema node) json.RawMessage {
	if e := n.child("example"); e.ok() {
		return e.raw
	}
	for _, e := range n.child("examples").members {
		if e, err := l.deref(e); err == nil && e.child("value").ok() {
			return e.child("value").raw
		}
	}
	target, err := l.deref(schema)
	if err != nil {
		return nil
	}
	if e := target.child("example"); e.ok() {
		return e.raw
	}
	for _, e := range target.child("examples").elements {
		return e.raw
	}
	return nil
}

// add gives a parameter its property. A name that another place took is
// followed by the place: "id", then "id_query".
func (b *formBuilder) add(p *parameter, schema, example json.RawMessage) error {
	p.arg = b.property(p.name, p.in)
	b.form.params = append(b.form.params, p)
	b.member(p.arg, schema, p.required, example)
	return nil
}

func (b *formBuilder) property(name, in string) string {
	arg := name
	if b.taken[arg] {
		arg = name + "_" + in
	}
	for i := 2; b.taken[arg]; i++ {
		arg = fmt.Sprintf("%s_%s_%d", name, in, i)
	}
	b.taken[arg] = true
	return arg
}

func (b *formBuilder) member(arg string, schema json.RawMessage, required bool, example json.RawMessage) {
	b.props = append(appendKey(b.props, arg), schema...)
	if required {
		b.need = append(b.need, arg)
		b.partial = b.partial || example == nil
	}
	if example != nil {
		b.sample = append(appendKey(b.sample, arg), example...)
	}
}

// body adds the argument of the request body: "body", or "body_request" when a
// parameter has that name.
func (b *formBuilder) body(l *library, o *operation) error {
	n := o.node.child("requestBody")
	if !n.ok() {
		return nil
	}
	n, err := l.deref(n)
	if err != nil {
		return err
	}
	media, content, err := pickMedia(n)
	if err != nil || media == "" {
		return err
	}
	body := &bodyForm{media: media, encoding: bodyEncoding(bareMedia(media)), required: n.flag("required", false)}
	if strings.ContainsRune(body.media, '*') {
		body.media = "application/json"
	}
	source := content.child("schema")
	raw, err := b.convert(source)
	if err != nil {
		return err
	}
	if text := strings.TrimSpace(n.text("description")); text != "" {
		if raw, err = setDefault(raw, "description", rawjson.Quote(text), false); err != nil {
			return err
		}
	}
	if body.encoding == "form" {
		body.deepProps = formProperties(content)
	}
	body.arg = b.property("body", "request")
	b.form.body = body
	b.member(body.arg, raw, body.required, exampleOf(l, content, source))
	return nil
}

// formProperties reads the encodings of a form's properties. The default is
// that of a query parameter.
func formProperties(content node) map[string]*parameter {
	props := map[string]*parameter{}
	for name, e := range content.child("encoding").members {
		style := or(e.text("style"), "form")
		props[name] = &parameter{name: name, in: "query", style: style,
			explode: e.flag("explode", style == "form" || style == "deepObject"),
			json:    isJSON(bareMedia(e.text("contentType")))}
	}
	return props
}

// bodyEncoding says how a media type is written: json, form, text, or "" for
// one that is not supported.
func bodyEncoding(kind string) string {
	switch {
	case isJSON(kind), kind == "*/*", kind == "application/*":
		return "json"
	case kind == "application/x-www-form-urlencoded":
		return "form"
	case kind == "text/plain":
		return "text"
	}
	return ""
}

// pickMedia chooses the media type of a request body: JSON before a form
// before text. One that offers nothing supported is refused by name.
func pickMedia(body node) (string, node, error) {
	rank := []string{"text", "form", "json"}
	best, media, content := -1, "", node{}
	var offered []string
	for name, n := range body.child("content").members {
		offered = append(offered, name)
		if r := slices.Index(rank, bodyEncoding(bareMedia(name))); r > best {
			best, media, content = r, name, n
		}
	}
	if media == "" && len(offered) > 0 {
		return "", node{}, unsupported(fmt.Errorf("request bodies of %s are not supported: expected application/json, "+
			"application/x-www-form-urlencoded or text/plain", strings.Join(offered, ", ")))
	}
	return media, content, nil
}

// unsupportedError marks what is no fault of the document.
type unsupportedError struct{ error }

func (e unsupportedError) Unwrap() error { return e.error }

func unsupported(err error) error { return unsupportedError{err} }

// finish writes the schema of the arguments.
func (b *formBuilder) finish() error {
	defs, err := b.schemas.definitions(b.refs, checkedBudget)
	if err != nil {
		return err
	}
	out := append([]byte(`{"type":"object","properties":{`), trimComma(b.props)...)
	out = append(out, '}')
	if len(b.need) > 0 {
		need, _ := json.Marshal(b.need) // strings always encode
		out = append(append(out, `,"required":`...), need...)
	}
	out = append(out, `,"additionalProperties":false`...)
	if defs != nil {
		out = append(append(out, `,"$defs":`...), defs...)
	}
	b.form.schema = append(out, '}')
	if len(b.sample) > 0 && !b.partial {
		b.form.example = append(append([]byte{'{'}, trimComma(b.sample)...), '}')
	}
	return nil
}

func trimComma(members []byte) []byte {
	if len(members) == 0 {
		return nil
	}
	return members[1:]
}
