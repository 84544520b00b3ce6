package httptool

import (
	"encoding/json"
	"fmt"
	"mime"
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/net/http/httpguts"

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
	body := o.node.child("requestBody")
	if l.root.swagger() {
		list, body = l.swaggerBody(o, list)
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
	if err := b.body(l, body); err != nil {
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
			if seen[id] || name == "" && in != "body" || b.ignored(o, in, name) {
				continue
			}
			seen[id] = true
			list = append(list, n)
		}
	}
	rank := []string{"path", "query", "querystring", "header", "cookie"}
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

var pathVariable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\{([^{}]*)\}`)
})

func pathNames(path string) []string {
	var names []string
	for _, m := range pathVariable().FindAllStringSubmatch(path, -1) {
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

	"querystring": {""},
}

func (b *formBuilder) parameter(l *library, n node) error {
	p := &parameter{name: n.text("name"), in: n.text("in"), reserved: n.flag("allowReserved", false)}
	known, ok := styles[p.in]
	if !ok {
		return unsupported(fmt.Errorf("parameter %q: parameters in %q are not supported: expected path, query, header or cookie", p.name, p.in))
	}
	if p.in == "header" && !httpguts.ValidHeaderFieldName(p.name) {
		return n.errorf("parameter %q is not a header name", p.name)
	}
	p.required = p.in == "path" || n.flag("required", false)
	source := n.child("schema")
	if l.root.swagger() {
		source = n
		p.collectionFormat(n.text("collectionFormat"))
	} else {
		p.style = or(n.text("style"), known[0])
		if !slices.Contains(known, p.style) {
			return n.errorf("parameter %q: the style %q is not one of %s", p.name, p.style, strings.Join(known, ", "))
		}
		p.explode = n.flag("explode", p.style == "form" || p.style == "cookie" || p.style == "deepObject")
	}
	for media, content := range n.child("content").members {
		content, err := l.deref(content)
		if err != nil {
			return err
		}
		source = content.child("schema")
		p.content(bareMedia(media), content)
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

// content says how a parameter is written that has a media type.
func (p *parameter) content(kind string, content node) {
	switch {
	case isJSON(kind):
		p.json = true
	case kind == "application/x-www-form-urlencoded" && p.in == "querystring":
		p.form = &bodyForm{arg: p.name, encoding: encodingForm}
		p.form.readFields(content)
	default:
		p.whole = true
	}
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
	raw, refs, err := b.schemas.convert(n, levelValue)
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
		e, err := l.deref(e)
		if err != nil {
			continue
		}
		for _, key := range []string{"dataValue", "value"} {
			if v := e.child(key); v.ok() {
				return v.raw
			}
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
