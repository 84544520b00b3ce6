package gateway

import (
	"encoding"
	"encoding/json"
	"reflect"

	"github.com/toolcrib/toolcrib/tools"
)

// Schema returns the JSON Schema (2020-12) of the configuration file, for
// editors. It is made from the types that Parse fills in, and says less than
// Parse checks: not what one key demands of another.
func Schema() json.RawMessage {
	root := schemaOf(reflect.TypeFor[Config](), rules{})
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "toolcrib.yaml"
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(err) // maps, lists and texts always encode
	}
	return out
}

// schemaOf returns the schema of a type whose scalars obey r.
func schemaOf(t reflect.Type, r rules) map[string]any {
	switch {
	case t == reflect.TypeFor[*Flow](): // of a node of a flow
		return map[string]any{"$ref": "#/properties/flows/items"}
	case t == freeType && r.object:
		return map[string]any{"type": []string{"object", "null"}}
	case t == freeType:
		return map[string]any{}
	case t.Kind() == reflect.Pointer:
		return schemaOf(t.Elem(), r)
	case t == reflect.TypeFor[tools.Flag]():
		return map[string]any{"enum": []any{true, false, "yes", "no", "unset", nil}}
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return map[string]any{"type": []string{"string", "null"}, "pattern": `^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$|^0$`}
	}
	switch t.Kind() {
	case reflect.Struct:
		return objectSchema(t)
	case reflect.Slice:
		return map[string]any{"type": []string{"array", "null"}, "items": elementSchema(t.Elem(), r)}
	case reflect.Map:
		return map[string]any{"type": []string{"object", "null"}, "additionalProperties": elementSchema(t.Elem(), r)}
	default:
		return scalarSchema(t, r)
	}
}

// elementSchema is the schema of what stands in a list or mapping: unlike the
// value of a key, a scalar there is never empty.
func elementSchema(t reflect.Type, r rules) map[string]any {
	s := schemaOf(t, r)
	if types, ok := s["type"].([]string); ok && t.Kind() != reflect.Struct {
		s["type"] = types[0]
	}
	return s
}

func objectSchema(t reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		key := f.Tag.Get("yaml")
		if key == "" {
			continue
		}
		r := rulesOf(f)
		s := schemaOf(f.Type, r)
		if doc := f.Tag.Get("doc"); doc != "" {
			s["description"] = doc
		}
		if r.required {
			required = append(required, key)
		}
		properties[key] = s
	}
	out := map[string]any{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

func scalarSchema(t reflect.Type, r rules) map[string]any {
	s := map[string]any{"type": []string{jsonType(t.Kind()), "null"}}
	if r.name.text != "" {
		s["pattern"] = r.name.String()
	}
	if r.enum != nil {
		s["enum"] = r.enum
		s["type"] = "string"
	}
	if r.min != nil {
		s["minimum"] = *r.min
	}
	if r.max != nil {
		s["maximum"] = *r.max
	}
	if r.required {
		s["type"] = jsonType(t.Kind())
		s["minLength"] = 1
	}
	return s
}

func jsonType(k reflect.Kind) string {
	switch k {
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int64:
		return "integer"
	case reflect.Float64:
		return "number"
	}
	return "string"
}
