package httptool

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"strings"
	"text/template/parse"

	"github.com/toolcrib/toolcrib/internal/jsontemplate"
	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// A place is where a template's output goes; it decides how values are
// escaped.
type place uint8

const (
	placeURL place = iota + 1
	placeHeader
	placeJSON
	placeForm
	placeXML
	placeText
)

// A filler is a template whose values are escaped for the place they stand in.
// It is safe for concurrent use.
type filler struct{ tmpl *jsontemplate.Template }

// fillLimits bound what a template may produce and how long it may run.
var fillLimits = jsontemplate.Limits{Bytes: 64 << 20, Steps: 16 << 20}

// newFiller parses a template. Every value that it prints is escaped: in a URL
// for a path segment or a query, in JSON inside a string as its text and
// outside one as a JSON value, in a form, in XML. The host of a URL cannot
// come from a value.
func newFiller(text string, where place) (*filler, error) {
	t, err := jsontemplate.Parse(text, escapers())
	if err != nil {
		return nil, err
	}
	w := templateWalker{where: where, tree: t.Tree()}
	end, err := w.list(t.Tree().Root, cursor{state: stateStart})
	if err != nil {
		return nil, err
	}
	if where == placeJSON && end.state != stateStart {
		return nil, errors.New("the template ends inside a JSON string")
	}
	return &filler{tmpl: t}, nil
}

// fill executes the template over arguments.
func (f *filler) fill(args map[string]any) (string, error) {
	return f.tmpl.Execute(jsontemplate.Data{Args: args}, fillLimits)
}

// templateArgs decodes arguments for a template. Numbers keep their spelling.
func templateArgs(args json.RawMessage) (map[string]any, error) {
	values := map[string]any{}
	if len(bytes.TrimSpace(args)) == 0 {
		return values, nil
	}
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	if err := dec.Decode(&values); err != nil {
		return nil, errors.New("the arguments are not a JSON object")
	}
	return values, nil
}

// The states that the text before a value can lead to.
type state uint8

const (
	stateStart  state = iota // JSON outside strings; a URL before its path
	statePath                // in the path of a URL
	stateQuery               // in the query of a URL
	stateString              // in a JSON string
	stateEscape              // in a JSON string after a backslash
)

// A cursor is what is known of the text before a point of a template.
type cursor struct {
	state  state
	prefix string // a URL so far, while its path has not begun
}

// A templateWalker gives every printed value its escaper.
type templateWalker struct {
	where place
	tree  *parse.Tree
}

func (w *templateWalker) list(n *parse.ListNode, c cursor) (cursor, error) {
	if n == nil {
		return c, nil
	}
	var err error
	for _, child := range n.Nodes {
		if c, err = w.node(child, c); err != nil {
			return c, err
		}
	}
	return c, nil
}

func (w *templateWalker) node(n parse.Node, c cursor) (cursor, error) {
	switch n := n.(type) {
	case *parse.TextNode:
		return w.text(string(n.Text), c)
	case *parse.ActionNode:
		return c, w.action(n, c)
	case *parse.IfNode:
		return w.branch(&n.BranchNode, c)
	case *parse.WithNode:
		return w.branch(&n.BranchNode, c)
	case *parse.RangeNode:
		return w.branch(&n.BranchNode, c)
	case *parse.CommentNode:
		return c, nil
	}
	return c, fmt.Errorf("%q is not available in these templates", n.String())
}

// branch walks the alternatives, which must leave the text in one state.
func (w *templateWalker) branch(n *parse.BranchNode, c cursor) (cursor, error) {
	then, err := w.list(n.List, c)
	if err != nil {
		return c, err
	}
	otherwise, err := w.list(n.ElseList, c)
	if err != nil {
		return c, err
	}
	if then == otherwise {
		return then, nil
	}
	if w.where == placeURL && then.state != stateStart && otherwise.state != stateStart {
		return cursor{state: stateQuery}, nil
	}
	return c, fmt.Errorf("the branches of %q end in different places: each must close what it opens", n.Pipe.String())
}

func (w *templateWalker) text(s string, c cursor) (cursor, error) {
	switch w.where {
	case placeURL:
		return urlText(s, c)
	case placeJSON:
		for i := range len(s) {
			c.state = jsonState(c.state, s[i])
		}
	}
	return c, nil
}

func jsonState(st state, b byte) state {
	switch {
	case st == stateStart && b == '"':
		return stateString
	case st == stateString && b == '"':
		return stateStart
	case st == stateString && b == '\\':
		return stateEscape
	case st == stateEscape:
		return stateString
	}
	return st
}

func urlText(s string, c cursor) (cursor, error) {
	if strings.ContainsRune(s, '#') {
		return c, errors.New("a URL with a fragment (#) cannot be called")
	}
	if c.state == stateStart {
		c.prefix += s
		scheme, rest, ok := strings.Cut(c.prefix, "://")
		if !ok {
			return c, nil
		}
		at := strings.IndexAny(rest, "/?")
		if at < 0 {
			return c, nil
		}
		if strings.ContainsAny(scheme, "/?") {
			return c, errors.New("the URL must begin with http:// or https://")
		}
		s, c = rest[at:], cursor{state: statePath}
	}
	if strings.ContainsRune(s, '?') {
		c.state = stateQuery
	}
	return c, nil
}

func (w *templateWalker) action(n *parse.ActionNode, c cursor) error {
	if len(n.Pipe.Decl) > 0 {
		return nil // an assignment prints nothing
	}
	name := ""
	switch w.where {
	case placeURL:
		if c.state == stateStart {
			return fmt.Errorf("%s stands before the path: scheme and host of a URL must not come from arguments", n.String())
		}
		name = "_path"
		if c.state == stateQuery {
			name = "_query"
		}
	case placeJSON:
		name = map[state]string{stateStart: "_json", stateString: "_string"}[c.state]
		if name == "" {
			return fmt.Errorf("%s stands after a backslash in a JSON string", n.String())
		}
	case placeForm:
		name = "_query"
	case placeXML:
		name = "_xml"
	default:
		name = "_text"
	}
	ident := parse.NewIdentifier(name).SetTree(w.tree).SetPos(n.Pos)
	n.Pipe.Cmds = append(n.Pipe.Cmds, &parse.CommandNode{NodeType: parse.NodeCommand, Pos: n.Pos, Args: []parse.Node{ident}})
	return nil
}

func escapers() map[string]jsontemplate.Func {
	return map[string]jsontemplate.Func{"_path": escapePath, "_query": escapeQuery, "_json": escapeJSON, "_string": escapeString,
		"_xml": escapeXML, "_text": valueText}
}

func escapePath(v any) (string, error) {
	text, err := valueText(v)
	if err == nil && text == "" {
		err = errors.New("an argument in the path of the URL is missing or empty")
	}
	return percent(text, false), err
}

func escapeQuery(v any) (string, error) {
	text, err := valueText(v)
	return percent(text, false), err
}

func escapeJSON(v any) (string, error) {
	raw, err := encodeJSON(v)
	return string(raw), err
}

func escapeString(v any) (string, error) {
	text, err := valueText(v)
	quoted := rawjson.Quote(text)
	return string(quoted[1 : len(quoted)-1]), err
}

func escapeXML(v any) (string, error) {
	text, err := valueText(v)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = xml.EscapeText(&b, []byte(text))
	return b.String(), err
}

// valueText is a string's text, nothing for an absent value, and any other
// value as JSON.
func valueText(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	}
	raw, err := encodeJSON(v)
	return string(raw), err
}

func encodeJSON(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, errors.New("a value cannot be written as JSON")
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
