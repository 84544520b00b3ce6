package expr

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Shape is what is known of a value: a part of a JSON Schema. The zero Shape
// knows nothing.
type Shape struct {
	root any // the document, for its references
	node map[string]any
}

// NewShape reads a JSON Schema. An empty schema, and one that says nothing about
// members, gives a Shape that knows nothing.
func NewShape(schema json.RawMessage) (Shape, error) {
	v, err := Decode(schema)
	if err != nil {
		return Shape{}, fmt.Errorf("expr: the schema is not JSON: %w", err)
	}
	node, _ := v.(map[string]any)
	return Shape{root: v, node: node}, nil
}

// ObjectOf returns the shape of an object that has just these members.
func ObjectOf(members map[string]Shape) Shape {
	properties := map[string]any{}
	for name, s := range members {
		properties[name] = s
	}
	return Shape{node: map[string]any{"type": "object", "properties": properties, "additionalProperties": false}}
}

// TypeOf returns the shape of a value of a type of JSON Schema.
func TypeOf(name string) Shape { return Shape{node: map[string]any{"type": name}} }

// ListOf returns the shape of a list of such elements.
func ListOf(element Shape) Shape {
	return Shape{node: map[string]any{"type": "array", "items": element}}
}

// maxReferences bounds how many references are followed for one step.
const maxReferences = 32

// resolved follows the references of the shape.
func (s Shape) resolved() Shape {
	for range maxReferences {
		pointer, ok := s.node["$ref"].(string)
		if !ok {
			return s
		}
		node, ok := lookUp(s.root, pointer)
		if !ok {
			return Shape{}
		}
		s = Shape{root: s.root, node: node}
	}
	return Shape{}
}

// lookUp follows a reference inside the document.
func lookUp(root any, pointer string) (map[string]any, bool) {
	path, ok := strings.CutPrefix(pointer, "#")
	if !ok {
		return nil, false
	}
	at := root
	for token := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if token == "" && path == "" {
			break
		}
		object, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		at = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(token)]
	}
	node, ok := at.(map[string]any)
	return node, ok
}

// open reports whether the shape is composed in a way that this package does
// not look into.
func (s Shape) open() bool {
	for _, key := range []string{"anyOf", "oneOf", "allOf", "not", "if", "patternProperties", "$dynamicRef", "dependentSchemas", "unevaluatedProperties"} {
		if _, ok := s.node[key]; ok {
			return true
		}
	}
	return s.node == nil
}

// Types returns the JSON types that the value may have, sorted, or nil when
// they are not known.
func (s Shape) Types() []string {
	s = s.resolved()
	if s.open() {
		return nil
	}
	switch t := s.node["type"].(type) {
	case string:
		return []string{t}
	case []any:
		var list []string
		for _, e := range t {
			if name, ok := e.(string); ok {
				list = append(list, name)
			}
		}
		slices.Sort(list)
		return list
	}
	return nil
}

// Member returns the shape of a member. It is an error if the value cannot have
// one of that name.
func (s Shape) Member(name string) (Shape, error) {
	s = s.resolved()
	if s.open() {
		return Shape{}, nil
	}
	if t := s.Types(); t != nil && !slices.Contains(t, "object") {
		return Shape{}, fmt.Errorf("it is of type %s and has no members", strings.Join(t, " or "))
	}
	properties, _ := s.node["properties"].(map[string]any)
	if member, ok := properties[name]; ok {
		return s.at(member), nil
	}
	switch rest := s.node["additionalProperties"].(type) {
	case bool:
		if !rest {
			return Shape{}, absent(name, properties)
		}
	case map[string]any:
		return s.at(rest), nil
	}
	return Shape{}, nil
}

// Element returns the shape of an element of a list. It is an error if the value
// cannot be a list.
func (s Shape) Element() (Shape, error) {
	s = s.resolved()
	if s.open() {
		return Shape{}, nil
	}
	if t := s.Types(); t != nil && !slices.Contains(t, "array") {
		return Shape{}, fmt.Errorf("it is of type %s and has no elements", strings.Join(t, " or "))
	}
	return s.at(s.node["items"]), nil
}

func (s Shape) at(member any) Shape {
	if shape, ok := member.(Shape); ok {
		return shape
	}
	node, _ := member.(map[string]any)
	return Shape{root: s.root, node: node}
}

func absent(name string, properties map[string]any) error {
	if len(properties) == 0 {
		return fmt.Errorf("there is no %q: no members are declared", name)
	}
	return fmt.Errorf("there is no %q; expected one of %s", name, strings.Join(slices.Sorted(maps.Keys(properties)), ", "))
}

// CanBeObject returns an error for a shape of which no value is an object.
func (s Shape) CanBeObject() error {
	if have := s.Types(); have != nil && !slices.Contains(have, "object") {
		return fmt.Errorf("expected the schema of an object, found one of %s", strings.Join(have, " or "))
	}
	return nil
}
