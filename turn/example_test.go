package turn_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toolcrib/toolcrib/adapter"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
	"github.com/toolcrib/toolcrib/turn"
)

type sumArgs struct {
	Numbers []int `json:"numbers"`
}

type sumResult struct {
	Sum int `json:"sum"`
}

func sum(_ context.Context, in sumArgs) (out sumResult, err error) {
	for _, n := range in.Numbers {
		out.Sum += n
	}
	return out, nil
}

// sums is a catalog with one tool.
func sums() tools.LiveCatalog {
	cat := tools.NewCatalog().(tools.LiveCatalog)
	if err := inproc.RegisterFunc(cat, "math.sum", sum, tools.WithSideEffect(tools.SideEffectPure)); err != nil {
		panic(err)
	}
	return cat
}

func Example() {
	ctx := context.Background()
	t, err := turn.New(sums(), nil).Begin(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(t.Names())
	results, err := t.Execute(ctx, []turn.Call{
		{ID: "a", Name: "math.sum", Args: json.RawMessage(`{"numbers":[1,2,3]}`)},
		{ID: "b", Name: "math.sum", Args: json.RawMessage(`{"numbers":"1,2,3"}`)},
		{ID: "b", Name: "math.som", Args: json.RawMessage(`{}`)},
	})
	for _, r := range results {
		fmt.Printf("%s %s %s%s\n", r.ID, r.Status, r.Structured, r.Text())
	}
	fmt.Println(err)
	// Output:
	// [math.sum]
	// a completed {"sum":6}
	// b invalid "math.sum" was not run, its arguments are not valid: /numbers: expected array or null, got string. Send the call again with arguments that satisfy its schema.
	// b unknown There is no tool "math.som" in this turn. Did you mean "math.sum"?
	// <nil>
}

func ExampleTurn_Respond() {
	ctx := context.Background()
	t, err := turn.New(sums(), nil).Begin(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	declared := t.Declare(adapter.NewAnthropicAdapter())
	response := fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":%q,"input":{"numbers":[4,5]}}]}`, declared.Tools[0].Wire)
	answer, err := t.Respond(ctx, declared, json.RawMessage(response))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(answer.Messages[1]))
	// Output: {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"{\"sum\":9}"}]}]}
}

func ExampleRun() {
	ctx := context.Background()
	runner := turn.New(sums(), &turn.Options{Run: turn.Limits{Calls: 2}})
	run := runner.NewRun(turn.Usage{})
	calls := []turn.Call{{Name: "math.sum", Args: json.RawMessage(`{"numbers":[1]}`)}, {Name: "math.sum", Args: json.RawMessage(`{"numbers":[2]}`)}}
	for range 2 {
		t, err := run.Begin(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		results, err := t.Execute(ctx, calls)
		fmt.Println(results[0].Status, results[1].Status, err)
	}
	// Output:
	// completed completed <nil>
	// not_run not_run turn: budget used up: the run's limit of 2 calls is used up
}
