package expr_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/internal/expr"
)

// anything is an environment in which nothing is known of the inputs.
func anything(t *testing.T) *expr.Env {
	t.Helper()
	e, err := expr.NewEnv(map[string]expr.Shape{"inputs": {}})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// What an expression gives is bounded before the memory for it is taken, as those
// who call a tool choose what its expressions read.
func TestSizeIsBounded(t *testing.T) {
	list := make([]any, 4000)
	for i := range list {
		list[i] = "x"
	}
	variables := map[string]any{"inputs": map[string]any{"a": strings.Repeat("x", 4000), "big": strings.Repeat("y", 100_000), "list": list}}
	for _, source := range []string{
		`inputs.a.replace("x", inputs.big)`,
		`inputs.a.replace("", inputs.big)`,
		`inputs.a.replace("x", inputs.big, 3000)`,
		`inputs.list.join(inputs.big)`,
		`inputs.list.map(x, inputs.big).join()`,
		`inputs.list.map(x, inputs.big)`,
		`{"a": inputs.list.map(x, [inputs.big])}`,
		`[1]` + strings.Repeat(`.map(a, [a, a])`, 40),
		`[1]` + strings.Repeat(`.map(a, {"k": a, "l": a})`, 40),
		`[["x"]]` + strings.Repeat(`.map(a, a + a)`, 40) + `[0].join()`,
	} {
		t.Run(source[:min(len(source), 40)], func(t *testing.T) {
			p, err := anything(t).Compile(source)
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err = p.Eval(t.Context(), variables)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), "too large") && !strings.Contains(err.Error(), "would have more than") &&
				!strings.Contains(err.Error(), "cost limit") {
				t.Errorf("got %v", err)
			}
			if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 400 {
				t.Errorf("%d MB were taken", took)
			}
		})
	}
}

func TestReplaceAndJoin(t *testing.T) {
	for source, want := range map[string]string{
		`"aXbX".replace("X", "--")`:        `"a--b--"`,
		`"aXbX".replace("X", "--", 1)`:     `"a--bX"`,
		`"aXbX".replace("X", "--", 0)`:     `"aXbX"`,
		`"aXbX".replace("X", "--", -1)`:    `"a--b--"`,
		`"ab".replace("", "-")`:            `"-a-b-"`,
		`["a", "b"].join()`:                `"ab"`,
		`["a", "", "b"].join(", ")`:        `"a, , b"`,
		`[].join("x")`:                     `""`,
		`["é"].join("x").replace("é","e")`: `"e"`,
	} {
		p, err := anything(t).Compile(source)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Eval(t.Context(), nil); err != nil || encode(t, got) != want {
			t.Errorf("%s: got %v, %v", source, got, err)
		}
	}
	p, err := anything(t).Compile(`[1, 2].map(x, dyn(x)).join("x")`)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.Eval(t.Context(), nil); err == nil {
		t.Errorf("got %v", got)
	}
}

func TestTextIsBounded(t *testing.T) {
	template, err := anything(t).Template(strings.Repeat("${{ inputs.big }} ", 700))
	if err != nil {
		t.Fatal(err)
	}
	variables := map[string]any{"inputs": map[string]any{"big": strings.Repeat("y", 100_000)}}
	if _, err := template.Fill(t.Context(), variables); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("got %v", err)
	}
}

func TestExpressive(t *testing.T) {
	for _, tc := range []struct {
		value any
		want  bool
	}{{nil, false}, {"a", false}, {map[string]any{"a": []any{"x", 1}}, false}, {[]any{map[string]any{"a": "b ${{ inputs }}"}}, true}, {make(chan int), true}} {
		if got := expr.Expressive(tc.value); got != tc.want {
			t.Errorf("%v: got %t", tc.value, got)
		}
	}
}
