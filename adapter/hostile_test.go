package adapter_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/adapter"
	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/tools"
)

// repeated joins n texts.
func repeated(n int, separator string, text func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = text(i)
	}
	return strings.Join(parts, separator)
}

// hostile are schemas whose written-out form would be of any size.
func hostile() map[string]string {
	defs := func(n int, def func(i int) string) string {
		return `{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{` +
			repeated(n, ",", func(i int) string { return fmt.Sprintf(`"d%d":%s`, i, def(i)) }) + `}}`
	}
	every := func(keyword string) string {
		return defs(15, func(int) string {
			return `{"` + keyword + `":[` + repeated(15, ",", func(j int) string { return fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, j) }) + `]}`
		})
	}
	return map[string]string{
		"everything refers to everything": defs(15, func(int) string {
			return `{"type":"object","properties":{` + repeated(15, ",", func(j int) string { return fmt.Sprintf(`"p%d":{"$ref":"#/$defs/d%d"}`, j, j) }) + `}}`
		}),
		"a union of all unions":             every("anyOf"),
		"an exclusive union of all unions":  every("oneOf"),
		"a conjunction of all conjunctions": every("allOf"),
		"each level doubles": defs(40, func(i int) string {
			return fmt.Sprintf(`{"properties":{"x":{"$ref":"#/$defs/d%[1]d"},"y":{"$ref":"#/$defs/d%[1]d"}}}`, min(i+1, 39))
		}),
		"a product of unions": `{"type":"object","properties":{"a":{"allOf":[` + repeated(12, ",", func(i int) string {
			return fmt.Sprintf(`{"anyOf":[{"properties":{"a%d":{"type":"string"}}},{"properties":{"b":{"type":"string"}}},{"type":"string"}]}`, i)
		}) + `]}}}`,
		"more properties than anybody takes":  `{"type":"object","properties":{` + repeated(5100, ",", func(i int) string { return fmt.Sprintf(`"p%d":{"type":"string"}`, i) }) + `}}`,
		"more values than anybody takes":      `{"type":"object","properties":{"e":{"enum":[` + repeated(6000, ",", func(i int) string { return fmt.Sprintf(`"value %d"`, i) }) + `]}}}`,
		"many unions in one another":          `{"type":"object","properties":{"a":` + strings.Repeat(`{"anyOf":[{"type":"null"},`, 60) + `{}` + strings.Repeat(`]}`, 60) + `}}`,
		"a list of lists of lists":            `{"type":"object","properties":{"a":` + strings.Repeat(`{"type":"array","items":`, 100) + `{}` + strings.Repeat(`}`, 100) + `}}`,
		"a union that is itself":              `{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#/properties/a"},{"type":"array","items":{"$ref":"#/properties/a"}}]}}}`,
		"an enumeration of long texts":        `{"type":"object","properties":{"e":{"enum":[` + repeated(300, ",", func(i int) string { return fmt.Sprintf(`"%d%s"`, i, strings.Repeat("x", 900)) }) + `]}}}`,
		"keys that all become the same":       `{"type":"object","properties":{` + repeated(300, ",", func(i int) string { return `"` + strings.Repeat("$", i+1) + `":{"type":"integer"}` }) + `}}`,
		"a key that somebody else is renamed": `{"type":"object","properties":{"$a":{"type":"string"},"_a":{"type":"integer"},"#a":{"type":"boolean"}},"required":["$a","#a"]}`,
	}
}

func TestHostileSchemasStayWithinBounds(t *testing.T) {
	deep := json.RawMessage(`{"a":` + strings.Repeat(`{"p1":[`, 60) + `1` + strings.Repeat(`]}`, 60) + `}`)
	shapes := []*adapter.Adapter{
		newAdapter(t, adapter.OpenAI, nil), newAdapter(t, adapter.OpenAI, &adapter.Options{Strict: true}), newAdapter(t, adapter.Anthropic, nil),
		newAdapter(t, adapter.Gemini, nil), newAdapter(t, adapter.Gemini, &adapter.Options{OpenAPISchemas: true}),
	}
	for name, raw := range hostile() {
		for _, a := range shapes {
			d := a.Declare([]tools.Tool{{Name: "t", Description: "d", ArgsSchema: json.RawMessage(raw)}})
			if len(d.Tools) != 1 {
				t.Errorf("%s for %s: %v", name, a.Name(), d.Quarantined)
				continue
			}
			for _, v := range violations(a, d.Request()) {
				t.Errorf("%s for %s: %s", name, a.Name(), v)
			}
			if size := len(d.Request()); size > 600<<10 {
				t.Errorf("%s for %s: a request of %d bytes", name, a.Name(), size)
			}
			calls, err := d.Calls(response(a, "t", deep))
			if err != nil || len(calls) != 1 || calls[0].Err == nil && !json.Valid(calls[0].Args) {
				t.Errorf("%s for %s: %v", name, a.Name(), err)
			}
		}
	}
}

// What a schema costs grows with its size and not with the product of its parts.
func TestHostileSchemasTakeNoTime(t *testing.T) {
	many := func(format string) string {
		return repeated(3000, ",", func(i int) string { return fmt.Sprintf(format, i) })
	}
	args := json.RawMessage(`{` + many(`"b%d":{}`) + `}`)
	for name, raw := range map[string]string{
		"properties and patterns": `{"type":"object","properties":{` + many(`"$a%d":{}`) + `},"patternProperties":{` + many(`"^x%d":{}`) + `}}`,
		"required and renamed":    `{"type":"object","properties":{"$":{}},"required":[` + many(`"a%d"`) + `],"additionalProperties":{"$ref":"#"}}`,
		"many in one conjunction": `{"type":"object","additionalProperties":{"$ref":"#"},"allOf":[` + many(`{"required":["a%d"]}`) + `]}`,
		"the same far reference":  `{"type":"object","properties":{` + many(`"a%d":{"$ref":"#/components/x"}`) + `},"components":{"x":{"type":"string"}}}`,
	} {
		for _, a := range adapters(t) {
			began := peertest.Busy()
			d := a.Declare([]tools.Tool{{Name: "t", Description: "d", ArgsSchema: json.RawMessage(raw)}})
			if len(d.Tools) != 1 {
				t.Errorf("%s for %s: %v", name, a.Name(), d.Quarantined)
				continue
			}
			if _, err := d.Calls(response(a, "t", args)); err != nil {
				t.Error(err)
			}
			if took := peertest.Busy() - began; took > 15*time.Second {
				t.Errorf("%s for %s: %v", name, a.Name(), took)
			}
		}
	}
}

// A long key is in the names of all places below it: a schema whose names are
// hundreds of times as large as itself is left out.
func TestLongKeysOverManySchemas(t *testing.T) {
	raw := `{"properties":{"` + strings.Repeat("k", 200_000) + `":{"properties":{` + repeated(20_000, ",", func(i int) string { return fmt.Sprintf(`"a%d":{}`, i) }) + `}}}}`
	ids := `{"type":"object","$id":"https://example.com/` + strings.Repeat("k", 100_000) + `","properties":{` +
		repeated(10_000, ",", func(i int) string { return fmt.Sprintf(`"a%d":{"$anchor":"a%d"}`, i, i) }) + `}}`
	for _, a := range adapters(t) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		d := a.Declare([]tools.Tool{{Name: "t", ArgsSchema: json.RawMessage(raw)}, {Name: "u", ArgsSchema: json.RawMessage(ids)}, {Name: "v"}})
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 400<<20 {
			t.Errorf("%s took %d MiB", a.Name(), got>>20)
		}
		if _, ok := d.Tool("v"); !ok {
			t.Errorf("%s left out what it need not", a.Name())
		}
	}
}

// Arguments are mapped back as far as that takes no time out of proportion.
func TestArgumentsThatTakeTooLongToMap(t *testing.T) {
	raw := `{"type":"object","properties":{"l":{"items":{"anyOf":[` + repeated(5000, ",", func(i int) string { return fmt.Sprintf(`{"required":["$k%d"]}`, i) }) + `]}}}}`
	a := newAdapter(t, adapter.Anthropic, nil)
	d := a.Declare([]tools.Tool{{Name: "t", ArgsSchema: json.RawMessage(raw)}})
	if _, err := d.Args("t", json.RawMessage(`{"l":[{"_k1":1},{"_k4999":2}]}`)); err != nil {
		t.Error(err)
	}
	_, err := d.Args("t", json.RawMessage(`{"l":[`+repeated(20_000, ",", func(int) string { return `{"k":1}` })+`]}`))
	if !errors.Is(err, tools.ErrToolInvalidArgs) || !strings.Contains(err.Error(), "send less") {
		t.Error(err)
	}
}

// Keys below a pattern are those of the properties that it is for.
func TestKeysBelowPatterns(t *testing.T) {
	raw := `{"type":"object","patternProperties":{"c$":{"required":["$k"]}}}`
	d := newAdapter(t, adapter.Anthropic, nil).Declare([]tools.Tool{{Name: "t", ArgsSchema: json.RawMessage(raw)}})
	got, err := d.Args("t", json.RawMessage(`{"abc":{"_k":1},"abd":{"_k":1}}`))
	if want := `{"abc":{"$k":1},"abd":{"_k":1}}`; err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}
