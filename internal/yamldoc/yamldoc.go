// Package yamldoc reads small YAML documents strictly, in bounded time and memory,
// and tells where in them a value stands.
package yamldoc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a document, so that none takes more than a moment to refuse.
const (
	maxBytes  = 1 << 20
	maxTokens = 50_000 // the parser's time grows with their square
	maxValues = 100_000
	// MaxDepth is how many levels a document nests at most.
	MaxDepth  = 64
	maxColumn = 1000 // where a block may begin: how deep blocks stand in one another
)

// Doc is a document. Decode reads it; it does not change afterwards.
type Doc struct {
	// File names the document in errors.
	File string
	// Data is the text.
	Data []byte
}

// Fault is something wrong with a value of a document, or of what was made
// without one.
type Fault struct {
	// File is empty and Line 0 when there is no document.
	File         string
	Line, Column int
	// Path leads to the value, such as nodes[0].inputs, or is empty.
	Path string
	Err  error
}

// Error returns "file:line:column: path: what is wrong".
func (f *Fault) Error() string {
	var b strings.Builder
	switch {
	case f.Line > 0:
		fmt.Fprintf(&b, "%s:%d:%d: ", f.File, f.Line, f.Column)
	case f.File != "":
		fmt.Fprintf(&b, "%s: ", f.File)
	}
	if f.Path != "" {
		b.WriteString(f.Path + ": ")
	}
	return b.String() + f.Err.Error()
}

// Unwrap returns what is wrong.
func (f *Fault) Unwrap() error { return f.Err }

// Fault states what is wrong with the value at a path, and its place. A nil Doc
// has no places.
func (d *Doc) Fault(path string, err error) *Fault {
	f := &Fault{Path: path, Err: err}
	if d != nil {
		f.File = d.File
		f.Line, f.Column = d.Position(path)
	}
	return f
}

// Decode reads the document into a struct whose fields carry yaml tags. With
// strict, a key that the struct does not have is an error. Errors are *Fault.
func (d *Doc) Decode(into any, strict bool) error {
	if err := d.bounded(); err != nil {
		return err
	}
	var opts []yaml.DecodeOption
	if strict {
		opts = append(opts, yaml.DisallowUnknownField())
	}
	return d.located(yaml.NewDecoder(bytes.NewReader(d.Data), opts...).Decode(into))
}

// located states an error of the parser as a Fault.
func (d *Doc) located(err error) error {
	if err == nil {
		return nil
	}
	f := &Fault{File: d.File, Err: err}
	if errors.Is(err, io.EOF) {
		f.Err = errors.New("there is nothing in the document")
	}
	if at, ok := errors.AsType[yaml.Error](err); ok {
		message, _, _ := strings.Cut(at.GetMessage(), "\n")
		f.Err = errors.New(message)
		if wrong, ok := errors.AsType[*yaml.TypeError](err); ok {
			f.Err = fmt.Errorf("expected %s, found %s", kind(wrong.DstType), kind(wrong.SrcType))
		}
		if t := at.GetToken(); t != nil {
			f.Line, f.Column = t.Position.Line, t.Position.Column
		}
	}
	return f
}

// kind names what values of a Go type are in a document.
func kind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "a mapping"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	if t.ConvertibleTo(reflect.TypeFor[int]()) {
		return "a whole number"
	}
	return "something else"
}

// bounded refuses what would take long to read.
func (d *Doc) bounded() error {
	if len(d.Data) > maxBytes {
		return &Fault{File: d.File, Err: fmt.Errorf("the document has %d bytes; at most %d are allowed", len(d.Data), maxBytes)}
	}
	tokens := lexer.Tokenize(string(d.Data))
	if len(tokens) > maxTokens {
		return d.at(tokens[maxTokens], fmt.Errorf("the document holds more than %d words and signs", maxTokens))
	}
	if t := TooDeep(tokens); t != nil {
		return d.at(t, fmt.Errorf("nested more than %d levels deep", MaxDepth))
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return d.located(err)
	}
	c, seen := &counter{sizes: map[string]int{}}, false
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if seen {
			return d.at(doc.Body.GetToken(), errors.New("a second document; expected one in the file"))
		}
		seen = true
		if c.count(doc.Body) > maxValues {
			return &Fault{File: d.File, Err: fmt.Errorf("the document holds more than %d values, counting aliases each time", maxValues)}
		}
		if c.unknown != nil {
			return d.at(c.unknown, fmt.Errorf("the alias %q names no anchor before it", c.unknown.Value))
		}
	}
	return nil
}

func (d *Doc) at(t *token.Token, err error) error {
	return &Fault{File: d.File, Line: t.Position.Line, Column: t.Position.Column, Err: err}
}

// TooDeep returns the token of more than MaxDepth levels of nesting, which would
// exhaust the parser, as it recurses; nil when there is none.
func TooDeep(tokens token.Tokens) *token.Token {
	flow, inline, line := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			line, inline = t.Position.Line, 0
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow--
		case token.SequenceEntryType, token.MappingKeyType, token.MappingValueType, token.TagType, token.AnchorType:
			if flow == 0 {
				inline++
			}
			if flow == 0 && t.Type != token.MappingValueType && t.Position.Column > maxColumn {
				return t
			}
		}
		if flow > MaxDepth || inline > MaxDepth {
			return t
		}
	}
	return nil
}

// counter counts values as they would be decoded, without decoding them.
type counter struct {
	sizes   map[string]int // of anchors that are complete
	unknown *token.Token
}

func (c *counter) count(n ast.Node) int {
	switch n := n.(type) {
	case *ast.AnchorNode:
		size := c.count(n.Value)
		c.sizes[n.Name.GetToken().Value] = size
		return size
	case *ast.AliasNode:
		t := n.Value.GetToken()
		size, ok := c.sizes[t.Value]
		if !ok && c.unknown == nil {
			c.unknown = t
		}
		return min(size+1, maxValues+1)
	case *ast.SequenceNode:
		return c.sum(n.Values...)
	case *ast.MappingNode:
		total := 1
		for _, pair := range n.Values {
			total = min(total+c.count(pair), maxValues+1)
		}
		return total
	case *ast.MappingValueNode:
		return c.sum(n.Value)
	case *ast.TagNode:
		return c.count(n.Value)
	}
	return 1
}

func (c *counter) sum(list ...ast.Node) int {
	total := 1
	for _, n := range list {
		total = min(total+c.count(n), maxValues+1)
	}
	return total
}
