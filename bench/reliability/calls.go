package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// The ways in which a call ends for its caller.
const (
	answered = "answered"
	unknown  = "outcome unknown"
	refused  = "refused, did not run"
	broke    = "its connection broke"
	silent   = "no answer in time"
	wrong    = "wrong answer"
)

// outcome is what the caller of one call was told.
type outcome struct {
	id    string
	write bool
	once  bool // it has no key, so that its caller cannot ask again
	end   string
	why   string   // of an end that is not an answer
	story []string // of each try that gave no answer
	tries int
	took  time.Duration
}

// makeCalls makes all calls, and kills a process each time that an equal part of
// them was answered.
func makeCalls(ctx context.Context, o *options, c *cluster) []outcome {
	outcomes := make([]outcome, o.calls)
	var next, done atomic.Int64
	kills := make(chan struct{}, o.kills)
	var killing sync.WaitGroup
	killing.Go(func() {
		for range kills {
			if err := c.kill(); err != nil {
				fmt.Println("a process could not be started again:", err)
			}
		}
	})
	var callers sync.WaitGroup
	for range o.inFlight {
		callers.Go(func() {
			for i := next.Add(1) - 1; i < int64(o.calls) && ctx.Err() == nil; i = next.Add(1) - 1 {
				outcomes[i] = makeCall(ctx, o, c.url, int(i))
				n := int(done.Add(1))
				if part := o.calls / (o.kills + 1); n%part == 0 && n/part <= o.kills {
					kills <- struct{}{}
				}
			}
		})
	}
	callers.Wait()
	close(kills)
	killing.Wait()
	return outcomes
}

// makeCall makes one call as a careful caller does: after a broken connection it
// asks again with the same key, which gives the same answer and never a second
// run; and so it does after an answer that says that nothing ran, or that the tool
// is not there yet, until it tried for the whole time. Without a key it asks again
// after such an answer alone.
func makeCall(ctx context.Context, o *options, url string, i int) outcome {
	out := outcome{id: fmt.Sprintf("call-%d", i), write: i%4 != 3, once: i%4 == 1, end: silent}
	tool := "rely.write"
	if !out.write {
		tool = "rely.read"
	}
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, o.deadline)
	defer cancel()
	for {
		out.tries++
		answer, err := post(ctx, url+"/v1/tools/call", out.body(tool))
		switch {
		case err == nil:
			out.end, out.why = read(answer, out.id)
		case out.once && ctx.Err() == nil && !errors.Is(err, syscall.ECONNREFUSED):
			out.end, out.why = broke, err.Error()
		default:
			out.end, out.why = silent, err.Error()
		}
		if out.end != refused && out.end != silent {
			break
		}
		out.story = append(out.story, out.why)
		if !pause(ctx, 100*time.Millisecond) {
			out.end = silent
			break
		}
	}
	out.took = time.Since(begin)
	return out
}

// body is the request.
func (o *outcome) body(tool string) string {
	if o.once {
		return fmt.Sprintf(`{"name":%q,"arguments":{"id":%q}}`, tool, o.id)
	}
	return fmt.Sprintf(`{"name":%q,"arguments":{"id":%q},"idempotency_key":%[2]q}`, tool, o.id)
}

// read says what an answer means.
func read(answer []byte, id string) (end, why string) {
	var a struct {
		Structured named `json:"structured"`
		Error      *struct {
			Code           string `json:"code"`
			Message        string `json:"message"`
			OutcomeUnknown bool   `json:"outcome_unknown"`
		} `json:"error"`
	}
	err := json.Unmarshal(answer, &a)
	switch {
	case err != nil:
		return wrong, err.Error()
	case a.Error != nil && a.Error.OutcomeUnknown:
		return unknown, a.Error.Message
	case a.Error != nil:
		return refused, a.Error.Code + ": " + a.Error.Message
	case a.Structured.ID != id:
		return wrong, string(answer[:min(len(answer), 200)])
	}
	return answered, ""
}

// verdict is how outcomes and effects agree.
type verdict struct {
	ends   map[string]int // of calls with effects and a key
	once   map[string]int // of those without a key
	reads  map[string]int
	tries  int
	longer []time.Duration
	broken []string
}

func judge(outcomes []outcome, runs map[string]int) *verdict {
	v := &verdict{ends: map[string]int{}, once: map[string]int{}, reads: map[string]int{}}
	for _, o := range outcomes {
		v.tries += o.tries
		v.longer = append(v.longer, o.took)
		if !o.write {
			v.reads[o.end]++
			if o.end != answered {
				v.complain("%s, which only reads: %s: %s", o.id, o.end, o.why)
			}
			continue
		}
		if o.once {
			v.once[o.end]++
		} else {
			v.ends[o.end]++
		}
		switch n := runs[o.id]; {
		case n > 1:
			v.complain("%s ran %d times, after tries that ended with %q, and at last %s %s", o.id, n, o.story, o.end, o.why)
		case o.end == answered && n != 1:
			v.complain("%s was answered and ran %d times", o.id, n)
		case o.end == silent || o.end == wrong || o.end == refused:
			v.complain("%s: %s after %d tries: %s", o.id, o.end, o.tries, o.why)
		}
	}
	slices.Sort(v.longer)
	return v
}

// complain notes a promise that was broken; a few are enough to see which.
func (v *verdict) complain(format string, args ...any) {
	if len(v.broken) < 10 {
		v.broken = append(v.broken, fmt.Sprintf(format, args...))
	}
}

func (v *verdict) table(o *options, kills map[string]int, took time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| | |\n|---|---|\n| calls | %d, %d at a time, %d workers |\n", o.calls, o.inFlight, o.workers)
	fmt.Fprintf(&b, "| killed with SIGKILL and started again | %d workers, %d gateways, %d stream servers |\n", kills["worker"], kills["gateway"], kills["stream server"])
	fmt.Fprintf(&b, "| calls with effects and a key: answered, ran exactly once | %d |\n", v.ends[answered])
	fmt.Fprintf(&b, "| calls with effects and a key: outcome unknown, ran at most once | %d |\n", v.ends[unknown])
	fmt.Fprintf(&b, "| calls with effects, without a key: answered, ran exactly once | %d |\n", v.once[answered])
	fmt.Fprintf(&b, "| calls with effects, without a key: outcome unknown, or their connection broke; ran at most once | %d, %d |\n", v.once[unknown], v.once[broke])
	fmt.Fprintf(&b, "| calls that only read: answered | %d |\n", v.reads[answered])
	fmt.Fprintf(&b, "| ran twice, without an answer, or answered wrongly | %d |\n", len(v.broken))
	fmt.Fprintf(&b, "| requests that callers made | %d |\n", v.tries)
	fmt.Fprintf(&b, "| time of a call: median, 99 of 100, longest | %s, %s, %s |\n", at(v.longer, 50), at(v.longer, 99), at(v.longer, 100))
	fmt.Fprintf(&b, "| time of the whole | %s |\n", took.Round(100*time.Millisecond))
	return b.String()
}

// at returns the value below which so many of a hundred are.
func at(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)].Round(time.Millisecond)
}
