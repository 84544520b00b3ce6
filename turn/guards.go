package turn

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolcrib/toolcrib/tools"
)

// CapResults returns middleware that withholds results of more than limit bytes.
// They are never cut: what a model reads is whole or not there. Where results are
// to be stored and shown in part, use a Bounder instead, before which this stands.
func CapResults(limit int64) Middleware {
	return After(func(_ context.Context, _ *Invocation, res *tools.ToolResult) error {
		if n := size(res); n > limit {
			return fmt.Errorf("it has %d bytes, and %d are allowed; ask for less", n, limit)
		}
		return nil
	})
}

// loop is what a run remembers of one call.
type loop struct {
	outcome [sha256.Size]byte
	times   int
}

// StopLoops returns middleware that refuses a call which, with the same tool and
// arguments, had the same outcome limit times in a row during the run. A call
// whose outcome changes, as when something is watched until it is done, goes on.
func StopLoops(limit int) Middleware {
	limit = max(limit, 1)
	return func(next Handler) Handler {
		return func(ctx context.Context, inv *Invocation) (tools.ToolResult, error) {
			key := loopKey(inv)
			if seen, _ := inv.Run().Mark(key, same).(loop); seen.times >= limit {
				return tools.ToolResult{}, denied(fmt.Errorf("it had the same outcome %d times; do something else", seen.times))
			}
			res, err := next(ctx, inv)
			if ctx.Err() == nil {
				inv.Run().Mark(key, counting(outcome(&res, err)))
			}
			return res, err
		}
	}
}

func same(v any) any { return v }

// counting counts an outcome that is the same as the last.
func counting(now [sha256.Size]byte) func(any) any {
	return func(v any) any {
		last, _ := v.(loop)
		if last.outcome != now {
			last.times = 0
		}
		return loop{now, last.times + 1}
	}
}

func loopKey(inv *Invocation) string {
	sum := sha256.Sum256(sorted(inv.Args))
	return "loop " + inv.Tool.Name + " " + hex.EncodeToString(sum[:])
}

// sorted returns arguments with the members of objects in order, so that a call is
// the same however they are written. What is not JSON stays as it is.
func sorted(args json.RawMessage) []byte {
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return args
	}
	out, err := json.Marshal(v)
	if err != nil {
		return args
	}
	return out
}

// outcome identifies what a call came to.
func outcome(res *tools.ToolResult, err error) (sum [sha256.Size]byte) {
	h := sha256.New()
	if err != nil {
		var e *tools.Error
		text := err.Error()
		if errors.As(err, &e) {
			text = e.SafeMessage()
		}
		h.Write([]byte("error " + text))
	} else {
		fmt.Fprintf(h, "%v %s", res.IsError, res.Structured)
		for _, c := range res.Content {
			h.Write(c.JSON)
		}
	}
	h.Sum(sum[:0])
	return sum
}
