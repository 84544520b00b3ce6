package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/tools"
)

func TestRetriesSlowDown(t *testing.T) {
	for failures, longest := range map[int]time.Duration{1: firstRetry, 2: 2 * firstRetry, 5: 16 * firstRetry, 50: longestRetry, 5000: longestRetry} {
		for range 100 {
			if got := retryAfter(failures); got > longest || got < longest*3/4-1 {
				t.Errorf("after %d failures: %v, want at most %v and at least three quarters of it", failures, got, longest)
			}
		}
	}
}

// A call that meets a closed source is not tried again, and says whether the
// tool is there for another call.
func TestCallOfAClosedSource(t *testing.T) {
	cat := tools.NewCatalog().(tools.LiveCatalog)
	s := &source{cat: cat, calls: newGate()}
	s.calls.close()
	run := s.counted("x", func(context.Context, json.RawMessage) (tools.ToolResult, error) {
		t.Error("the closed source was called")
		return tools.ToolResult{}, nil
	})
	for name, c := range map[string]struct {
		register, notFound bool
	}{"removed": {notFound: true}, "replaced": {register: true}} {
		bound := tools.ToolDescriptor{Tool: tools.Tool{Name: "x", ArgsSchema: json.RawMessage(`{}`)}, Invoke: run}
		cat.SwapSource("a", []tools.ToolDescriptor{bound})
		d, ok := cat.Resolve("x")
		if !ok {
			t.Fatal("the tool is not in the catalog")
		}
		if !c.register {
			cat.SwapSource("a", nil)
		}
		_, err := d.Invoke(context.Background(), nil)
		te, ok := errors.AsType[*tools.Error](err)
		if !ok || te.Attempts > 1 || te.Delivery != tools.NotDelivered || te.Retryable != c.register || errors.Is(err, tools.ErrToolNotFound) != c.notFound {
			t.Errorf("%s: %+v", name, err)
		}
	}
}
