package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/toolcrib/toolcrib/exec"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/flow"
	"github.com/toolcrib/toolcrib/tools/inproc"
)

type increment struct {
	N int `json:"n"`
}

// BenchmarkFlowStep compares a flow of 20 steps, each a call of a tool with the
// result of the step before, with 20 such calls.
func BenchmarkFlowStep(b *testing.B) {
	const steps = 20
	cat := tools.NewCatalog().(tools.LiveCatalog)
	if err := inproc.RegisterFunc(cat, "step", func(_ context.Context, in increment) (increment, error) { return increment{in.N + 1}, nil }); err != nil {
		b.Fatal(err)
	}
	def := flow.Definition{Name: "chain", Entry: "n0", Exit: fmt.Sprint("n", steps-1), Inputs: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}
	from := "inputs.n"
	for i := range steps {
		node := flow.Node{ID: fmt.Sprint("n", i), Tool: "step", Inputs: map[string]any{"n": "${{ " + from + " }}"}}
		if i < steps-1 {
			node.Next = []flow.Edge{{To: fmt.Sprint("n", i+1)}}
		}
		def.Nodes = append(def.Nodes, node)
		from = fmt.Sprintf("nodes.n%d.n", i)
	}
	f, err := flow.Compose(def, &flow.Options{Runner: exec.NewRunner(cat)})
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	calls := func() {
		args := json.RawMessage(`{"n":0}`)
		for range steps {
			result, err := tools.Invoke(ctx, cat, "step", args)
			if err != nil {
				b.Fatal(err)
			}
			if args, err = result.JSON(); err != nil {
				b.Fatal(err)
			}
		}
	}
	whole := func() {
		if out, err := f.Run(ctx, json.RawMessage(`{"n":0}`)); err != nil || fmt.Sprint(out) != "map[n:20]" {
			b.Fatal(out, err)
		}
	}
	b.Run("calls", func(b *testing.B) { beside(b, calls, calls) })
	b.Run("flow", func(b *testing.B) { beside(b, calls, whole) })
}
