package subset_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/adapter/subset"
	"github.com/toolcrib/toolcrib/schema"
)

// profiles take as much as providers do.
var profiles = map[string]*subset.Profile{
	"strict": {Provider: "strict", PlainRoot: true, ArrayItems: true, AllRequired: true, Refs: true,
		Keywords: []string{"pattern", "minimum", "maximum", "minItems", "maxItems"}, MaxDepth: 10},
	"maps": {Provider: "maps", PlainRoot: true, ArrayItems: true, Maps: true, Tuples: true, AnyValue: true,
		Keys: subset.KeyRule{Marks: "_", Max: 64, Word: true}, Keywords: []string{"minItems", "maxItems"}},
	"openapi": {Provider: "openapi", PlainRoot: true, ArrayItems: true, OpenAPI: true,
		Keys: subset.KeyRule{Marks: "_", Max: 64, Word: true}, Keywords: []string{"minItems", "maxItems", "pattern"}},
	"full": {Provider: "full", Full: true, PlainRoot: true, Keys: subset.KeyRule{Marks: "_.-", Max: 64}},
	"mcp":  {Provider: "mcp", Full: true},
}

// An author makes schemas, and values that most of them allow.
type author struct{ rand *rand.Rand }

func (a *author) one(of ...string) string  { return of[a.rand.IntN(len(of))] }
func (a *author) odds(one, among int) bool { return a.rand.IntN(among) < one }

// key returns a key, of which some are refused by some providers. None is what
// another is renamed to.
func (a *author) key() string { return a.one("a", "b", "$c", "d.e", "") }

// further returns a key that no schema names.
func (a *author) further() string { return a.one("x", "y") }

func (a *author) value(depth int) any {
	kinds := 6
	if depth > 2 {
		kinds = 4
	}
	switch a.rand.IntN(kinds) {
	case 0:
		return nil
	case 1:
		return a.odds(1, 2)
	case 2:
		return json.Number(a.one("0", "1", "1.0", "1e0", "2.5", "-3", "1e2"))
	case 3:
		return a.one("", "a", "ab", "{}", "null", "1", `"a"`)
	case 4:
		return []any{a.value(depth + 1)}
	}
	return map[string]any{a.further(): a.value(depth + 1)}
}

func (a *author) schema(depth int) any {
	s := map[string]any{}
	switch a.rand.IntN(max(4, 13-2*depth)) {
	case 0:
		s["type"] = a.one("string", "integer", "number", "boolean")
	case 1:
		s["type"] = []any{a.one("string", "integer"), "null"}
	case 2:
		s["enum"] = []any{a.value(1), a.value(1), a.value(1)}
	case 3:
		return true
	case 4:
		s = map[string]any{"type": "array", "items": a.schema(depth + 1)}
	case 5:
		s = map[string]any{"type": "array", "prefixItems": []any{a.schema(depth + 1), a.schema(depth + 1)}}
	case 6:
		s[a.one("anyOf", "oneOf")] = []any{a.schema(depth + 1), a.schema(depth + 1)}
	case 7:
		s["$ref"] = a.one("#", "#/$defs/x", "#/$defs/y")
	case 8:
		s["allOf"] = []any{a.schema(depth + 2)}
	default:
		return a.object(depth)
	}
	return s
}

func (a *author) object(depth int) map[string]any {
	properties, required := map[string]any{}, []any{}
	for range a.rand.IntN(4) {
		key := a.key()
		if properties[key] == nil && a.odds(1, 2) {
			required = append(required, key)
		}
		properties[key] = a.schema(depth + 1)
	}
	s := map[string]any{"type": "object", "properties": properties, "required": required}
	switch a.rand.IntN(6) {
	case 0:
		s["additionalProperties"] = a.schema(depth + 1)
	case 1:
		s["additionalProperties"] = false
	case 2:
		s["anyOf"] = []any{a.schema(depth + 2), a.schema(depth + 1)}
	}
	return s
}

func (a *author) root() map[string]any {
	s := a.object(0)
	s["$defs"] = map[string]any{"x": a.schema(1), "y": a.schema(2)}
	return s
}

// fit returns a value that a schema below root may allow.
func (a *author) fit(root map[string]any, schema any, depth int) any {
	s, ok := schema.(map[string]any)
	if !ok || depth > 7 {
		return a.value(depth)
	}
	if list, ok := s["enum"].([]any); ok {
		return list[a.rand.IntN(len(list))]
	}
	if ref, ok := s["$ref"].(string); ok {
		if ref == "#" {
			return a.fit(root, root, depth+1)
		}
		return a.fit(root, root["$defs"].(map[string]any)[ref[len("#/$defs/"):]], depth+1)
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		if list, ok := s[keyword].([]any); ok && (s["type"] == nil || a.odds(1, 3)) {
			return a.fit(root, list[a.rand.IntN(len(list))], depth+1)
		}
	}
	name, _ := s["type"].(string)
	if list, ok := s["type"].([]any); ok {
		name = list[a.rand.IntN(len(list))].(string)
	}
	return a.typed(root, s, name, depth)
}

func (a *author) typed(root, s map[string]any, name string, depth int) any {
	switch name {
	case "object":
		out := map[string]any{}
		for key, p := range s["properties"].(map[string]any) {
			if a.odds(2, 3) {
				out[key] = a.fit(root, p, depth+1)
			}
		}
		if more, ok := s["additionalProperties"]; ok && more != false {
			out[a.further()] = a.fit(root, more, depth+1)
		}
		return out
	case "array":
		out := []any{}
		prefix, _ := s["prefixItems"].([]any)
		for i := range a.rand.IntN(4) {
			if i < len(prefix) {
				out = append(out, a.fit(root, prefix[i], depth+1))
			} else if items, ok := s["items"]; ok {
				out = append(out, a.fit(root, items, depth+1))
			}
		}
		return out
	case "string":
		return a.one("", "a", "null", "{}", "[1]", "ab", "0")
	case "number", "integer":
		return json.Number(a.one("0", "1", "-1", "1e2", "3.0"))
	case "boolean":
		return a.odds(1, 2)
	}
	return nil
}

// allowed returns objects that a schema allows.
func (a *author) allowed(root map[string]any, door *schema.Schema) []json.RawMessage {
	var list []json.RawMessage
	for range 25 {
		if v, ok := a.fit(root, root, 0).(map[string]any); ok {
			if raw, err := json.Marshal(v); err == nil && door.Check(raw) == nil {
				list = append(list, raw)
			}
		}
	}
	return list
}

// What has a form is declared to the provider, and comes back from it as it was; a
// schema that allows something is not left out.
func TestValuesComeBackAsTheyWere(t *testing.T) {
	values := 0
	for seed := range 1500 {
		a := &author{rand.New(rand.NewPCG(uint64(seed), 1))}
		root := a.root()
		raw, err := json.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		door, err := schema.Compile(raw, nil)
		if err != nil {
			t.Fatal(err)
		}
		list := a.allowed(root, door)
		for name, profile := range profiles {
			f, err := subset.Compile(raw, profile)
			if err != nil {
				if len(list) > 0 {
					t.Errorf("%s: %v: %s, which allows %s", name, err, raw, list[0])
				}
				continue
			}
			values += comeBack(t, f, name, raw, list)
		}
		if t.Failed() {
			return
		}
	}
	if values < 50_000 {
		t.Errorf("only %d values", values)
	}
}

// comeBack takes values there and back, and returns how many had a form.
func comeBack(t *testing.T, f *subset.Form, name string, raw json.RawMessage, list []json.RawMessage) int {
	t.Helper()
	provider, err := schema.Compile(json.RawMessage(lower.Replace(string(f.Schema))), nil)
	if err != nil {
		t.Errorf("%s: %v: %s", name, err, f.Schema)
		return 0
	}
	n := 0
	for _, v := range list {
		sent, err := f.Forward(v)
		if err != nil {
			continue
		}
		n++
		if err := provider.Check(sent); err != nil && len(f.Losses) == 0 && name != "openapi" {
			t.Errorf("%s: %s has the form %s, which is not declared: %v\n%s\n%s", name, v, sent, err, raw, f.Schema)
		}
		if back, err := f.Back(sent); err != nil || !same(back, v) {
			t.Errorf("%s: %s became %s and came back as %s, %v\n%s\n%s", name, v, sent, back, err, raw, f.Schema)
		}
	}
	return n
}

// lower writes the types of OpenAPI as those of JSON Schema.
var lower = strings.NewReplacer(`"STRING"`, `"string"`, `"INTEGER"`, `"integer"`, `"NUMBER"`, `"number"`, `"OBJECT"`, `"object"`,
	`"ARRAY"`, `"array"`, `"NULL"`, `"null"`, `"BOOLEAN"`, `"boolean"`)

func same(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
