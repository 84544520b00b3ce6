package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"github.com/toolcrib/toolcrib/tools"
)

// What a tool says after its call was answered goes nowhere.
func TestNothingFollowsTheAnswer(t *testing.T) {
	c := newCrib(t)
	answered, said := make(chan struct{}), make(chan error, 2)
	err := c.Register(tools.ToolDescriptor{
		Tool: tools.Tool{Name: "late"},
		Invoke: func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
			call := tools.CallFrom(ctx)
			go func() {
				<-answered
				ctx := context.WithoutCancel(ctx)
				said <- call.Progress(ctx, tools.ProgressNote{Progress: 1})
				said <- call.Log(ctx, tools.LogNote{Level: "emergency", Data: json.RawMessage(`"late"`)})
			}()
			return tools.ToolResult{Value: "early"}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	p := openPipe(t, c.serve(t, nil))
	p.write(t, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
	p.readAnswer(t)
	p.write(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"late","_meta":{"progressToken":1}}}`)
	p.readAnswer(t)
	close(answered)
	for range 2 {
		if err := receive(t, said); err != nil {
			t.Error(err)
		}
	}
	p.write(t, `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	p.readAnswer(t)
	if all := p.end(t); bytes.Contains(all, []byte("notifications/")) {
		t.Errorf("a note came after the answer:\n%s", all)
	}
}
