package yamldoc

import (
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Position returns where the value at a path stands, or the nearest one around it
// that the document has; lines and columns count from 1. It is for a document
// that was decoded.
func (d *Doc) Position(path string) (line, column int) {
	file, err := parser.ParseBytes(d.Data, 0)
	if err != nil {
		return 1, 1
	}
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		w := &walker{anchors: map[string]ast.Node{}}
		w.learn(doc.Body)
		return start(w.find(doc.Body, path))
	}
	return 1, 1
}

// walker follows a path through the nodes of a document.
type walker struct{ anchors map[string]ast.Node }

// learn notes what the anchors of the document stand for.
func (w *walker) learn(n ast.Node) {
	ast.Walk(visitor(func(n ast.Node) {
		if a, ok := n.(*ast.AnchorNode); ok {
			w.anchors[a.Name.GetToken().Value] = a.Value
		}
	}), n)
}

type visitor func(ast.Node)

// Visit implements ast.Visitor.
func (v visitor) Visit(n ast.Node) ast.Visitor {
	v(n)
	return v
}

func (w *walker) find(n ast.Node, path string) ast.Node {
	for path != "" {
		next, rest := w.step(w.plain(n), path)
		if next == nil {
			return n
		}
		n, path = next, rest
	}
	return n
}

// plain returns what an anchor or alias stands for.
func (w *walker) plain(n ast.Node) ast.Node {
	switch v := n.(type) {
	case *ast.AnchorNode:
		return v.Value
	case *ast.AliasNode:
		return w.anchors[v.Value.GetToken().Value]
	case *ast.TagNode:
		return v.Value
	}
	return n
}

// step goes one key or index down.
func (w *walker) step(n ast.Node, path string) (next ast.Node, rest string) {
	switch n := n.(type) {
	case *ast.SequenceNode:
		index, rest, ok := cutIndex(path)
		if !ok || index >= len(n.Values) {
			return nil, ""
		}
		return n.Values[index], rest
	case *ast.MappingNode:
		return member(n.Values, strings.TrimPrefix(path, "."))
	case *ast.MappingValueNode:
		return member([]*ast.MappingValueNode{n}, strings.TrimPrefix(path, "."))
	}
	return nil, ""
}

func cutIndex(path string) (index int, rest string, ok bool) {
	inner, found := strings.CutPrefix(path, "[")
	number, rest, closed := strings.Cut(inner, "]")
	index, err := strconv.Atoi(number)
	return index, rest, found && closed && err == nil && index >= 0
}

// member finds the longest key that the path begins with, as a key may hold what
// separates others.
func member(pairs []*ast.MappingValueNode, path string) (value ast.Node, rest string) {
	longest := -1
	for _, pair := range pairs {
		key := pair.Key.GetToken().Value
		after, ok := strings.CutPrefix(path, key)
		if !ok || len(key) <= longest || after != "" && after[0] != '.' && after[0] != '[' {
			continue
		}
		longest, value, rest = len(key), pair.Value, after
	}
	return value, rest
}

// start is where a value begins; a block of pairs begins at its first key.
func start(n ast.Node) (line, column int) {
	switch v := n.(type) {
	case *ast.MappingNode:
		if !v.IsFlowStyle && len(v.Values) > 0 {
			return start(v.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return start(v.Key)
	}
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 1, 1
	}
	at := n.GetToken().Position
	return at.Line, at.Column
}
