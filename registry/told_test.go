package registry

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/tools"
)

// elsewhere has another process make a record of the call with this id and change it,
// and returns the same call as one that was asked for here too.
func (w *world) elsewhere(t *testing.T, id string, change func(c *call)) *call {
	t.Helper()
	there := accepted(id, "digest")
	there.keep(t.Context(), &w.r.ledger)
	change(there)
	c := accepted(id, "digest")
	c.again, c.waiters = true, 1
	c.sending()
	w.r.calls[id] = c
	return c
}

func (w *world) runs(t *testing.T, c *call, by string) {
	t.Helper()
	if v, _, err := c.claim(t.Context(), &w.r.ledger, &Claim{ToolUseID: c.id, Instance: by, Token: "token"}); v != VerdictRun || err != nil {
		t.Fatalf("a claim of %s: %s, %v", by, v, err)
	}
}

// A call that the stream does not take did not run only if nobody else had it run.
func TestRefusedByTheStream(t *testing.T) {
	w := newWorld(nil, memory(t))
	for name, test := range map[string]struct {
		change func(c *call)
		want   string
	}{
		"nobody has it": {func(*call) {}, "not delivered"},
		"it runs":       {func(c *call) { w.runs(t, c, "w1") }, ""},
		"it ran": {func(c *call) {
			w.runs(t, c, "w1")
			if err := c.finish(t.Context(), &w.r.ledger, &ToolResultMessage{ToolUseID: c.id, ResultJSON: json.RawMessage(`1`)}); err != nil {
				t.Fatal(err)
			}
		}, ""},
	} {
		c := w.elsewhere(t, name, test.change)
		got := ""
		var e *tools.Error
		if errors.As(w.r.unsent(t.Context(), c, stream.ErrFull), &e) {
			got = e.Delivery.String()
		}
		if got != test.want {
			t.Errorf("%s: the caller hears that the call was %q, and is to hear %q", name, got, test.want)
		}
	}
}

// A call that the stream does not take, and whose end cannot be recorded, may be sent
// again. So its caller does not hear that it did not run.
func TestRefusedWithoutARecord(t *testing.T) {
	records := &asked{Records: memory(t), see: func() error { return errors.New("no disk") }}
	w := newWorld(nil, records)
	c := accepted("one", "")
	c.waiters = 1
	c.sending()
	w.r.calls["one"] = c
	err := w.r.unsent(t.Context(), c, stream.ErrNoRoom)
	records.see = func() error { return nil }
	c.keep(t.Context(), &w.r.ledger)
	w.runs(t, c, "w1") // as after it was sent again
	var e *tools.Error
	if !errors.As(err, &e) || e.Delivery != tools.DeliveryUnknown || e.Code != tools.ErrUnavailable {
		t.Errorf("the caller hears %v", err)
	}
}

// unreadable is a store whose records cannot be read.
type unreadable struct{ store.Records }

func (unreadable) Get(context.Context, store.Key) (store.Record, error) {
	return store.Record{}, errors.New("no disk")
}

// Where the record of a call cannot be read, nobody is told that it did not run.
func TestRecordThatCannotBeRead(t *testing.T) {
	w := newWorld(nil, memory(t))
	w.r.ctx, w.r.opts.MaxOutstanding = t.Context(), 1
	ts := w.r.newToolset("math", agreement{})
	w.r.toolsets["math"] = ts
	q := &request{tool: "add"}
	for name, hear := range map[string]func(c *call) error{
		"it cannot be recorded": func(c *call) error {
			c.keep(t.Context(), &w.r.ledger)
			_, err := w.r.await(t.Context(), c, nil)
			return err
		},
		"no worker is up": func(c *call) error {
			_, err := w.r.begun(t.Context(), ts, q, c)
			return err
		},
		"there are too many calls": func(c *call) error {
			other := accepted("other", "digest")
			other.again = true
			other.key = c.key
			_, _, err := w.r.once(t.Context(), ts, q, other)
			return err
		},
	} {
		records := w.r.ledger.records
		c := w.elsewhere(t, name, func(c *call) { w.runs(t, c, "w1") })
		w.r.ledger.records = unreadable{records}
		var e *tools.Error
		if err := hear(c); !errors.As(err, &e) || e.Delivery != tools.DeliveryUnknown {
			t.Errorf("%s: the caller hears %#v", name, err)
		}
		w.r.ledger.records = records
	}
}

// A gateway that has no room for a call which runs elsewhere does not say that the call
// did not run: its caller would try again, by which it would be another call.
func TestNoRoomForACallThatRuns(t *testing.T) {
	w := newWorld(nil, memory(t))
	w.r.opts.MaxOutstanding = 1
	w.add(t.Context(), "one", "new")
	for name, test := range map[string]struct {
		change func(c *call)
		want   tools.Delivery
	}{
		"runs": {func(c *call) { w.runs(t, c, "w1") }, tools.DeliveryUnknown},
		"did not run": {func(c *call) {
			if _, err := c.finishUnclaimed(t.Context(), &w.r.ledger, failed(c.id, &ToolError{NotDelivered: true})); err != nil {
				t.Fatal(err)
			}
		}, tools.NotDelivered},
	} {
		c := w.elsewhere(t, name, test.change)
		delete(w.r.calls, name)
		_, _, err := w.r.once(t.Context(), nil, nil, c)
		var e *tools.Error
		if !errors.As(err, &e) || e.Code != tools.ErrOverloaded || e.Delivery != test.want {
			t.Errorf("a call that %s: its caller hears %#v", name, err)
		}
	}
}

// A call whose time is over did not run only if no worker had it, whichever process let
// it have it.
func TestOverdueElsewhere(t *testing.T) {
	for _, runs := range []bool{true, false} {
		w := newWorld(nil, memory(t))
		there := accepted("one", "digest")
		there.rec.Deadline = time.Now().Add(time.Second)
		there.keep(t.Context(), &w.r.ledger)
		rec, rev, err := w.r.ledger.read(t.Context(), there.key)
		if err != nil {
			t.Fatal(err)
		}
		c := w.r.adopt(there.key, rec, rev)
		if runs {
			w.runs(t, there, "w1")
		}
		c.rec.Deadline = time.Now().Add(-lateness)
		w.r.overdue(t.Context(), c)
		w.r.overdue(t.Context(), c)
		rec, _, err = w.r.ledger.read(t.Context(), there.key)
		if err != nil || runs && rec.State == stateDone && rec.unrun("digest") || !runs && !rec.unrun("digest") {
			t.Errorf("of a call that a worker has (%v), the record says %+v, %v", runs, rec, err)
		}
	}
}

// Whoever looks after a call makes no record of one whose record is gone.
func TestLookAfterTheRecordIsGone(t *testing.T) {
	db := memory(t)
	there := newWorld(nil, db)
	there.add(t.Context(), "one", "claimed")
	there.r.known("one").waiters = 1
	records := &asked{Records: db, see: func() error { return nil }}
	w := newWorld(nil, records)
	c, err := w.r.find(t.Context(), "acme", "one")
	if err != nil {
		t.Fatal(err)
	}
	records.see = func() error {
		records.see = func() error { return nil }
		there.taken(t, "one", false, false)
		return nil
	}
	w.r.look(t.Context(), c)
	if rec, _, err := w.r.ledger.read(t.Context(), c.key); err != nil || rec != nil || !c.over() {
		t.Errorf("the record is %+v, %v", rec, err)
	}
}
