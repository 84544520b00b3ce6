package httptool

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// The bounds of a YAML document: what its aliases may grow it to, in bytes,
// and how deep it may nest.
const (
	maxExpanded  = 128 << 20
	maxYAMLDepth = 200
)

// parseYAML parses a document's first part. Its errors carry a position.
func parseYAML(src []byte) (ast.Node, error) {
	file, err := parser.ParseBytes(src, 0)
	if err != nil {
		return nil, err
	}
	for _, doc := range file.Docs {
		if doc.Body != nil {
			return doc.Body, nil
		}
	}
	return nil, errors.New("the document is empty")
}

// yamlPosition returns where a YAML error is, and what it says in one line; 0
// when it does not know.
func yamlPosition(err error) (line, column int, message string) {
	var at yaml.Error
	if !errors.As(err, &at) {
		return 0, 0, err.Error()
	}
	if t := at.GetToken(); t != nil && t.Position != nil {
		line, column = t.Position.Line, t.Position.Column
	}
	return line, column, at.GetMessage()
}

// yamlToJSON turns a YAML tree into JSON: members keep their order, numbers
// their spelling where JSON has it, and any scalar key becomes a string.
func yamlToJSON(root ast.Node) (json.RawMessage, error) {
	c := &yamlConverter{anchors: map[string]ast.Node{}}
	out, err := c.append(nil, root, 0)
	if err != nil {
		return nil, err
	}
	return out, nil
}

type yamlConverter struct{ anchors map[string]ast.Node }

func (c *yamlConverter) append(dst []byte, n ast.Node, depth int) ([]byte, error) {
	if depth > maxYAMLDepth {
		return nil, yamlErrorf(n, "nested deeper than %d levels", maxYAMLDepth)
	}
	if len(dst) > maxExpanded {
		return nil, yamlErrorf(n, "the document expands to more than %d bytes", maxExpanded)
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return c.mapping(dst, n.Values, depth)
	case *ast.MappingValueNode:
		return c.mapping(dst, []*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		return c.sequence(dst, n, depth)
	case *ast.AnchorNode:
		c.anchors[n.Name.GetToken().Value] = n.Value
		return c.append(dst, n.Value, depth+1)
	case *ast.AliasNode:
		target, err := c.alias(n)
		if err != nil {
			return nil, err
		}
		return c.append(dst, target, depth+1)
	case *ast.TagNode:
		return c.tagged(dst, n, depth)
	}
	return scalar(dst, n)
}

func (c *yamlConverter) alias(n *ast.AliasNode) (ast.Node, error) {
	name := n.Value.GetToken().Value
	target, ok := c.anchors[name]
	if !ok {
		return nil, yamlErrorf(n, "the alias *%s has no anchor", name)
	}
	return target, nil
}

// tagged honours !!str; other tags do not change what JSON can say.
func (c *yamlConverter) tagged(dst []byte, n *ast.TagNode, depth int) ([]byte, error) {
	if n.Value == nil {
		return append(dst, "null"...), nil
	}
	if n.Start != nil && n.Start.Value == "!!str" {
		if s, ok := n.Value.(*ast.StringNode); ok {
			return rawjson.AppendQuoted(dst, s.Value), nil
		}
		return rawjson.AppendQuoted(dst, n.Value.GetToken().Value), nil
	}
	return c.append(dst, n.Value, depth+1)
}

func (c *yamlConverter) sequence(dst []byte, n *ast.SequenceNode, depth int) ([]byte, error) {
	dst = append(dst, '[')
	var err error
	for i, v := range n.Values {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = c.append(dst, v, depth+1); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

func (c *yamlConverter) mapping(dst []byte, values []*ast.MappingValueNode, depth int) ([]byte, error) {
	dst = append(dst, '{')
	start := len(dst)
	own := map[string]bool{}
	for _, v := range values {
		own[keyText(v.Key)] = true
	}
	var err error
	for _, v := range values {
		if _, merge := v.Key.(*ast.MergeKeyNode); merge {
			dst, err = c.merge(dst, v.Value, own, depth+1)
		} else {
			dst = appendKey(dst, keyText(v.Key))
			dst, err = c.append(dst, v.Value, depth+1)
		}
		if err != nil {
			return nil, err
		}
	}
	// Every member wrote a comma before its key; the first has none.
	if len(dst) > start {
		copy(dst[start:], dst[start+1:])
		dst = dst[:len(dst)-1]
	}
	return append(dst, '}'), nil
}

func appendKey(dst []byte, key string) []byte {
	return append(rawjson.AppendQuoted(append(dst, ','), key), ':')
}

// merge writes the members of a merge key ("<<") that the mapping does not
// have itself.
func (c *yamlConverter) merge(dst []byte, n ast.Node, own map[string]bool, depth int) ([]byte, error) {
	if depth > maxYAMLDepth {
		return nil, yamlErrorf(n, "nested deeper than %d levels", maxYAMLDepth)
	}
	switch v := n.(type) {
	case *ast.AliasNode:
		target, err := c.alias(v)
		if err != nil {
			return nil, err
		}
		return c.merge(dst, target, own, depth+1)
	case *ast.AnchorNode:
		c.anchors[v.Name.GetToken().Value] = v.Value
		return c.merge(dst, v.Value, own, depth+1)
	case *ast.SequenceNode:
		var err error
		for _, item := range v.Values {
			if dst, err = c.merge(dst, item, own, depth+1); err != nil {
				return nil, err
			}
		}
		return dst, nil
	case *ast.MappingValueNode:
		return c.mergeMembers(dst, []*ast.MappingValueNode{v}, own, depth)
	case *ast.MappingNode:
		return c.mergeMembers(dst, v.Values, own, depth)
	}
	return nil, yamlErrorf(n, "a merge key takes a mapping")
}

func (c *yamlConverter) mergeMembers(dst []byte, values []*ast.MappingValueNode, own map[string]bool, depth int) ([]byte, error) {
	var err error
	for _, v := range values {
		key := keyText(v.Key)
		if own[key] {
			continue
		}
		own[key] = true
		if dst, err = c.append(appendKey(dst, key), v.Value, depth+1); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

func keyText(n ast.MapKeyNode) string {
	switch k := n.(type) {
	case *ast.StringNode:
		return k.Value
	case *ast.MappingKeyNode:
		if s, ok := k.Value.(*ast.StringNode); ok {
			return s.Value
		}
		return k.Value.GetToken().Value
	}
	return n.GetToken().Value
}

func scalar(dst []byte, n ast.Node) ([]byte, error) {
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return append(dst, "null"...), nil
	case *ast.StringNode:
		return rawjson.AppendQuoted(dst, n.Value), nil
	case *ast.LiteralNode:
		return rawjson.AppendQuoted(dst, n.Value.Value), nil
	case *ast.BoolNode:
		if n.Value {
			return append(dst, "true"...), nil
		}
		return append(dst, "false"...), nil
	case *ast.IntegerNode:
		return number(dst, n.GetToken().Value, n.Value)
	case *ast.FloatNode:
		return number(dst, n.GetToken().Value, n.Value)
	case *ast.InfinityNode, *ast.NanNode:
		return nil, yamlErrorf(n, "%s has no JSON", n.GetToken().Value)
	}
	return nil, yamlErrorf(n, "unexpected %s", strings.ToLower(n.Type().String()))
}

func number(dst []byte, spelled string, value any) ([]byte, error) {
	if rawjson.KindOf([]byte(spelled)) == rawjson.KindNumber && rawjson.Valid([]byte(spelled)) {
		return append(dst, spelled...), nil
	}
	enc, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return append(dst, enc...), nil
}

// yamlError is a fault at a node of a YAML tree.
type yamlError struct {
	node    ast.Node
	message string
}

func (e *yamlError) Error() string { return e.message }

func yamlErrorf(n ast.Node, format string, args ...any) error {
	return &yamlError{node: n, message: fmt.Sprintf(format, args...)}
}

// nodePosition returns the line and column of a node, counted from 1, or 0.
func nodePosition(n ast.Node) (line, column int) {
	if n == nil {
		return 0, 0
	}
	t := n.GetToken()
	if t == nil || t.Position == nil {
		return 0, 0
	}
	return t.Position.Line, t.Position.Column
}

// nodeAt walks a JSON pointer's keys through a YAML tree as far as it leads.
func nodeAt(n ast.Node, keys []string) ast.Node {
	at := n
	for _, key := range keys {
		next, position := childAt(at, key)
		if next == nil {
			break
		}
		at, n = next, position
	}
	return n
}

// childAt returns a child's value, and the node that shows where it is: the
// key, for a member.
func childAt(n ast.Node, key string) (value, position ast.Node) {
	switch v := n.(type) {
	case *ast.AnchorNode:
		return childAt(v.Value, key)
	case *ast.MappingValueNode:
		if keyText(v.Key) == key {
			return v.Value, v.Key
		}
	case *ast.MappingNode:
		for _, m := range v.Values {
			if keyText(m.Key) == key {
				return m.Value, m.Key
			}
		}
	case *ast.SequenceNode:
		if i, ok := arrayIndex(key); ok && i < len(v.Values) {
			return v.Values[i], v.Values[i]
		}
	}
	return nil, nil
}
