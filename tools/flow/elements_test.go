package flow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
)

type batch struct {
	List  []int `json:"list"`
	Index int   `json:"index"`
}

// What is made of the elements of a list is there while an element runs, and not of all of them at once.
func TestElementsAreMadeOneAtATime(t *testing.T) {
	const elements, size, most = 100, 10_000, 16 << 20
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	var first, last int64
	var tr tracker
	cat := catalog(t, &tr)
	err := inproc.RegisterFunc(cat, "measure", func(_ context.Context, in batch) (sum, error) {
		switch in.Index {
		case 0:
			first = heap()
		case elements - 1:
			last = heap()
		}
		return sum{len(in.List)}, nil
	}, tools.WithSideEffect(tools.SideEffectPure))
	if err != nil {
		t.Fatal(err)
	}
	doc := strings.Replace(one(fmt.Sprintf(`{id: a, tool: measure, inputs: {list: "${{ inputs.list.map(n, n + index) }}", index: "${{ index }}"}, for_each: {items: "inputs.elements", limit: %d}}`, elements)),
		"entry", "inputs: {type: object, properties: {list: {type: array, items: {type: integer}}, elements: {type: array}}}\nentry", 1)
	before := heap()
	inputs, err := json.Marshal(map[string]any{"list": make([]int, size), "elements": make([]int, elements)})
	if err != nil {
		t.Fatal(err)
	}
	got := run(t, allowed(t.Context()), compose(t, doc, cat), string(inputs))
	if want := fmt.Sprintf(`{"sum":%d}`, size); strings.Count(got, want) != elements {
		t.Errorf("got %.100s", got)
	}
	if first-before > most || last-before > most {
		t.Errorf("%d MB more with the first element and %d with the last", (first-before)>>20, (last-before)>>20)
	}
}
