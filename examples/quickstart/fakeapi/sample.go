package main

import (
	"maps"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

// maxDepth ends recursive schemas: below it, optional members are left out and arrays are empty.
const maxDepth = 3

// sample makes a value that fits the schema. Members of the outermost object, or of the objects in the
// outermost array, take their value from values when there is one of the right kind.
func sample(ref *openapi3.SchemaRef, values map[string]any) any {
	return sampler{values: values}.value(ref, 0)
}

type sampler struct {
	values map[string]any
}

func (s sampler) value(ref *openapi3.SchemaRef, depth int) any {
	if ref == nil || ref.Value == nil {
		return nil
	}
	schema := ref.Value
	switch {
	case schema.Example != nil:
		return schema.Example
	case len(schema.Enum) > 0:
		return schema.Enum[0]
	case len(schema.AllOf) > 0:
		return s.merged(schema, depth)
	case len(schema.OneOf) > 0:
		return s.value(schema.OneOf[0], depth)
	case len(schema.AnyOf) > 0:
		return s.value(schema.AnyOf[0], depth)
	case schema.Type.Is("array"):
		return s.array(schema, depth)
	case schema.Type.Is("object") || len(schema.Properties) > 0:
		return s.object(schema, depth)
	default:
		return scalar(schema)
	}
}

func (s sampler) array(schema *openapi3.Schema, depth int) any {
	if depth >= maxDepth {
		return []any{}
	}
	return []any{s.value(schema.Items, depth)}
}

func (s sampler) object(schema *openapi3.Schema, depth int) map[string]any {
	object := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		property := schema.Properties[name]
		if depth >= maxDepth && !slices.Contains(schema.Required, name) {
			continue
		}
		if depth > 2*maxDepth {
			break
		}
		object[name] = s.member(name, property, depth)
	}
	return object
}

func (s sampler) member(name string, property *openapi3.SchemaRef, depth int) any {
	value := s.value(property, depth+1)
	given, ok := s.values[name]
	if depth > 0 || !ok || !sameKind(given, value) {
		return value
	}
	return given
}

func sameKind(a, b any) bool {
	switch a.(type) {
	case string:
		_, ok := b.(string)
		return ok
	case bool:
		_, ok := b.(bool)
		return ok
	default:
		return false
	}
}

// merged makes one object of what every part of allOf describes.
func (s sampler) merged(schema *openapi3.Schema, depth int) any {
	object := s.object(schema, depth)
	for _, part := range schema.AllOf {
		value := s.value(part, depth)
		members, ok := value.(map[string]any)
		if !ok {
			return value
		}
		maps.Copy(object, members)
	}
	return object
}

func scalar(schema *openapi3.Schema) any {
	switch {
	case schema.Type.Is("integer"), schema.Type.Is("number"):
		if schema.Min != nil {
			return *schema.Min
		}
		return 1
	case schema.Type.Is("boolean"):
		return true
	default: // text, or a schema that allows anything
		return text(schema.Format)
	}
}

// text is a string of the given format.
func text(format string) string {
	switch format {
	case "date-time":
		return "2026-01-02T03:04:05Z"
	case "date":
		return "2026-01-02"
	case "email":
		return "someone@example.com"
	case "uri", "url":
		return "https://example.com/"
	case "uuid":
		return "00000000-0000-4000-8000-000000000000"
	default:
		return "text"
	}
}
