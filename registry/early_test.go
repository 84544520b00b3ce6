package registry

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/store"
)

// asked calls see before something is written, and refuses it when that says so.
type asked struct {
	store.Records
	see func() error
}

func (a *asked) Apply(ctx context.Context, b store.Batch) ([]store.Revision, error) {
	if err := a.see(); err != nil {
		return nil, err
	}
	return a.Records.Apply(ctx, b)
}

// Whoever waits for a call has its result before its record goes, or before that is
// written where somebody else may ask for the same call, or may have ended it.
func TestResultBeforeItsRecord(t *testing.T) {
	for _, test := range []struct {
		name  string
		made  func(c *call)
		early bool
	}{
		{"a call with an id of its own", func(*call) {}, true},
		{"one that can be asked for again", func(c *call) { c.again = true }, false},
		{"one whose caller has gone", func(c *call) { c.waiter.leave() }, false},
		{"one that was taken up and can be asked for again", func(c *call) {
			rec := c.rec
			rec.State, rec.Message = stateAccepted, c.message
			c.again = (&Registry{calls: map[string]*call{}}).adopt(c.key, &rec, c.rev).again
		}, false},
		{"one that was claimed a while ago", func(c *call) { c.rec.Claimed = time.Now().Add(-soonest) }, false},
		{"one that no worker has claimed", func(c *call) { c.rec.State, c.rec.Instance = stateAccepted, "" }, false},
	} {
		for _, together := range []bool{true, false} {
			records := &asked{Records: memory(t), see: func() error { return nil }}
			w := newWorld(nil, records)
			w.add(t.Context(), "one", "claimed")
			c := w.r.known("one")
			c.waiters = 1
			test.made(c)
			seen, early := 0, false
			records.see = func() error {
				seen++
				early = c.over()
				return nil
			}
			w.taken(t, "one", together, !test.early)
			if seen != 1 || !c.over() || string(c.result.ResultJSON) != `1` {
				t.Errorf("%s: after %d writes the call is over: %v, with %s", test.name, seen, c.over(), c.result.ResultJSON)
			}
			if early != test.early {
				t.Errorf("%s: its caller had the result before it was written: %v", test.name, early)
			}
		}
	}
}

// Nothing runs a call, or makes a record of it, once its record is gone.
func TestNothingAfterTheRecord(t *testing.T) {
	w := newWorld(nil, memory(t))
	w.add(t.Context(), "one", "claimed")
	c := w.r.known("one")
	c.waiters = 1
	w.taken(t, "one", false, false)
	another := newWorld(nil, w.r.ledger.records)
	check := func(when string) {
		t.Helper()
		for _, by := range []string{"w1", "w2"} {
			claim := Claim{ToolUseID: "one", Toolset: "math", Instance: by, Token: "token", TenantID: "acme"}
			if got := []Verdict{w.r.claimed(t.Context(), &claim), another.r.claimed(t.Context(), &claim)}; got[0] != VerdictOver || got[1] != VerdictOver {
				t.Errorf("%s: claims of %s get %s", when, by, got)
			}
		}
		for _, r := range []*world{w, another} {
			r.taken(t, "one", false, false)
		}
		c.keep(t.Context(), &w.r.ledger)
		if _, err := c.finishUnclaimed(t.Context(), &w.r.ledger, failed("one", &ToolError{NotDelivered: true})); err != nil {
			t.Error(err)
		}
		if rec, _, err := w.r.ledger.read(t.Context(), c.key); err != nil || rec != nil {
			t.Errorf("%s: the record is %+v, %v", when, rec, err)
		}
	}
	check("while its caller has it")
	c.waiters = 0
	w.r.discard(c)
	if w.r.known("one") != nil {
		t.Error("the call is not forgotten")
	}
	check("when it is forgotten")
}

// A result for which nobody waits any more is recorded, however its caller went.
func TestResultNobodyWaitsFor(t *testing.T) {
	for _, together := range []bool{true, false} {
		w := newWorld(nil, memory(t))
		w.add(t.Context(), "one", "claimed")
		c := w.r.known("one")
		c.waiters, w.r.waiting = 1, 1
		w.r.exit(c)
		w.taken(t, "one", together, true)
	}
}

// A result that comes to a process which took the call up from the store is recorded.
func TestResultTakenUp(t *testing.T) {
	for _, together := range []bool{true, false} {
		records := memory(t)
		w := newWorld(nil, records)
		accepted("one", "").keep(t.Context(), &w.r.ledger) // by a process that has ended
		claim := Claim{ToolUseID: "one", Toolset: "math", Instance: "w1", Token: "token", TenantID: "acme"}
		if got := w.r.claimed(t.Context(), &claim); got != VerdictRun {
			t.Fatalf("the worker hears %s", got)
		}
		w.taken(t, "one", together, true)
	}
}

// result hands in the result of a call, and returns what the worker hears.
func (w *world) result(t *testing.T, id string, together bool) string {
	t.Helper()
	payload, err := Encode(ToolResultMessage{ToolUseID: id, ResultJSON: json.RawMessage(`1`), Receipt: &Receipt{Instance: "w1", Token: "token", TenantID: "acme"}})
	if err != nil {
		t.Fatal(err)
	}
	if !together {
		return w.oneByOne(t.Context(), MessageResults, [][]byte{payload})[0]
	}
	answer := w.r.settleRequest(t.Context(), stream.Message{Name: MessageResults, Payload: EncodeTogether([][]byte{payload})})
	if got := DecodeVerdicts(answer.Payload); len(got) == 1 {
		return got[0]
	}
	return ""
}

// taken hands in the result of a call, which is to be in its record then, or to have none.
func (w *world) taken(t *testing.T, id string, together, recorded bool) {
	t.Helper()
	if got := w.result(t, id, together); got != MessageOK {
		t.Errorf("the worker hears %s", got)
	}
	rec, _, err := w.r.ledger.read(t.Context(), callKey("acme", id))
	if err != nil || (rec != nil) != recorded || recorded && (rec.State != stateDone || string(rec.Result.ResultJSON) != `1`) {
		t.Errorf("the record is %+v, %v", rec, err)
	}
}

// A call is known until its record is gone, and a record that another process wrote
// meanwhile does not go unseen, nor is it written over by what the caller has.
func TestResultMeetsAnotherWrite(t *testing.T) {
	records := &asked{Records: memory(t), see: func() error { return nil }}
	w := newWorld(nil, records)
	w.add(t.Context(), "one", "claimed")
	c := w.r.known("one")
	rec, rev := c.rec, c.rev
	records.see = func() error {
		w.r.discard(c)
		if w.r.known("one") == nil {
			t.Error("the call is forgotten while its record is removed")
		}
		records.see = func() error { return nil }
		write, waits, err := w.r.ledger.writeOf(c.key, &rec, rev, stateClaimed) // as look does elsewhere
		if err == nil {
			_, err = w.r.ledger.write(t.Context(), write, waits)
		}
		copy(c.result.ResultJSON, "7")
		return err
	}
	if got := w.result(t, "one", false); got != MessageRetry || !c.over() {
		t.Errorf("the worker hears %s, and the caller has the result: %v", got, c.over())
	}
	w.taken(t, "one", false, false)
}

// A result that its caller has, and that could not be written, is written when its
// worker gives it again, also when its caller is gone by then.
func TestResultWhoseRecordFailed(t *testing.T) {
	records := &asked{Records: memory(t), see: func() error { return nil }}
	w := newWorld(nil, records)
	w.add(t.Context(), "one", "claimed")
	c := w.r.known("one")
	records.see = func() error { return errors.New("no disk") }
	got := []string{w.result(t, "one", true), w.result(t, "one", false)}
	if !slices.Equal(got, []string{MessageAlone, MessageRetry}) || !c.over() {
		t.Errorf("the worker hears %q; the caller has the result: %v", got, c.over())
	}
	w.r.discard(c)
	if w.r.known("one") != nil {
		t.Error("the call is not forgotten")
	}
	records.see = func() error { return nil }
	w.taken(t, "one", false, true)
}

// Whoever hears that its call failed does not wait until the record is gone.
func TestFailureBeforeItsRecord(t *testing.T) {
	records := &asked{Records: memory(t), see: func() error { return nil }}
	w := newWorld(nil, records)
	w.r.ctx = t.Context()
	w.add(t.Context(), "one", "claimed")
	c := w.r.known("one")
	c.waiters = 1
	records.see = func() error {
		told := make(chan bool, 1)
		go func() { told <- c.foundUnrun(c) }()
		select {
		case <-told:
		case <-time.After(10 * time.Second):
			t.Error("the caller waits")
		}
		return nil
	}
	res := ToolResultMessage{ToolUseID: "one", Error: &ToolError{Code: CodeExecutionFailed}, Receipt: &Receipt{Instance: "w1", Token: "token", TenantID: "acme"}}
	if err := w.r.take(t.Context(), &res); err != nil || !c.over() {
		t.Error(err)
	}
}
