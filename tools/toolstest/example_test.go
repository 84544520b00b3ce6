package toolstest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/toolstest"
)

// A catalog that was written by somebody else is held to what package tools documents. This is the body of its
// test.
func ExampleRunCatalog() {
	_ = func(t *testing.T) {
		toolstest.RunCatalog(t, func() tools.ToolCatalog { return tools.NewCatalog() })
	}
}

// A source passes the suite against a real server, which the test starts. This is the body of its test.
func ExampleRunSource() {
	start := func(*testing.T) (address string) { return "" } // starts a server of your kind
	provider := func(address string) tools.ToolProvider { return nil }
	_ = func(t *testing.T) {
		toolstest.RunSource(t, toolstest.SourceCase{Open: func(t *testing.T) *toolstest.Source {
			return &toolstest.Source{
				Provider: provider(start(t)),
				Echo: func(text string) toolstest.Probe {
					args, _ := json.Marshal(map[string]string{"text": text})
					return toolstest.Probe{Name: "mine.echo", Args: args}
				},
				// and the other probes
			}
		}})
	}
}

// A script stands for a tool that fails before it works.
func ExampleScript() {
	down := &tools.Error{Class: tools.ErrClassTransient, Delivery: tools.NotDelivered, Message: "not yet"}
	script := toolstest.NewScript(toolstest.Fail(down), toolstest.Fail(down), toolstest.Answer("at last"))
	cat := tools.NewCatalog()
	policy := tools.ToolPolicy{MaxRetries: 2, BackoffBase: 1}
	if err := cat.Register(script.Descriptor("door.open", tools.WithPolicy(policy))); err != nil {
		fmt.Println(err)
		return
	}
	res, err := tools.Invoke(context.Background(), cat, "door.open", json.RawMessage(`{"door":7}`))
	fmt.Println(res.Value, res.Attempts, err)
	for _, args := range script.Attempts() {
		fmt.Println(string(args))
	}
	// Output:
	// at last 3 <nil>
	// {"door":7}
	// {"door":7}
	// {"door":7}
}

// A recorder keeps what happened, and a peer what a tool told its caller.
func ExampleRecorder() {
	var rec toolstest.Recorder
	var peer toolstest.Peer
	cat := tools.NewCatalog(tools.WithStages(tools.Stages{Recorder: &rec}))
	script := toolstest.NewScript(func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
		return tools.ToolResult{Value: "done"}, tools.Progress(ctx, 1, 2, "half way")
	})
	if err := cat.Register(script.Descriptor("work")); err != nil {
		fmt.Println(err)
		return
	}
	ctx := tools.WithEntrance(context.Background(), tools.Entrance{Peer: &peer})
	if _, err := tools.Invoke(ctx, cat, "work", nil); err != nil {
		fmt.Println(err)
	}
	notes, _ := peer.Heard()
	fmt.Println(notes[0].Message)
	for _, r := range rec.Records() {
		fmt.Println(r.Tool.Name, r.Attempts, r.Err)
	}
	// Output:
	// half way
	// work 1 <nil>
}
