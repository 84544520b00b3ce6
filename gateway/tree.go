package gateway

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/toolcrib/toolcrib/internal/yamldoc"
)

// Bounds of a configuration file, so that none of them takes more than a
// moment to refuse.
const (
	maxFileBytes = 1 << 20
	maxTokens    = 50_000  // the parser's time grows with their square
	maxNodes     = 100_000 // values, aliases counted each time
	maxDepth     = yamldoc.MaxDepth
)

// pos is a place in the file; lines and columns count from 1.
type pos struct{ line, column int }

type kind int

const (
	nullKind kind = iota
	boolKind
	intKind
	floatKind
	stringKind
	listKind
	mapKind
)

// String names the kind for people.
func (k kind) String() string {
	return [...]string{"empty", "true or false", "a number", "a number", "a text", "a list", "a mapping"}[k]
}

// node is one value of the file, with aliases and merges resolved.
type node struct {
	kind   kind
	at     pos
	text   string // of a scalar
	items  []*node
	fields []field
}

type field struct {
	key   string
	at    pos
	value *node
}

// treeBuilder turns the parser's tree into nodes.
type treeBuilder struct {
	file    string
	anchors map[string]ast.Node
	active  map[string]bool // anchors being expanded
	nodes   int
	faults  ConfigErrors
}

// readTree returns the only document of data, or nil when there is none.
func readTree(file string, data []byte) (*node, ConfigErrors) {
	b := &treeBuilder{file: file, anchors: map[string]ast.Node{}, active: map[string]bool{}}
	body := b.parse(data)
	if body == nil {
		return nil, b.faults
	}
	return b.convert(body, "", 0), b.faults
}

// maxFaults bounds how many faults are collected.
const maxFaults = 1000

func (b *treeBuilder) fault(at pos, path, problem, expected string) {
	if len(b.faults) >= maxFaults {
		return
	}
	b.faults = append(b.faults, &ConfigError{File: b.file, Line: at.line, Column: at.column, Path: path, Problem: problem, Expected: expected})
}

// parse returns the body of the document, and nil with a fault or when the
// file is empty.
func (b *treeBuilder) parse(data []byte) ast.Node {
	if len(data) > maxFileBytes {
		b.fault(pos{}, "", "the file is too large", fmt.Sprintf("at most %d bytes", maxFileBytes))
		return nil
	}
	tokens := lexer.Tokenize(strings.TrimPrefix(string(data), "\ufeff"))
	if len(tokens) > maxTokens {
		b.fault(placeOf(tokens[maxTokens]), "", "the file holds too much", fmt.Sprintf("at most %d words and signs", maxTokens))
		return nil
	}
	if t := yamldoc.TooDeep(tokens); t != nil {
		b.fault(placeOf(t), "", "nested too deeply", fmt.Sprintf("at most %d levels", maxDepth))
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		b.syntax(err)
		return nil
	}
	return b.onlyDocument(file)
}

func (b *treeBuilder) onlyDocument(file *ast.File) ast.Node {
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if _, comment := doc.Body.(*ast.CommentGroupNode); comment {
			continue
		}
		if body != nil {
			b.fault(place(doc.Body), "", "a second document", "one document in the file")
			return nil
		}
		body = doc.Body
	}
	return body
}

func (b *treeBuilder) syntax(err error) {
	var at pos
	message := "not YAML"
	var located yaml.Error
	if errors.As(err, &located) {
		message = "not YAML: " + firstLine(located.GetMessage())
		at = placeOf(located.GetToken())
	}
	b.fault(at, "", message, "")
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// place is where a value begins; a block of pairs begins at its first key.
func place(n ast.Node) pos {
	switch n := n.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return place(n.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return place(n.Key)
	}
	return placeOf(n.GetToken())
}

func placeOf(t *token.Token) pos {
	if t == nil || t.Position == nil {
		return pos{}
	}
	return pos{t.Position.Line, t.Position.Column}
}

// convert returns the node of n. After a fault the node is empty.
func (b *treeBuilder) convert(n ast.Node, path string, depth int) *node {
	out := &node{at: place(n)}
	if b.nodes++; b.nodes > maxNodes || depth > maxDepth {
		if b.nodes <= maxNodes+1 {
			b.nodes = maxNodes + 1
			b.fault(out.at, path, "too many values, or nested too deeply", fmt.Sprintf("at most %d values and %d levels", maxNodes, maxDepth))
		}
		return out
	}
	switch n := n.(type) {
	case *ast.AnchorNode:
		b.anchors[n.Name.GetToken().Value] = n.Value
		return b.convert(n.Value, path, depth+1)
	case *ast.AliasNode:
		return b.alias(n, path, depth)
	case *ast.SequenceNode:
		out.kind = listKind
		for i, item := range n.Values {
			out.items = append(out.items, b.convert(item, fmt.Sprintf("%s[%d]", path, i), depth+1))
		}
	case *ast.MappingNode:
		out.kind = mapKind
		b.mapping(out, n.Values, path, depth)
	case *ast.MappingValueNode:
		out.kind = mapKind
		b.mapping(out, []*ast.MappingValueNode{n}, path, depth)
	default:
		b.scalar(out, n, path)
	}
	return out
}

func (b *treeBuilder) alias(n *ast.AliasNode, path string, depth int) *node {
	name := n.Value.GetToken().Value
	target, known := b.anchors[name]
	if !known || b.active[name] {
		b.fault(place(n), path, fmt.Sprintf("the alias %q names no anchor before it", name), "")
		return &node{at: place(n)}
	}
	b.active[name] = true
	defer delete(b.active, name)
	return b.convert(target, path, depth+1)
}

func (b *treeBuilder) scalar(out *node, n ast.Node, path string) {
	switch n := n.(type) {
	case *ast.NullNode:
		out.kind = nullKind
	case *ast.BoolNode:
		out.kind, out.text = boolKind, fmt.Sprint(n.Value)
	case *ast.IntegerNode:
		out.kind, out.text = intKind, fmt.Sprint(n.Value)
	case *ast.FloatNode:
		out.kind, out.text = floatKind, n.GetToken().Value
	case *ast.InfinityNode, *ast.NanNode:
		out.kind, out.text = floatKind, n.GetToken().Value
	case *ast.StringNode:
		out.kind, out.text = stringKind, n.Value
	case *ast.LiteralNode:
		out.kind, out.text = stringKind, n.Value.Value
	default:
		b.fault(out.at, path, "tags and directives are not supported", "plain YAML")
	}
}

// mapping adds the pairs of a mapping to out: its own first, which win over
// merged ones.
func (b *treeBuilder) mapping(out *node, pairs []*ast.MappingValueNode, path string, depth int) {
	var merged []*node
	for _, pair := range pairs {
		if pair.Key.IsMergeKey() {
			merged = append(merged, b.convert(pair.Value, join(path, "<<"), depth+1))
			continue
		}
		f, ok := b.pair(pair, path, depth)
		if !ok {
			continue
		}
		if first := out.find(f.key); first != nil {
			b.fault(f.at, join(path, f.key), "the key stands twice in one mapping", fmt.Sprintf("it once; the first is in line %d", first.at.line))
			continue
		}
		out.fields = append(out.fields, f)
	}
	for _, m := range merged {
		b.merge(out, m, path)
	}
}

func (b *treeBuilder) pair(pair *ast.MappingValueNode, path string, depth int) (field, bool) {
	var key ast.Node = pair.Key
	if explicit, ok := key.(*ast.MappingKeyNode); ok {
		key = explicit.Value
	}
	k := b.convert(key, path, depth+1)
	if k.kind == listKind || k.kind == mapKind || k.kind == nullKind {
		b.fault(k.at, path, "a key that is not a word", "a plain key")
		return field{}, false
	}
	return field{key: k.text, at: k.at, value: b.convert(pair.Value, join(path, k.text), depth+1)}, true
}

func (b *treeBuilder) merge(out, from *node, path string) {
	switch from.kind {
	case mapKind:
		for _, f := range from.fields {
			if out.find(f.key) == nil {
				out.fields = append(out.fields, f)
			}
		}
	case listKind:
		for _, item := range from.items {
			b.merge(out, item, path)
		}
	default:
		b.fault(from.at, join(path, "<<"), "is "+from.kind.String(), "a mapping or a list of mappings")
	}
}

func (n *node) find(key string) *field {
	for i := range n.fields {
		if n.fields[i].key == key {
			return &n.fields[i]
		}
	}
	return nil
}
