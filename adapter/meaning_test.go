package adapter_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/adapter"
	"github.com/toolcrib/toolcrib/tools"
)

// subsets are the adapters whose providers take a part of JSON Schema.
func subsets(t *testing.T) []*adapter.Adapter {
	t.Helper()
	return []*adapter.Adapter{
		newAdapter(t, adapter.OpenAI, &adapter.Options{Strict: true}), newAdapter(t, adapter.Gemini, nil),
		newAdapter(t, adapter.Gemini, &adapter.Options{OpenAPISchemas: true}),
	}
}

func lossOf(d *adapter.Declarations, feature, path string) bool {
	return slices.ContainsFunc(d.Losses, func(l adapter.Loss) bool { return l.Feature == feature && l.Path == path && l.Reason != "" })
}

// Values are equal whatever their spelling.
func TestEnumerationsByValue(t *testing.T) {
	for name, test := range map[string]struct{ schema, args string }{
		"an integer with an exponent":    {`{"enum":[1e3,2],"type":"integer"}`, `1e3`},
		"one with a negative exponent":   {`{"enum":[100e-2],"type":"integer"}`, `100e-2`},
		"a constant among others":        {`{"enum":[1.0,2],"const":1}`, `1.0`},
		"objects in another order":       {`{"enum":[{"x":1,"y":[2.0]}],"const":{"y":[2],"x":1e0}}`, `{"x":1,"y":[2.0]}`},
		"an escaped text":                {`{"enum":["ab"],"const":"\u0061b"}`, `"ab"`},
		"a number beyond floating point": {`{"enum":[12345678901234567890123],"type":"integer"}`, `12345678901234567890123`},
	} {
		raw := `{"type":"object","properties":{"a":` + test.schema + `},"required":["a"]}`
		args := `{"a":` + test.args + `}`
		for _, a := range subsets(t) {
			d := a.Declare([]tools.Tool{{Name: "t", ArgsSchema: json.RawMessage(raw)}})
			if len(d.Tools) != 1 || len(d.Losses) > 0 {
				t.Errorf("%s for %s: %v %v", name, a.Name(), d.Quarantined, d.Losses)
				continue
			}
			sent := test.args
			if !strings.Contains(string(d.Tools[0].Schema), `"enum":[`+sent) {
				sent = string(marshal(t, sent)) // as text
			}
			if !strings.Contains(string(d.Tools[0].Schema), `"enum":[`+sent) {
				t.Errorf("%s for %s: %s", name, a.Name(), d.Tools[0].Schema)
			}
			if back, err := d.Args("t", json.RawMessage(`{"a":`+sent+`}`)); err != nil || string(back) != args {
				t.Errorf("%s for %s: %s, %v", name, a.Name(), back, err)
			}
		}
	}
}

// In strict mode a model gives every property. Null is how it leaves one out, also
// where the tool takes null, for which that has another meaning.
func TestNullLeavesOptionalPropertiesOut(t *testing.T) {
	raw := `{"type":"object","properties":{"title":{"type":"string"},"owner":{"type":["string","null"]},"due":{"anyOf":[{"type":"string"},{"type":"null"}]},
		"by":{"type":["string","null"]}},"required":["title","by"]}`
	list := []tools.Tool{{Name: "t", ArgsSchema: json.RawMessage(raw), Examples: []tools.ToolExample{
		{Args: map[string]any{"title": "x", "by": nil}}, {Args: map[string]any{"title": "x", "by": "me", "owner": nil}}}}}
	strict := newAdapter(t, adapter.OpenAI, &adapter.Options{Strict: true}).Declare(list)
	back, err := strict.Args("t", json.RawMessage(`{"title":"x","owner":null,"due":null,"by":null}`))
	if want := `{"title":"x","by":null}`; err != nil || string(back) != want {
		t.Errorf("%s, %v, want %s", back, err, want)
	}
	if !lossOf(strict, "null", "/properties/owner") || !lossOf(strict, "null", "/properties/due") || lossOf(strict, "null", "/properties/by") {
		t.Error(strict.Losses)
	}
	if text := strict.Tools[0].Description; strings.Count(text, "\n{") != 1 {
		t.Errorf("the examples are %s", text)
	}
	gemini := newAdapter(t, adapter.Gemini, nil).Declare(list)
	if back, err = gemini.Args("t", json.RawMessage(`{"title":"x","owner":null,"by":null}`)); err != nil || !strings.Contains(string(back), `"owner":null`) || len(gemini.Losses) > 0 {
		t.Errorf("%s, %v, %v", back, err, gemini.Losses)
	}
}

// A pattern that a provider would refuse, and the whole request with it, is said in
// words.
func TestPatternsThatNoProviderTakes(t *testing.T) {
	for pattern, taken := range map[string]bool{`^[a-z]+\d$`: true, `^(?=.*a)b`: false, `(?!x)`: false, `(a)\1`: false, `[`: false, `(a{1,99}){1,99}`: false} {
		quoted := string(marshal(t, pattern))
		raw := `{"type":"object","properties":{"a":{"type":"string","pattern":` + quoted + `},"m":{"type":"object","patternProperties":{` + quoted + `:{"type":"string"}},"additionalProperties":false}}}`
		for _, a := range []*adapter.Adapter{subsets(t)[0], subsets(t)[2]} {
			d := a.Declare([]tools.Tool{{Name: "t", ArgsSchema: json.RawMessage(raw)}})
			if len(d.Tools) != 1 {
				t.Fatalf("%s: %v", a.Name(), d.Quarantined)
			}
			if got := strings.Contains(string(d.Tools[0].Schema), `"pattern":`); got != taken || lossOf(d, "pattern", "/properties/a/pattern") == taken {
				t.Errorf("%s for %s: %s, %v", pattern, a.Name(), d.Tools[0].Schema, d.Losses)
			}
			words := "Matches the pattern " + pattern + "."
			a := object(object(parsed(t, d.Tools[0].Schema).(map[string]any)["properties"])["a"])
			if !taken && str(a["description"]) != words {
				t.Errorf("%q, want %q", str(a["description"]), words)
			}
		}
	}
}

// A number that is infinite, or zero, for a provider that reads 64 bits is no limit
// of its schema.
func TestLimitsBeyondFloatingPoint(t *testing.T) {
	raw := `{"type":"object","properties":{"a":{"type":"number","maximum":1e400,"multipleOf":1e-400,"minimum":-0.0}}}`
	for _, a := range adapters(t) {
		if a.Provider() == adapter.MCP {
			continue // which passes schemas on as they are
		}
		d, decl, _ := compiled(t, a, raw)
		if strings.Contains(string(decl.Schema), `:1e`) || !lossOf(d, "maximum", "/properties/a/maximum") || !lossOf(d, "multipleOf", "/properties/a/multipleOf") {
			t.Errorf("%s: %s %v", a.Name(), decl.Schema, d.Losses)
		}
	}
}

// A reference to a root that takes more than objects does so still.
func TestReferencesToAWiderRoot(t *testing.T) {
	raw := `{"type":["object","null"],"properties":{"next":{"$ref":"#"},"n":{"type":"integer"}},"required":["next"]}`
	for _, p := range []adapter.Provider{adapter.OpenAI, adapter.Anthropic, adapter.MCP} {
		d, decl, s := compiled(t, newAdapter(t, p, nil), raw)
		for _, args := range []string{`{"next":null}`, `{"next":{"next":null}}`} {
			sent := json.RawMessage(`{"value":` + args + `}`)
			if err := s.Check(sent); err != nil {
				t.Errorf("%s: %v: %s", p, err, decl.Schema)
			}
			if back, err := d.Args("t", sent); err != nil || string(back) != args {
				t.Errorf("%s: %s, %v", p, back, err)
			}
		}
	}
}

// How many items must match is said, and where any number may, nothing.
func TestContainsInWords(t *testing.T) {
	for keywords, want := range map[string]string{
		`"contains":{"const":1}`:                                 "Some item must match",
		`"contains":{"const":1},"minContains":2`:                 "At least 2 items must match",
		`"contains":{"const":1},"maxContains":3`:                 "At least 1 and at most 3 items must match",
		`"contains":{"const":1},"minContains":0,"maxContains":3`: "At least 0 and at most 3 items must match",
		`"contains":{"const":1},"minContains":0`:                 "",
	} {
		raw := `{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"},` + keywords + `}}}`
		for _, a := range subsets(t) {
			d := a.Declare([]tools.Tool{{Name: "t", ArgsSchema: json.RawMessage(raw)}})
			if text := string(d.JSON()); !strings.Contains(text, want) || strings.Contains(text, "match") != (want != "") || lossOf(d, "contains", "/properties/a/contains") != (want != "") {
				t.Errorf("%s for %s: %s %v", keywords, a.Name(), text, d.Losses)
			}
		}
	}
}

// Lists of fewer items than a tuple names are reported as not declared.
func TestTuplesWithoutALeastLength(t *testing.T) {
	const tuple = `"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}]`
	for _, a := range subsets(t) {
		d, _, _ := compiled(t, a, `{"type":"object","properties":{"a":{`+tuple+`},"b":{`+tuple+`,"minItems":2}}}`)
		if !lossOf(d, "minItems", "/properties/a") || lossOf(d, "minItems", "/properties/b") {
			t.Errorf("%s: %v", a.Name(), d.Losses)
		}
	}
}

// A property that is called like a keyword has a schema like any other.
func TestPropertiesCalledLikeKeywords(t *testing.T) {
	raw := `{"type":"object","properties":{"additionalProperties":true,"unevaluatedItems":false,"items":{"type":"array"},"required":{"type":"string"}},"required":["required"]}`
	for _, a := range adapters(t) {
		_, decl, _ := compiled(t, a, raw)
		for key, p := range object(parsed(t, decl.Schema).(map[string]any)["properties"]) {
			if object(p) == nil && (a.Provider() == adapter.OpenAI || a.Provider() == adapter.OpenAIResponses) {
				t.Errorf("%s: %s is %v", a.Name(), key, p)
			}
		}
	}
}

// Values that a provider would write alike come back as what was meant.
func TestBranchesThatAreWrittenAlike(t *testing.T) {
	strict := newAdapter(t, adapter.OpenAI, &adapter.Options{Strict: true})
	for name, test := range map[string]struct {
		schema string
		sent   map[string]string // and what it means
	}{
		"a text or an object": {`{"type":["string","object"]}`, map[string]string{`"{\"k\":1}"`: `{"k":1}`, `"\"{\\\"k\\\":1}\""`: `"{\"k\":1}"`, `"plain"`: `"plain"`, `"7"`: `"7"`}},
		"a text or anything":  {`{"anyOf":[{"type":"string"},true]}`, map[string]string{`"0"`: `0`, `"\"0\""`: `"0"`, `"plain"`: `"plain"`}},
		"a word or an object": {`{"anyOf":[{"enum":["auto","none"]},{"type":"object"}]}`, map[string]string{`"auto"`: `"auto"`, `"{}"`: `{}`}},
		"a list or a map": {`{"anyOf":[{"type":"array","items":{"type":"string"}},{"type":"object","additionalProperties":{"type":"string"}}]}`,
			map[string]string{`[]`: `[]`, `"{}"`: `{}`, `"{\"k\":\"v\"}"`: `{"k":"v"}`}},
		"lists of texts or of anything": {`{"anyOf":[{"type":"array","items":{"type":"string"}},{"type":"array","items":true}]}`,
			map[string]string{`["1"]`: `["1"]`, `"[1]"`: `[1]`}},
	} {
		d := strict.Declare([]tools.Tool{{Name: "t", ArgsSchema: json.RawMessage(`{"type":"object","properties":{"a":` + test.schema + `},"required":["a"]}`)}})
		for sent, means := range test.sent {
			back, err := d.Args("t", json.RawMessage(`{"a":`+sent+`}`))
			if want := `{"a":` + means + `}`; err != nil || string(back) != want {
				t.Errorf("%s: %s became %s, %v, want %s: %s", name, sent, back, err, want, d.Tools[0].Schema)
			}
		}
	}
}

// Where keys are renamed, the values of a schema are too, and what it says of keys
// by patterns is reported.
func TestValuesWithOtherKeys(t *testing.T) {
	raw := `{"type":"object","properties":{"$a":{"type":"object","properties":{"$b":{}},"enum":[{"$b":1}],"default":{"$b":1},"examples":[{"$b":1}]}},
		"propertyNames":{"pattern":"^."},"default":{"$a":{"$b":1}}}`
	d, decl, s := compiled(t, newAdapter(t, adapter.Anthropic, nil), raw)
	if text := string(decl.Schema); strings.Contains(text, `$`) || strings.Count(text, `{"_b":1}`) != 4 {
		t.Error(text)
	}
	sent := json.RawMessage(`{"_a":{"_b":1}}`)
	if err := s.Check(sent); err != nil {
		t.Error(err)
	}
	if back, err := d.Args("t", sent); err != nil || string(back) != `{"$a":{"$b":1}}` {
		t.Errorf("%s, %v", back, err)
	}
	if !lossOf(d, "propertyNames", "/propertyNames") {
		t.Error(d.Losses)
	}
}
