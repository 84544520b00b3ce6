package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// Limits of a schema.
const (
	// MaxSchemaBytes is the size of the largest schema, resources apart.
	MaxSchemaBytes = 4 << 20
	// MaxSchemaObjects is how many JSON objects a schema holds at most.
	MaxSchemaObjects = 20_000
	// MaxSchemaDepth is how deep arrays and objects of a schema nest.
	MaxSchemaDepth = 256
	// MaxDepth is how deep arrays and objects of a document nest.
	MaxDepth = rawjson.DefaultMaxDepth

	maxPath         = 256 // of a path or URL in an error
	maxPatternBytes = 16 << 10
	maxExponent     = 4096
)

// Draft is a version of JSON Schema.
type Draft int

// The drafts. The zero Draft is 2020-12.
const (
	DraftDefault Draft = 0
	Draft4       Draft = 4
	Draft6       Draft = 6
	Draft7       Draft = 7
	Draft2019    Draft = 2019
	Draft2020    Draft = 2020
)

// Options change how a schema is compiled. The zero value, like nil, is the
// default.
type Options struct {
	// Draft applies to schemas without $schema.
	Draft Draft
	// AssertFormat makes "format" an assertion. By default it is an annotation,
	// in every draft, unless a 2020-12 meta-schema has the vocabulary
	// format-assertion.
	AssertFormat bool
	// Resources are schemas that $ref and $schema may name, by absolute URL.
	// Nothing is ever loaded from a network or a file system.
	Resources map[string]json.RawMessage
	// Owned says that nobody changes the text after it was given to Compile,
	// which then keeps it and not a copy.
	Owned bool
}

// A Schema is a compiled JSON Schema. It is immutable and safe for concurrent
// use.
type Schema struct {
	raw json.RawMessage
	// root is made at the first check of a schema that is known to be valid
	// before: most tools of a large catalog are never called.
	root  atomic.Pointer[node]
	draft Draft     // of a schema without $schema
	pool  sync.Pool // of *checker
}

// baseURL is what relative references of a schema without an absolute $id
// resolve against.
const baseURL = "schema:///root.json"

// Compile compiles a schema. Empty raw means the schema that accepts
// everything. The error is a [*CompileError].
func Compile(raw json.RawMessage, opts *Options) (*Schema, error) {
	if opts == nil {
		opts = &Options{}
	}
	if raw = rawjson.Trim(raw); !opts.Owned {
		raw = bytes.Clone(raw)
	}
	if len(raw) == 0 {
		return newSchema(nil, anyNode, opts), nil
	}
	if err := checkText(raw); err != nil {
		return nil, err
	}
	verdict := survey(raw, opts)
	if verdict == common {
		return newSchema(raw, nil, opts), nil
	}
	if verdict == early {
		if root := nodesOfCommon(raw, opts); root != nil {
			return newSchema(raw, root, opts), nil
		}
	}
	root, err := nodesOfAny(raw, opts)
	if err != nil {
		return nil, err
	}
	return newSchema(raw, root, opts), nil
}

// nodesOfAny returns the nodes of a schema of any kind, checked against its
// meta-schema.
func nodesOfAny(raw []byte, opts *Options) (*node, error) {
	for _, name := range slices.Sorted(maps.Keys(opts.Resources)) {
		if err := checkText(rawjson.Trim(opts.Resources[name])); err != nil {
			return nil, &CompileError{Reason: fmt.Sprintf("resource %q: %v", clip(name, maxPath), err), Err: err}
		}
	}
	graph, err := newLinker(opts, metaSchema).link(baseURL, raw)
	if err != nil {
		return nil, err
	}
	return translate(graph)
}

// nodesOfCommon returns the nodes of a schema that needs no linker, else nil.
func nodesOfCommon(raw []byte, opts *Options) *node {
	root, ok := readCommon(raw, opts)
	if !ok {
		return nil
	}
	n, err := translate(&linkedGraph{root: root})
	if err != nil {
		return nil
	}
	return n
}

func newSchema(raw json.RawMessage, root *node, opts *Options) *Schema {
	s := &Schema{raw: raw, draft: opts.Draft}
	s.root.Store(root)
	s.pool.New = newChecker
	return s
}

func newChecker() any { return new(checker) }

// nodes returns the compiled schema.
func (s *Schema) nodes() *node {
	if root := s.root.Load(); root != nil {
		return root
	}
	root := nodesOfCommon(s.raw, &Options{Draft: s.draft})
	if root == nil {
		root = neverNode // it was found to be common, so that this cannot be
	}
	s.root.CompareAndSwap(nil, root)
	return s.root.Load()
}

// Raw returns the schema as it was given to [Compile], nil when it was empty.
// The caller must not modify it.
func (s *Schema) Raw() json.RawMessage { return s.raw }

// Trivial reports whether the schema accepts every well-formed document.
func (s *Schema) Trivial() bool { return s.nodes().any }

// checkText makes sure that a schema is well-formed, bounded and unambiguous.
func checkText(raw []byte) error {
	if len(raw) > MaxSchemaBytes {
		return &CompileError{Reason: fmt.Sprintf("larger than %d bytes", MaxSchemaBytes)}
	}
	if err := rawjson.Check(raw, rawjson.Options{MaxDepth: MaxSchemaDepth}); err != nil {
		err = documentError(err)
		return &CompileError{Reason: err.Error(), Err: err}
	}
	if bytes.Count(raw, []byte{'{'}) > MaxSchemaObjects && countObjects(raw) > MaxSchemaObjects {
		return &CompileError{Reason: fmt.Sprintf("more than %d objects", MaxSchemaObjects)}
	}
	if at := unboundedNumber(raw); at >= 0 {
		return &CompileError{Path: rawjson.PointerTo(raw, at), Reason: "number out of range"}
	}
	return nil
}

// decode parses a well-formed value, keeping numbers as they are written.
func decode(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return v, nil
}

// countObjects returns how many objects a well-formed value holds.
func countObjects(raw []byte) int {
	n := 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			end, _, _ := rawjson.ScanString(raw, i)
			i = end - 1
		case '{':
			n++
		}
	}
	return n
}

// unboundedNumber returns the offset of the first number in a well-formed value
// that is too long or too large for exact arithmetic, or -1.
func unboundedNumber(raw []byte) int {
	for i := 0; i < len(raw); {
		switch c := raw[i]; {
		case c == '"':
			i, _, _ = rawjson.ScanString(raw, i)
		case c == '-' || '0' <= c && c <= '9':
			end, _, _ := rawjson.ScanNumber(raw, i)
			if end-i > 3*maxExponent || !parseDecimal(raw[i:end]).bounded() {
				return i
			}
			i = end
		default:
			i++
		}
	}
	return -1
}

// local returns a URL as a reader of the schema knows it.
func local(url string) string {
	url = strings.ReplaceAll(url, baseURL, "")
	return clip(strings.ReplaceAll(url, "schema:///", ""), maxPath)
}
