package expr_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolcrib/toolcrib/internal/expr"
)

func shape(t *testing.T, schema string) expr.Shape {
	t.Helper()
	s, err := expr.NewShape(json.RawMessage(schema))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func value(t *testing.T, raw string) any {
	t.Helper()
	v, err := expr.Decode(json.RawMessage(raw))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func env(t *testing.T) *expr.Env {
	t.Helper()
	e, err := expr.NewEnv(map[string]expr.Shape{
		"inputs": shape(t, `{"type":"object","properties":{"title":{"type":"string"},"n":{"type":"integer"},"tree":{"$ref":"#/$defs/tree"}},
			"additionalProperties":false,"$defs":{"tree":{"type":"object","properties":{"left":{"$ref":"#/$defs/tree"},"v":{"type":"number"}},"additionalProperties":false}}}`),
		"steps": {}, "nothing": expr.ObjectOf(nil),
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEval(t *testing.T) {
	variables := map[string]any{
		"inputs": value(t, `{"title":"A <b> & c","n":9007199254740993}`),
		"steps":  value(t, `{"find":{"items":[{"name":"x","score":0.50,"big":123456789012345678901234567890},{"name":"y","score":2}]},"a-b":null}`),
	}
	for source, want := range map[string]string{
		`inputs.title`:              `"A <b> & c"`,
		`inputs.n`:                  `9007199254740993`,
		`inputs.n + 1`:              `9007199254740994`,
		`steps.find.items[0].big`:   `123456789012345678901234567890`,
		`steps.find.items[0].score`: `0.50`,
		`steps["a-b"]`:              `null`,
		`steps.find.items.filter(i, i.score > 1)`:       `[{"name":"y","score":2}]`,
		`steps.find.items.map(i, i.name)`:               `["x","y"]`,
		`{"n": size(steps.find.items), "t": true}`:      `{"n":2,"t":true}`,
		`has(steps.find.nothing)`:                       `false`,
		`steps.find.items[1].score == 2.0`:              `true`,
		`inputs.title.lowerAscii().replace("<b> ", "")`: `"a & c"`,
		`duration("90s")`:                               `"90s"`,
	} {
		p, err := env(t).Compile(source)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		got, err := p.Eval(t.Context(), variables)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if diff := cmp.Diff(value(t, want), value(t, encode(t, got))); diff != "" {
			t.Errorf("%s: %s", source, diff)
		}
	}
}

func encode(t *testing.T, v any) string {
	t.Helper()
	enc, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(enc)
}

func TestCompileRefuses(t *testing.T) {
	for source, want := range map[string]string{
		`inputs.titel`:              `1:7: inputs.titel cannot be read: there is no "titel"; expected one of n, title, tree`,
		`inputs.title.x`:            `it is of type string and has no members`,
		`inputs.n[0]`:               `it is of type integer and has no elements`,
		`inputs.tree.left.left.w`:   `there is no "w"; expected one of left, v`,
		`"a" + inputs.nope`:         `there is no "nope"`,
		`[1].map(x, inputs.nope)`:   `there is no "nope"`,
		`nothing.x`:                 `there is no "x": no members are declared`,
		`nobody.x`:                  `1:1: undeclared reference to 'nobody'`,
		`1 +`:                       `1:4: Syntax error`,
		`"a" + 1`:                   `1:5: found no matching overload`,
		strings.Repeat("1+", 20000): `expression`,
	} {
		_, err := env(t).Compile(source)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: got %v, want %s", source, err, want)
		}
	}
}

func TestKnowing(t *testing.T) {
	less := env(t).Knowing(map[string]expr.Shape{"steps": shape(t, `{"type":"object","properties":{"a":{}},"additionalProperties":false}`)})
	for source, want := range map[string]string{
		`steps.a`:                         ``,
		`[1].map(inputs, inputs)`:         ``,
		`steps.b`:                         `1:6: steps.b cannot be read: there is no "b"; expected one of a`,
		`size(inputs.title)`:              `1:6: there is no inputs here; expected one of steps`,
		`steps.a == 1 ? inputs : steps.a`: `there is no inputs here`,
	} {
		_, err := less.Compile(source)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", source, err, want)
		}
	}
}

func TestMacroVariableIsNotAVariable(t *testing.T) {
	p, err := env(t).Compile(`[{"titel": 1}].map(inputs, inputs.titel)`)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.Eval(t.Context(), nil); err != nil || encode(t, got) != `[1]` {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestCostIsBounded(t *testing.T) {
	list := make([]any, 2000)
	for i := range list {
		list[i] = json.Number("1")
	}
	p, err := env(t).Compile(`steps.l.map(a, steps.l.map(b, a + b))`)
	if err != nil {
		t.Fatal(err)
	}
	variables := map[string]any{"steps": map[string]any{"l": list}}
	if _, err := p.Eval(t.Context(), variables); err == nil || !strings.Contains(err.Error(), "cost limit") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Eval(ctx, variables); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestTemplate(t *testing.T) {
	variables := map[string]any{"inputs": value(t, `{"title":"T","n":12345678901234567890}`), "steps": value(t, `{"s":{"list":[1,2]}}`)}
	for name, tc := range map[string]struct{ in, want, shape string }{
		"plain":     {`{"a":[1,null,"x"]}`, `{"a":[1,null,"x"]}`, `{"type":"object","properties":{"a":{"type":"array"}},"required":["a"],"additionalProperties":false}`},
		"whole":     {`{"n":"${{ inputs.n }}"}`, `{"n":12345678901234567890}`, `{"type":"object","properties":{"n":{"type":"integer"}}}`},
		"text":      {`"${{inputs.title}}: ${{ steps.s.list }} of ${{ inputs.n }}"`, `"T: [1,2] of 12345678901234567890"`, `{"type":"string"}`},
		"braces":    {`"${{ {\"a\": {\"b\": \"}}\"}} }}"`, `{"a":{"b":"}}"}}`, `{"type":"object"}`},
		"no markup": {`"$ {{ x }} }}"`, `"$ {{ x }} }}"`, `{"type":"string"}`},
	} {
		t.Run(name, func(t *testing.T) {
			tpl, err := env(t).Template(value(t, tc.in))
			if err != nil {
				t.Fatal(err)
			}
			got, err := tpl.Fill(t.Context(), variables)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(value(t, tc.want), value(t, encode(t, got))); diff != "" {
				t.Error(diff)
			}
			if err := tpl.Shape().Fits(shape(t, tc.shape)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTemplateRefuses(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":{"b/c":["x","${{ inputs.nope }}"]}}`: `/a/b~1c/1: 1:7: inputs.nope`,
		`"${{ inputs.n"`:  `the value: "${{" is not closed`,
		`"${{ 'x }}"`:     `is not closed`,
		`"${{   }}"`:      `there is no expression`,
		`"a ${{ 1 + }} "`: `the value: 1:`,
	} {
		_, err := env(t).Template(value(t, in))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", in, err, want)
		}
	}
}

func TestFits(t *testing.T) {
	want := shape(t, `{"type":"object","properties":{"q":{"type":"string"},"n":{"type":["integer","null"]},"tags":{"type":"array","items":{"type":"string"}}},"required":["q"],"additionalProperties":false}`)
	for in, fault := range map[string]string{
		`{"q":"x"}`:                               ``,
		`{"q":"${{ steps.any }}"}`:                ``,
		`{"q":"x","n":null}`:                      ``,
		`{"q":"x","n":"${{ inputs.n }}"}`:         ``,
		`{"n":1}`:                                 `the value: missing required property "q"`,
		`{"q":"${{ inputs.n }}"}`:                 `/q: expected string, got integer`,
		`{"q":"x","n":"${{ inputs.title }}"}`:     `/n: expected integer or null, got string`,
		`{"q":"x","m":1}`:                         `/m: unexpected: there is no "m"; expected one of n, q, tags`,
		`{"q":"x","tags":"${{ [1].map(x, x) }}"}`: ``,
		`{"q":"x","tags":"no list"}`:              `/tags: expected array, got string`,
	} {
		tpl, err := env(t).Template(value(t, in))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := tpl.Shape().Fits(want); err != nil {
			got = err.Error()
		}
		if got != fault {
			t.Errorf("%s: got %q, want %q", in, got, fault)
		}
	}
}

func TestReads(t *testing.T) {
	tpl, err := env(t).Template(value(t, `{"a":"${{ steps.find.items[0].name }} ${{ steps['get-it'].x + inputs.n }}"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"steps", "find", "items"}, {"steps", "get-it", "x"}, {"inputs", "n"}}
	if diff := cmp.Diff(want, tpl.Reads()); diff != "" {
		t.Error(diff)
	}
}

func FuzzTemplate(f *testing.F) {
	f.Add(`"${{ inputs.n }}"`)
	f.Add(`{"a":"x ${{ steps.a[0]['}}'] }} y"}`)
	f.Fuzz(func(t *testing.T, raw string) {
		v, err := expr.Decode(json.RawMessage(raw))
		if err != nil {
			return
		}
		tpl, err := env(t).Template(v)
		if err != nil {
			return
		}
		out, err := tpl.Fill(t.Context(), map[string]any{"inputs": map[string]any{}, "steps": map[string]any{}})
		if err == nil {
			encode(t, out)
		}
	})
}
