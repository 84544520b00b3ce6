package mcpserver_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/toolcrib/toolcrib/mcpserver"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
)

// A breaker panics where the results of one tool are made small.
type breaker struct{}

func (breaker) Bound(_ context.Context, tool *tools.Tool, r tools.ToolResult) (tools.ToolResult, error) {
	if tool.Name == "panic" {
		panic("bounds")
	}
	return r, nil
}

// A call of a client that can be asked has a goroutine of its own. What ends that,
// or panics on it, is answered for and harms no other call.
func TestCallThatEndsItsGoroutineIsAnswered(t *testing.T) {
	c := askingCrib(t)
	for name, leave := range map[string]func(){"leave": runtime.Goexit, "panic": func() {}} {
		err := inproc.RegisterFunc(c, name, func(context.Context, struct{}) (string, error) {
			leave()
			return "", nil
		}, tools.WithInline())
		if err != nil {
			t.Fatal(err)
		}
	}
	p := &asker{pipe: openPipe(t, c.serve(t, &mcpserver.Options{Bounder: breaker{}}))}
	for _, name := range []string{"leave", "panic"} {
		if answer := p.call(t, name, ""); at(answer, "error", "code") != "-32603" || at(answer, "error", "message") != "internal error" {
			t.Errorf("%s: %s", name, answer)
		}
	}
	if answer := p.call(t, "ask.one", ""); at(answer, "result", "resultType") != "input_required" {
		t.Errorf("%s", answer)
	}
}
