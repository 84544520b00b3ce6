package httptool

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// swagger reports whether a document is Swagger 2.0.
func (d *document) swagger() bool { return d.top("swagger").ok() }

// oldDialect reports whether nothing but the reference counts in a schema with
// a $ref.
func (l *library) oldDialect() bool {
	return l.root.swagger() || strings.HasPrefix(l.root.version(), "3.0")
}

// collectionFormat says how a parameter of Swagger 2.0 is written.
func (p *parameter) collectionFormat(format string) {
	p.style = styles[p.in][0]
	switch format {
	case "ssv":
		p.style = "spaceDelimited"
	case "tsv":
		p.style = "tabDelimited"
	case "pipes":
		p.style = "pipeDelimited"
	case "multi":
		p.explode = true
	}
}

// swaggerBody takes the body and the form fields out of a list of Swagger 2.0
// parameters, and returns them as OpenAPI 3 writes a request body.
func (l *library) swaggerBody(o *operation, list []node) (rest []node, body node) {
	var fields []node
	for _, n := range list {
		switch n.text("in") {
		case "body":
			body = l.swaggerContent(o, "consumes", n.child("schema").raw, n)
		case "formData":
			fields = append(fields, n)
		default:
			rest = append(rest, n)
		}
	}
	if len(fields) > 0 {
		body = l.swaggerForm(o, fields)
	}
	return rest, body
}

// swaggerContent is an object with the media types of an operation and one
// schema for all of them.
func (l *library) swaggerContent(o *operation, list string, schema json.RawMessage, n node) node {
	media := l.swaggerMedia(o, list)
	if len(media) == 0 {
		media = []string{"application/json"}
	}
	content := []byte(`{"content":{`)
	for i, m := range media {
		if i > 0 {
			content = append(content, ',')
		}
		content = append(rawjson.AppendQuoted(content, m), `:{"schema":`...)
		content = append(append(content, orEmpty(schema)...), '}')
	}
	content = append(content, '}')
	if n.flag("required", false) {
		content = append(content, `,"required":true`...)
	}
	if text := n.child("description"); text.kind() == rawjson.KindString {
		content = append(append(content, `,"description":`...), text.raw...)
	}
	return node{n.doc, n.pointer, append(content, '}')}
}

func orEmpty(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("{}")
	}
	return raw
}

// swaggerMedia returns the media types of an operation, or of the document.
func (l *library) swaggerMedia(o *operation, list string) []string {
	owner := o.node.child(list)
	if !owner.ok() {
		owner = l.root.top(list)
	}
	var media []string
	for _, v := range owner.elements {
		if s, ok := rawjson.Unquote(v.raw); ok && !slices.Contains(media, s) {
			media = append(media, s)
		}
	}
	return media
}

// swaggerForm is a request body with form fields as its properties.
func (l *library) swaggerForm(o *operation, fields []node) node {
	media := "application/x-www-form-urlencoded"
	for _, m := range l.swaggerMedia(o, "consumes") {
		if strings.HasPrefix(m, "multipart/") {
			media = m
		}
	}
	var props, encodings []byte
	required := []string{}
	for _, n := range fields {
		name := n.text("name")
		if n.text("type") == "file" {
			media = "multipart/form-data"
		}
		props = append(appendKey(props, name), n.raw...)
		if n.text("type") == "array" {
			encodings = append(appendKey(encodings, name), formEncoding(n.text("collectionFormat"))...)
		}
		if n.flag("required", false) {
			required = append(required, name)
		}
	}
	out := append([]byte(`{"content":{`), rawjson.Quote(media)...)
	out = append(append(out, `:{"encoding":{`...), trimComma(encodings)...)
	out = append(append(out, `},"schema":{"type":"object","properties":{`...), trimComma(props)...)
	out = append(out, '}')
	if len(required) > 0 {
		need, _ := json.Marshal(required) // strings always encode
		out = append(append(out, `,"required":`...), need...)
	}
	out = append(out, "}}}"...)
	if len(required) > 0 {
		out = append(out, `,"required":true`...)
	}
	return node{fields[0].doc, fields[0].pointer, append(out, '}')}
}

// formEncoding is the encoding object for a collectionFormat.
func formEncoding(format string) string {
	p := &parameter{in: "query"}
	p.collectionFormat(format)
	return fmt.Sprintf(`{"style":%q,"explode":%t}`, p.style, p.explode)
}

// swaggerServer returns the base URL of a Swagger 2.0 document. What it leaves
// out is that of the document itself.
func (l *library) swaggerServer(o *operation) (*url.URL, error) {
	root := l.root.root()
	text := "/" + strings.TrimPrefix(root.text("basePath"), "/")
	host := root.text("host")
	schemes := o.node.child("schemes")
	if !schemes.ok() {
		schemes = l.root.top("schemes")
	}
	scheme := ""
	for _, v := range schemes.elements {
		if s, ok := rawjson.Unquote(v.raw); ok && (s == "https" || s == "http" && scheme == "") {
			scheme = s
		}
	}
	if host == "" {
		return l.absolute(l.root, text)
	}
	if strings.ContainsAny(host, "/{}") {
		return nil, errors.New("the document's host is malformed: set server_url")
	}
	if scheme == "" {
		scheme = "https"
		if base := l.root.base; base != nil {
			scheme = base.Scheme
		}
	}
	return l.absolute(l.root, scheme+"://"+host+text)
}
