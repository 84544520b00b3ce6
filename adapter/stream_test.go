package adapter_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/adapter"
	"github.com/toolcrib/toolcrib/tools"
)

// partial streams the arguments of one call in parts, each a path and a value.
func partial(t *testing.T, d *adapter.Declarations, parts ...string) adapter.Call {
	t.Helper()
	s := d.Stream()
	var calls []adapter.Call
	for i, p := range parts {
		more := i < len(parts)-1
		name := ""
		if i == 0 {
			name = `"name":"t",`
		}
		got, err := s.Add(json.RawMessage(fmt.Sprintf(`{"candidates":[{"content":{"parts":[{"functionCall":{%s"partialArgs":[%s],"willContinue":%t}}]}}]}`, name, p, more)))
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, got...)
	}
	if calls = append(calls, s.Close()...); len(calls) != 1 {
		t.Fatalf("%d calls", len(calls))
	}
	return calls[0]
}

// Arguments that are streamed in parts are those that were sent, or none: a part
// that has no place among the others is not left out in silence.
func TestPartialArgumentsThatDoNotFit(t *testing.T) {
	d := newAdapter(t, adapter.Gemini, nil).Declare([]tools.Tool{{Name: "t"}})
	part := func(path, value string) string { return `{"jsonPath":"` + path + `",` + value + `}` }
	for name, test := range map[string]struct {
		parts []string
		want  string
	}{
		"members and elements":  {[]string{part("$.a[0]", `"numberValue":1`), part("$.a[1].b", `"stringValue":"x"`)}, `{"a":[1,{"b":"x"}]}`},
		"a text that goes on":   {[]string{part("$.a", `"stringValue":"x","willContinue":true`), part("$.a", `"stringValue":"y"`)}, `{"a":"xy"}`},
		"a value twice":         {[]string{part("$.a", `"numberValue":1`), part("$.a", `"numberValue":2`)}, ""},
		"a value and a member":  {[]string{part("$.a", `"numberValue":1`), part("$.a.b", `"numberValue":2`)}, ""},
		"a member and a value":  {[]string{part("$.a.b", `"numberValue":1`), part("$.a", `"numberValue":2`)}, ""},
		"a member, an element":  {[]string{part("$.a.b", `"numberValue":1`), part("$.a[0]", `"numberValue":2`)}, ""},
		"a path that is none":   {[]string{part("$.a", `"numberValue":1`), part("$..b", `"numberValue":2`)}, ""},
		"an element far beyond": {[]string{part("$.a[9999]", `"numberValue":1`)}, ""},
	} {
		call := partial(t, d, test.parts...)
		if string(call.Args) != test.want || (call.Err == nil) != (test.want != "") || call.Cut == (test.want != "") {
			t.Errorf("%s: %s, %v", name, call.Args, call.Err)
		}
	}
}

// A short path makes no long list.
func TestPartialArgumentsTakeNoRoom(t *testing.T) {
	d := newAdapter(t, adapter.Gemini, nil).Declare([]tools.Tool{{Name: "t"}})
	var parts []string
	for i := range 300 {
		parts = append(parts, fmt.Sprintf(`{"jsonPath":"$.a[%d][9999]","numberValue":1}`, i))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	partial(t, d, strings.Join(parts, ","))
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 50<<20 {
		t.Errorf("%d MiB", got>>20)
	}
}

// Of a history, the call is mended whose arguments are no object, and not what is
// alike elsewhere.
func TestReplyMendsTheCallItself(t *testing.T) {
	const broken = `{"type":"tool_use","id":"1","name":"t","input":"x"}`
	anthropic := newAdapter(t, adapter.Anthropic, nil).Declare([]tools.Tool{{Name: "t"}})
	list, err := anthropic.Reply(json.RawMessage(`{"role":"assistant","content":[{"type":"tool_use","id":"0","name":"t","input":{"a":` + broken + `}}, ` + broken + `]}`))
	if want := `{"role":"assistant","content":[{"type":"tool_use","id":"0","name":"t","input":{"a":` + broken + `}},{"type":"tool_use","id":"1","name":"t","input":{}}]}`; err != nil || string(list[0]) != want {
		t.Errorf("%s, %v", list, err)
	}
	const use = `{"toolUseId":"1","name":"t","input":"x"}`
	bedrock := newAdapter(t, adapter.Bedrock, nil).Declare([]tools.Tool{{Name: "t"}})
	list, err = bedrock.Reply(json.RawMessage(`{"output":{"message":{"role":"assistant","content":[{"toolUse":{"toolUseId":"0","name":"t","input":{"a":` + use + `}}},{"toolUse":` + use + `}]}}}`))
	if want := `{"role":"assistant","content":[{"toolUse":{"toolUseId":"0","name":"t","input":{"a":` + use + `}}},{"toolUse":{"toolUseId":"1","name":"t","input":{}}}]}`; err != nil || string(list[0]) != want {
		t.Errorf("%s, %v", list, err)
	}
}
