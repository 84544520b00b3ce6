package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// disagree checks doc with the checker and with the oracle, and
// says when they differ. Documents that the checker refuses for themselves are
// out of scope.
func disagree(rawSchema, doc []byte, opts *Options) string {
	s, err := Compile(rawSchema, opts)
	if err != nil || len(s.raw) == 0 || rawjson.Check(doc, rawjson.Options{}) != nil || unboundedNumber(doc) >= 0 {
		return ""
	}
	full, err := oracle(s.raw, opts)
	if err != nil && excusable(err) {
		return ""
	}
	if err != nil {
		return err.Error()
	}
	v, err := decode(doc)
	if err != nil {
		return err.Error()
	}
	want, got := full.Validate(v), s.Check(doc)
	if (got == nil) != (want == nil) && !s.isParadox() {
		return fmt.Sprintf("schema %s\ndocument %s\nchecker: %v\noracle: %v", s.raw, doc, got, want)
	}
	if got != nil && len(got.(*Error).Violations) == 0 {
		return "no violation"
	}
	return ""
}

// isParadox reports whether the schema may apply itself to the same value by way of
// a keyword that turns what it says around. Such a schema says of a value that it
// is valid if it is not; where an evaluation notices that is its own affair.
func (s *Schema) isParadox() bool {
	turns := slices.ContainsFunc([]string{`"not"`, `"if"`, `"oneOf"`}, func(k string) bool { return bytes.Contains(s.raw, []byte(k)) })
	if !turns {
		return false
	}
	root := s.nodes()
	seen, queue := map[*node]bool{root: true}, []*node{root}
	for i := 0; i < len(queue); i++ {
		if n := queue[i]; n.in != nil && n.in.cyclic {
			return true
		}
		for _, next := range append(queue[i].sameValue(), queue[i].parts()...) {
			if next != nil && !seen[next] {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	return false
}

var names = []string{"a", "b", "cc", "é", "a/b", "$x", ""}

func genName() *rapid.Generator[string] { return rapid.SampledFrom(names) }

func genScalar() *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		return rapid.SampledFrom([]any{
			nil, true, false, "", "a", "ab", "é", "a\n", json.Number("0"), json.Number("1"), json.Number("1.0"),
			json.Number("2"), json.Number("-1.5"), json.Number("1e2"), json.Number("100"), json.Number("0.1"),
			json.Number("9007199254740993"), json.Number("-9223372036854775809"), json.Number("3"),
		}).Draw(t, "scalar")
	})
}

func genValue(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kind := rapid.IntRange(0, 5).Draw(t, "kind")
		switch {
		case depth == 0 || kind < 3:
			return genScalar().Draw(t, "value")
		case kind == 3:
			return rapid.SliceOfN(genValue(depth-1), 0, 4).Draw(t, "array")
		}
		return rapid.MapOfN(genName(), genValue(depth-1), 0, 4).Draw(t, "object")
	})
}

// keywordGens are the keywords that a random schema picks from.
func keywordGens(depth int) map[string]*rapid.Generator[any] {
	size := rapid.Map(rapid.IntRange(0, 3), func(i int) any { return i })
	num := rapid.SampledFrom([]any{0, 1, 2, json.Number("-1.5"), json.Number("0.1"), json.Number("1e2"), json.Number("9007199254740993")})
	positive := rapid.SampledFrom([]any{1, 2, 3, json.Number("0.1"), json.Number("1.5"), json.Number("1e2")})
	types := []any{"null", "boolean", "integer", "number", "string", "array", "object"}
	distinct := rapid.SliceOfNDistinct(genName(), 0, 3, rapid.ID[string]).AsAny()
	gens := map[string]*rapid.Generator[any]{
		"type":  rapid.OneOf(rapid.SampledFrom(types), rapid.SliceOfNDistinct(rapid.SampledFrom(types), 1, 3, func(v any) string { return v.(string) }).AsAny()),
		"const": genValue(1), "enum": rapid.SliceOfN(genValue(1), 1, 5).AsAny(),
		"minimum": num, "maximum": num, "exclusiveMinimum": num, "exclusiveMaximum": num, "multipleOf": positive,
		"minLength": size, "maxLength": size, "pattern": rapid.SampledFrom([]any{"^a", "^.$", "b", `^\w*$`, "(?=a)"}),
		"minItems": size, "maxItems": size, "minProperties": size, "maxProperties": size, "uniqueItems": rapid.Bool().AsAny(),
		"required": distinct, "dependentRequired": rapid.MapOfN(genName(), distinct, 0, 2).AsAny(),
		"$ref": rapid.SampledFrom([]any{"#/$defs/r", "#/$defs/s", "#"}),
	}
	if depth == 0 {
		return gens
	}
	sub := genSchema(depth - 1)
	byName := rapid.MapOfN(genName(), sub, 0, 4).AsAny()
	list := rapid.SliceOfN(sub, 1, 3).AsAny()
	for _, k := range []string{"additionalProperties", "items", "not", "if", "then", "else", "contains", "unevaluatedProperties", "unevaluatedItems"} {
		gens[k] = sub
	}
	for _, k := range []string{"properties", "dependentSchemas"} {
		gens[k] = byName
	}
	for _, k := range []string{"allOf", "anyOf", "oneOf", "prefixItems"} {
		gens[k] = list
	}
	gens["patternProperties"] = rapid.MapOfN(rapid.SampledFrom([]string{"^a", "b$", "."}), sub, 0, 2).AsAny()
	gens["propertyNames"] = rapid.SampledFrom([]any{map[string]any{"maxLength": 1}, map[string]any{"enum": []any{"a", "b", "é"}}, map[string]any{"pattern": "^a"}})
	gens["minContains"], gens["maxContains"] = size, size
	return gens
}

func genSchema(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		if rapid.IntRange(0, 9).Draw(t, "boolean") == 0 {
			return rapid.Bool().Draw(t, "schema")
		}
		gens := keywordGens(depth)
		keys := make([]string, 0, len(gens))
		for k := range gens {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		out := map[string]any{}
		for range rapid.IntRange(1, 4).Draw(t, "keywords") {
			k := rapid.SampledFrom(keys).Draw(t, "keyword")
			out[k] = gens[k].Draw(t, k)
		}
		return out
	})
}

func TestDifferential(t *testing.T) {
	rapid.Check(t, checkRandom)
}

func checkRandom(t *rapid.T) {
	draft := rapid.SampledFrom([]Draft{Draft2020, Draft2020, Draft7, Draft2019, Draft6}).Draw(t, "draft")
	root := map[string]any{"$defs": map[string]any{"r": genSchema(1).Draw(t, "r"), "s": genSchema(1).Draw(t, "s")}}
	body, isObject := genSchema(2).Draw(t, "schema").(map[string]any)
	if isObject {
		for k, v := range body {
			root[k] = v
		}
	}
	raw := encode(root)
	for range 5 {
		doc := encode(genValue(3).Draw(t, "doc"))
		if diff := disagree(raw, doc, &Options{Draft: draft}); diff != "" {
			t.Fatal(diff)
		}
	}
}

// regressions are what fuzzing has found, and corners worth keeping.
var regressions = []struct{ schema, doc string }{
	{`{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/a","type":"string","definitions":{"a":{"type":"integer"}}}`, `1`},
	{`{"$schema":"http://json-schema.org/draft-04/schema#","minimum":1,"exclusiveMinimum":true}`, `1`},
	{`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}],"additionalItems":false}`, `["a",1]`},
	{`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"],"c":{"required":["d"]}}}`, `{"c":1}`},
	{`{"required":["a"],"additionalProperties":{"type":"string"}}`, `{"a":1}`},
	{`{"enum":[1,2],"const":3}`, `3`},
	{`{"properties":{"a":{"$dynamicRef":"#x"}},"$defs":{"y":{"$dynamicAnchor":"x","type":"string"}}}`, `{"a":1}`},
	{`{"not":{}}`, `1`},
	{`{"const":0,"enum":[null]}`, `0`},
	{`{"patternProperties":{"^\u0061":{"maxLength":1},"b$":{"minLength":3}}}`, `{"\u0061b":"\u0061\u0061"}`},
	{`{"type":"object","uniqueItems":true,"enum":[{"a":[1]},[2]]}`, `{"a":[1.0]}`},
	{`{"contains":{"type":"null"},"minContains":0,"maxContains":1}`, `[null,null]`},
	{strictTree, `{"children":[{"daat":1}]}`},
	{`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"$defs":{"n":{"$id":"n","$recursiveAnchor":true,"items":{"$recursiveRef":"#"}}},"anyOf":[{"$ref":"n"},{"type":"integer"}]}`, `[1,[2]]`},
	{`{"$schema":"http://json-schema.org/draft-04/schema#","id":"http://x.test/a","definitions":{"b":{"id":"b#c","type":"null"}},"items":{"$ref":"b#c"}}`, `[1]`},
	{`{"$ref":"#/$defs/a~1b/allOf/0","$defs":{"a/b":{"allOf":[{"$anchor":"x","minimum":2}]}},"not":{"$ref":"#x"}}`, `1`},
	{`{"oneOf":[{"properties":{"a":{}},"required":["a"]},{"$ref":"#/oneOf/0/properties"}],"unevaluatedProperties":{"unevaluatedItems":false,"contains":{"const":1}}}`, `{"a":1,"b":[1,2]}`},
	{`{"prefixItems":[{}],"if":{"items":{"type":"null"}},"else":{"contains":{}},"unevaluatedItems":false}`, `[1,2]`},
	{`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, `{"properties":{"a":{"type":[]}}}`},
}

func TestRegressions(t *testing.T) {
	for _, tc := range regressions {
		if diff := disagree([]byte(tc.schema), []byte(tc.doc), &Options{}); diff != "" {
			t.Error(diff)
		}
		if _, err := Compile([]byte(tc.schema), nil); err != nil {
			t.Error(err)
		}
	}
}

func FuzzDifferential(f *testing.F) {
	for _, tc := range regressions {
		f.Add([]byte(tc.schema), []byte(tc.doc))
	}
	f.Fuzz(func(t *testing.T, rawSchema, doc []byte) {
		if len(rawSchema) > 2000 || strings.Count(string(rawSchema), "(") > 4 {
			return
		}
		if diff := disagree(rawSchema, doc, &Options{}); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzRandom(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkRandom)) }
