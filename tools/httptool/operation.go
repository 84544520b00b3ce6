package httptool

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// version returns the version that an OpenAPI document declares.
func (d *document) version() string {
	return scalarText(d.top("openapi").raw)
}

func (d *document) root() node { return node{d, "", d.raw} }

// top returns a member of the document itself.
func (d *document) top(key string) node {
	raw, _ := d.at("/" + key)
	return node{d, "/" + key, raw}
}

// checkVersion refuses what is neither Swagger 2.0 nor OpenAPI 3.
func (d *document) checkVersion() error {
	if d.root().kind() != rawjson.KindObject {
		return &DocumentError{Document: d.name, Message: "expected an OpenAPI document, an object in JSON or YAML"}
	}
	if v := d.top("swagger"); v.ok() {
		if text := scalarText(v.raw); text != "2.0" && text != "2" {
			return v.errorf("Swagger %s is not known: expected 2.0", text)
		}
	} else if v := d.top("openapi"); !v.ok() {
		return d.root().errorf(`the member "openapi" is missing: expected an OpenAPI 3 or Swagger 2.0 document`)
	} else if !strings.HasPrefix(d.version(), "3.") {
		return v.errorf("OpenAPI %s is not known: expected 3.0, 3.1 or 3.2", d.version())
	}
	if paths := d.top("paths"); paths.ok() && paths.kind() != rawjson.KindObject {
		return paths.errorf("paths is not an object")
	}
	return nil
}

// An operation is one method of one path.
type operation struct {
	method string // upper case
	path   string // as the document has it
	node   node
	item   node // the path item
}

var methods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace", "query"}

func (o *operation) label() string { return o.method + " " + o.path }

func (o *operation) id() string { return o.node.text("operationId") }

// operations lists every operation of the document, in its order, and the
// paths whose $ref leads nowhere.
func (l *library) operations() (list []operation, refused []tools.Refusal) {
	for path, item := range l.root.top("paths").members {
		if !strings.HasPrefix(path, "/") {
			continue // an extension
		}
		resolved, err := l.deref(item)
		if err != nil {
			refused = append(refused, tools.Refusal{Name: path, Err: err})
			continue
		}
		list = append(list, itemOperations(path, resolved)...)
	}
	return list, refused
}

func itemOperations(path string, item node) []operation {
	var list []operation
	for key, n := range item.members {
		if slices.Contains(methods, key) && n.kind() == rawjson.KindObject {
			list = append(list, operation{method: strings.ToUpper(key), path: path, node: n, item: item})
		}
	}
	for key, n := range item.child("additionalOperations").members {
		if httpguts.ValidHeaderFieldName(key) && n.kind() == rawjson.KindObject {
			list = append(list, operation{method: key, path: path, node: n, item: item})
		}
	}
	return list
}

// derivedName names an operation without an operationId after its method and
// path: "GET /users/{id}/posts" becomes "get_users_by_id_posts".
func (o *operation) derivedName() string {
	text := pathVariable().ReplaceAllString(o.path, "/by_${1}/")
	name := strings.ToLower(o.method)
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return !(r < 0x80 && unreserved(byte(r))) || r == '.' || r == '~' }) {
		name += "_" + part
	}
	return nameText(name)
}

func nameText(s string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r < 0x80 && unreserved(byte(r)) && r != '~' {
			return r
		}
		return '_'
	}, s), "_")
}

// description joins summary and description; an operation that is deprecated
// says so first.
func (o *operation) description() string {
	summary, long := strings.TrimSpace(o.node.text("summary")), strings.TrimSpace(o.node.text("description"))
	text := summary
	switch {
	case summary == "" || strings.HasPrefix(long, summary):
		text = long
	case long != "":
		text = summary + "\n\n" + long
	}
	if text == "" {
		text = o.label()
	}
	if o.node.flag("deprecated", false) {
		return "Deprecated. " + text
	}
	return text
}

func (o *operation) tags() []string {
	var tags []string
	for _, v := range o.node.child("tags").elements {
		if s, ok := rawjson.Unquote(v.raw); ok && s != "" && !slices.Contains(tags, s) {
			tags = append(tags, s)
		}
	}
	return tags
}

// server returns the base URL of an operation: that of the operation, else of
// its path, else of the document.
func (l *library) server(o *operation) (*url.URL, error) {
	if l.root.swagger() {
		return l.swaggerServer(o)
	}
	for _, servers := range []node{o.node.child("servers"), o.item.child("servers"), l.root.top("servers")} {
		for _, n := range servers.elements {
			return l.serverURL(servers.doc, n)
		}
	}
	return l.absolute(l.root, "/")
}

func (l *library) serverURL(doc *document, n node) (*url.URL, error) {
	text := n.text("url")
	for name, v := range n.child("variables").members {
		value, err := l.variable(name, v)
		if err != nil {
			return nil, err
		}
		text = strings.ReplaceAll(text, "{"+name+"}", value)
	}
	if strings.ContainsAny(text, "{}") {
		return nil, n.errorf("the server URL %q has a variable without a default: set server_url", text)
	}
	return l.absolute(doc, text)
}

// variable returns the value of a server's variable: the configured one, its
// default, or else the first that is allowed.
func (l *library) variable(name string, v node) (string, error) {
	var allowed []string
	for _, e := range v.child("enum").elements {
		allowed = append(allowed, scalarText(e.raw))
	}
	value, ok := l.values[name]
	switch {
	case ok && len(allowed) > 0 && !slices.Contains(allowed, value):
		return "", v.errorf("the server variable %s is set to %q: expected one of %s", name, value, strings.Join(allowed, ", "))
	case ok:
		return value, nil
	case len(allowed) > 0 && v.text("default") == "":
		return allowed[0], nil
	}
	return scalarText(orEmptyText(v.child("default").raw)), nil
}

func orEmptyText(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage(`""`)
	}
	return raw
}

func (l *library) absolute(doc *document, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("the server URL is malformed: set server_url")
	}
	if u.IsAbs() {
		return u, nil
	}
	base := doc.address()
	if base == nil {
		return nil, fmt.Errorf("the server URL %q is relative and the document is a file: set server_url", text)
	}
	return base.ResolveReference(u), nil
}

// parseServer reads a server_url.
func parseServer(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("server_url is malformed: expected a URL such as https://api.example.com/v1")
	}
	if !u.IsAbs() {
		return nil, fmt.Errorf("server_url %q is relative: expected a URL such as https://api.example.com/v1", text)
	}
	return u, nil
}
