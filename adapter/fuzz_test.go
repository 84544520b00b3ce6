package adapter_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/toolcrib/toolcrib/adapter"
	"github.com/toolcrib/toolcrib/schema"
	"github.com/toolcrib/toolcrib/tools"
)

// Whatever a schema is, compiling it ends, and what is declared is within the
// limits of the provider.
func FuzzDeclare(f *testing.F) {
	for _, t := range ownTools(f) {
		f.Add(string(t.ArgsSchema))
	}
	for _, s := range []string{
		`{"$ref":"#"}`, `{"anyOf":[{"$ref":"#"}]}`, `{"allOf":[{"$ref":"#"},{"$ref":"#/allOf/0"}]}`,
		`{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#/properties/a"},{"type":"array","items":{"$ref":"#/properties/a"}}]}}}`,
		`{"type":["object","null"],"anyOf":[{"anyOf":[{"anyOf":[{}]}]}],"oneOf":[{},{}]}`,
		`{"type":5,"properties":[],"required":{},"items":7,"enum":{},"$ref":1}`,
		`{"minimum":1e999999999,"maxItems":-1,"properties":{"a":{"multipleOf":1e-999999999,"type":"number"}}}`,
		`{"properties":{"":{"$ref":"#/properties/%7E0"},"~0":{"patternProperties":{"(":{}}}}}`,
		`{"type":"object","properties":{"t":{"prefixItems":[false,true]},"u":{"items":false},"v":{"additionalProperties":false}},"required":["w"]}`,
	} {
		f.Add(s)
	}
	all := adapters(f)
	f.Fuzz(func(t *testing.T, raw string) {
		if len(raw) > 4<<10 {
			t.Skip()
		}
		compiled, broken := schema.Compile(json.RawMessage(raw), nil)
		for _, a := range all {
			d := a.Declare([]tools.Tool{{Name: "t", Description: "d", ArgsSchema: json.RawMessage(raw)}})
			if len(d.Tools)+len(d.Quarantined) != 1 {
				t.Fatalf("%s: neither declared nor left out", a.Name())
			}
			if !json.Valid(d.Request()) {
				t.Fatalf("%s: not JSON: %s", a.Name(), d.Request())
			}
			if broken != nil || len(d.Tools) == 0 {
				continue
			}
			if found := violations(a, d.Request()); len(found) > 0 {
				t.Errorf("%s: %v\n%s\n%s", a.Name(), found, raw, d.Request())
			}
			calls, err := d.Calls(response(a, "t", json.RawMessage(`{"value":[{"key":"a","value":null}],"a":null,"item_1":[]}`)))
			if err != nil || len(calls) != 1 {
				t.Errorf("%s: %v", a.Name(), err)
			}
			if calls[0].Err == nil && !json.Valid(calls[0].Args) {
				t.Errorf("%s: %s", a.Name(), calls[0].Args)
			}
			_ = compiled.Check(calls[0].Args)
		}
	})
}

// Whatever comes as a response or as the events of a stream, what is understood
// of it are calls that each have arguments or an error.
func FuzzResponses(f *testing.F) {
	for _, name := range []string{"openai", "openai-responses", "anthropic", "gemini", "bedrock"} {
		raw, err := os.ReadFile("testdata/wire/" + name + ".txtar")
		if err != nil {
			f.Fatal(err)
		}
		archive := txtar.Parse(raw)
		f.Add(string(section(archive, "response.json")))
		f.Add(string(section(archive, "stream.jsonl")))
	}
	list := wireTools(f)
	var all []*adapter.Declarations
	for _, a := range adapters(f) {
		all = append(all, a.Declare(list))
	}
	f.Fuzz(func(t *testing.T, raw string) {
		for _, d := range all {
			calls, _ := d.Calls(json.RawMessage(raw))
			s := d.Stream()
			for line := range strings.SplitSeq(raw, "\n") {
				whole, err := s.Add(json.RawMessage(line))
				if err != nil {
					break
				}
				calls = append(calls, whole...)
			}
			calls = append(calls, s.Close()...)
			if !json.Valid(s.Response()) {
				t.Errorf("%s: %s", d.Adapter().Name(), s.Response())
			}
			for _, c := range calls {
				if (c.Err == nil) != (c.Args != nil) || c.Args != nil && !json.Valid(c.Args) {
					t.Errorf("%s: %+v", d.Adapter().Name(), c)
				}
			}
			if _, err := d.Results(t.Context(), answers(calls)); err != nil {
				t.Errorf("%s: %v", d.Adapter().Name(), err)
			}
		}
	})
}
