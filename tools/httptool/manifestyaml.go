package httptool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/toolcrib/toolcrib/internal/nearest"
	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// A yamlObject is one mapping of a manifest, read strictly: every fault is
// kept with its position, and reading goes on.
type yamlObject struct {
	reader  *manifestReader
	node    ast.Node
	members map[string]ast.Node
	keys    map[string]ast.Node
}

// A manifestReader collects the faults of one file.
type manifestReader struct {
	file    string
	faults  []error
	anchors anchors
}

// anchors are the named nodes of a file.
type anchors map[string]ast.Node

// Visit implements ast.Visitor.
func (a anchors) Visit(n ast.Node) ast.Visitor {
	if named, ok := n.(*ast.AnchorNode); ok {
		a[named.Name.GetToken().Value] = named.Value
	}
	return a
}

// plain returns what an anchor names or an alias stands for.
func (a anchors) plain(n ast.Node) ast.Node {
	for range maxYAMLDepth {
		switch v := n.(type) {
		case *ast.AnchorNode:
			n = v.Value
		case *ast.AliasNode:
			target, ok := a[v.Value.GetToken().Value]
			if !ok {
				return n
			}
			n = target
		default:
			return n
		}
	}
	return n
}

func (r *manifestReader) faultf(n ast.Node, format string, args ...any) {
	line, column := nodePosition(n)
	r.faults = append(r.faults, &DocumentError{Document: r.file, Line: line, Column: column, Message: fmt.Sprintf(format, args...)})
}

// object reads a mapping whose keys must be known; what names it in errors.
func (r *manifestReader) object(n ast.Node, what string, known ...string) *yamlObject {
	o := &yamlObject{reader: r, node: n, members: map[string]ast.Node{}, keys: map[string]ast.Node{}}
	var values []*ast.MappingValueNode
	switch v := r.anchors.plain(n).(type) {
	case *ast.MappingNode:
		values = v.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{v}
	case nil, *ast.NullNode:
		r.faultf(n, "%s is empty: expected a mapping with %s", what, strings.Join(known, ", "))
	default:
		r.faultf(n, "expected %s to be a mapping, found %s", what, kindText(n))
	}
	for _, m := range values {
		key := keyText(m.Key)
		if len(known) > 0 && !slices.Contains(known, key) {
			r.faultf(m.Key, "unknown key %q in %s: %s", key, what, suggestion(key, known))
			continue
		}
		o.members[key], o.keys[key] = r.anchors.plain(m.Value), m.Key
	}
	return o
}

// kindText names a YAML node for people.
func kindText(n ast.Node) string {
	switch n.(type) {
	case nil, *ast.NullNode:
		return "nothing"
	case *ast.StringNode, *ast.LiteralNode:
		return "text"
	case *ast.IntegerNode, *ast.FloatNode:
		return "a number"
	case *ast.BoolNode:
		return "true or false"
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	}
	return strings.ToLower(n.Type().String())
}

// suggestion names the nearest known key, else all of them.
func suggestion(key string, known []string) string {
	if best, ok := nearest.Word(key, known); ok {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "expected one of " + strings.Join(known, ", ")
}

// at returns the node that shows where a member is.
func (o *yamlObject) at(key string) ast.Node {
	if n, ok := o.keys[key]; ok {
		return n
	}
	return o.node
}

func (o *yamlObject) faultf(key, format string, args ...any) {
	o.reader.faultf(o.at(key), format, args...)
}

func (o *yamlObject) has(key string) bool { return o.members[key] != nil }

// text reads a member that must be text; absent is "".
func (o *yamlObject) text(key string) string {
	n := o.members[key]
	switch v := n.(type) {
	case nil, *ast.NullNode:
		return ""
	case *ast.StringNode:
		return v.Value
	case *ast.LiteralNode:
		return v.Value.Value
	}
	o.reader.faultf(n, "expected %s to be text, found %s", key, kindText(n))
	return ""
}

// required is text that must be there.
func (o *yamlObject) required(key, expected string) string {
	s := o.text(key)
	if s == "" && (!o.has(key) || isEmpty(o.members[key])) {
		o.faultf(key, "%s is missing: expected %s", key, expected)
	}
	return s
}

func isEmpty(n ast.Node) bool {
	switch v := n.(type) {
	case *ast.NullNode:
		return true
	case *ast.StringNode:
		return v.Value == ""
	}
	return false
}

// choice is text that must be one of a few words; absent is "".
func (o *yamlObject) choice(key string, words ...string) string {
	s := o.text(key)
	if s != "" && !slices.Contains(words, s) {
		o.reader.faultf(o.members[key], "%s is %q: expected one of %s", key, s, strings.Join(words, ", "))
		return ""
	}
	return s
}

// texts reads a list of text.
func (o *yamlObject) texts(key string) []string {
	var list []string
	for _, n := range o.list(key) {
		s, ok := o.reader.anchors.plain(n).(*ast.StringNode)
		if !ok {
			o.reader.faultf(n, "expected an element of %s to be text, found %s", key, kindText(n))
			continue
		}
		list = append(list, s.Value)
	}
	return list
}

func (o *yamlObject) list(key string) []ast.Node {
	n := o.members[key]
	switch v := n.(type) {
	case nil, *ast.NullNode:
		return nil
	case *ast.SequenceNode:
		return v.Values
	}
	o.reader.faultf(n, "expected %s to be a list, found %s", key, kindText(n))
	return nil
}

// number reads a number of at least low; absent is 0.
func (o *yamlObject) number(key string, low float64) float64 {
	n := o.members[key]
	if n == nil {
		return 0
	}
	var f float64
	raw, err := scalar(nil, n)
	if err == nil {
		err = json.Unmarshal(raw, &f)
	}
	if err != nil || f < low {
		o.reader.faultf(n, "%s: expected a number of at least %v", key, low)
		return 0
	}
	return f
}

// whole reads an integer of at least low; absent is 0.
func (o *yamlObject) whole(key string, low float64) int {
	f := o.number(key, low)
	if f != float64(int(f)) {
		o.faultf(key, "%s: expected a whole number", key)
		return 0
	}
	return int(f)
}

// json reads a member as JSON: a mapping, or text that holds JSON.
func (o *yamlObject) json(key string) json.RawMessage {
	n := o.members[key]
	switch n.(type) {
	case nil, *ast.NullNode:
		return nil
	case *ast.StringNode, *ast.LiteralNode:
		raw := []byte(o.text(key))
		if err := rawjson.Check(raw, rawjson.Options{}); err != nil {
			o.reader.faultf(n, "%s: %v", key, err)
			return nil
		}
		return raw
	}
	c := yamlConverter{anchors: o.reader.anchors}
	raw, err := c.append(nil, n, 0)
	if err != nil {
		o.reader.faultf(n, "%s: %v", key, err)
	}
	return raw
}

// literal reports whether a text was written as a block, whose last line break
// is not meant.
func literal(n ast.Node) bool {
	v, ok := n.(*ast.LiteralNode)
	return ok && v.Start != nil && v.Start.Type != token.FoldedType
}
