package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcrib/toolcrib/tools"
)

// TestLimitsAreKeptToTheMoment: a call ends when its tool does or when its limit
// is used up, whichever comes first, whether it takes long enough for a timer of
// its own or not, and whatever others are under way.
func TestLimitsAreKeptToTheMoment(t *testing.T) {
	limits := []int{1, 4, 9, 10, 11, 12, 16, 1000}
	lengths := []int{0, 3, 5, 6, 8, 13, 14, 21, 2000}
	synctest.Test(t, func(t *testing.T) {
		cat := newCatalog(t, nil)
		for _, limit := range limits {
			policy := tools.WithPolicy(tools.ToolPolicy{TimeoutMS: limit, MaxRetries: -1})
			for _, length := range lengths {
				deaf := func(context.Context, json.RawMessage) (tools.ToolResult, error) {
					<-time.After(time.Duration(length) * time.Millisecond)
					return tools.ToolResult{}, nil
				}
				if err := cat.Register(plain(fmt.Sprintf("t%d.%d", limit, length), deaf, policy)); err != nil {
					t.Fatal(err)
				}
			}
		}
		var calls sync.WaitGroup
		for round := range 7 { // so that calls begin at different moments
			for _, limit := range limits {
				for _, length := range lengths {
					calls.Go(func() {
						begin := time.Now()
						_, err := tools.Invoke(context.Background(), cat, fmt.Sprintf("t%d.%d", limit, length), nil)
						took := time.Since(begin).Milliseconds()
						if late := errors.Is(err, context.DeadlineExceeded); late != (length > limit) || took != int64(min(limit, length)) {
							t.Errorf("limit %d ms, length %d ms, round %d: %v after %d ms", limit, length, round, err, took)
						}
					})
				}
			}
			<-time.After(time.Millisecond)
		}
		calls.Wait()
		<-time.After(3 * time.Second) // the tools that nobody waits for end
	})
}

// TestCallerGoesAwayEarlyAndLate: the end of the caller's context ends a call
// at once, before and after it has a timer of its own.
func TestCallerGoesAwayEarlyAndLate(t *testing.T) {
	for _, patience := range []time.Duration{time.Millisecond, 5 * time.Millisecond, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			cat := newCatalog(t, nil, plain("t", func(context.Context, json.RawMessage) (tools.ToolResult, error) {
				<-time.After(time.Minute)
				return tools.ToolResult{}, nil
			}))
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(patience, cancel)
			begin := time.Now()
			_, err := tools.Invoke(ctx, cat, "t", nil)
			if !errors.Is(err, context.Canceled) || time.Since(begin) != patience {
				t.Errorf("%v after %v, want the end after %v", err, time.Since(begin), patience)
			}
			<-time.After(2 * time.Minute)
		})
	}
}

// TestManyCallsAroundTheirGrace runs calls whose tools return at the moment at
// which they get a timer.
func TestManyCallsAroundTheirGrace(t *testing.T) {
	cat := newCatalog(t, nil, plain("t", func(_ context.Context, args json.RawMessage) (tools.ToolResult, error) {
		var n time.Duration
		_ = json.Unmarshal(args, &n)
		<-time.After(4*time.Millisecond + n*20*time.Microsecond)
		return tools.ToolResult{Value: args}, nil
	}))
	var calls sync.WaitGroup
	for worker := range 16 {
		calls.Go(func() {
			for n := range 25 {
				args := fmt.Append(nil, (worker*25+n)%100)
				if _, err := tools.Invoke(context.Background(), cat, "t", args); err != nil {
					t.Error(err)
				}
			}
		})
	}
	calls.Wait()
}
