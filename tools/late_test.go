package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcrib/toolcrib/tools"
)

// A tool that asks for the end of its context only when that has ended finds it
// ended, for whichever reason, and goes on.
func TestToolThatLooksAtItsContextLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		for reason, end := range map[error]func(){
			context.Canceled:         cancel,
			context.DeadlineExceeded: func() { time.Sleep(2 * time.Second) },
		} {
			outer := context.Background()
			if reason == context.Canceled {
				outer = ctx
			}
			var found error
			cat := newCatalog(t, nil, tools.ResolveOptions(tools.WithInline()).Descriptor(
				tools.Tool{Name: "late", Policy: tools.ToolPolicy{TimeoutMS: 1000, MaxRetries: -1}},
				func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
					end()
					<-ctx.Done()
					found = ctx.Err()
					return tools.ToolResult{}, ctx.Err()
				}))
			_, err := tools.Invoke(outer, cat, "late", nil)
			if !errors.Is(found, reason) || !errors.Is(err, reason) {
				t.Errorf("%v: the tool found %v, the caller got %v", reason, found, err)
			}
		}
	})
}
