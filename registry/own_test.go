package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// own is a call that only the one who waits for it asks for, in the process that sent it
// and in another.
type own struct {
	l       *ledger
	id      string
	sender  *call // nil after a crash
	other   *call // nil while the other process does not know of it
	told    map[string]bool
	claimed bool
	over    bool // a worker was told so
	left    bool // the one who waited does so no longer
}

// at returns the call as a process knows it, or nil.
func (o *own) at(t *rapid.T, sender bool) *call {
	if sender {
		return o.sender
	}
	if o.other == nil {
		key := callKey("acme", o.id)
		rec, rev, err := o.l.read(context.Background(), key)
		if err != nil {
			t.Fatal(err)
		}
		if rec != nil {
			o.other = (&Registry{ledger: *o.l, calls: map[string]*call{}}).adopt(key, rec, rev)
		}
	}
	return o.other
}

func (o *own) claim(t *rapid.T, c *call, by string) {
	v := VerdictOver // as of any call that nobody knows
	if c != nil {
		var err error
		if v, _, err = c.claim(context.Background(), o.l, &Claim{ToolUseID: o.id, Instance: by, Token: "token"}); err != nil {
			t.Fatal(err)
		}
	}
	if v == VerdictRun {
		if o.over {
			t.Fatalf("%s is to run a call that is over", by)
		}
		o.told[by], o.claimed = true, true
	}
	o.over = o.over || v == VerdictOver && c != nil
}

func (o *own) result(t *rapid.T, c *call, by string) {
	if c == nil {
		return
	}
	res := ToolResultMessage{ToolUseID: o.id, ResultJSON: json.RawMessage(`"` + by + `"`)}
	if err := c.surely(context.Background(), o.l, func(rec *record) bool {
		ended, _ := c.ends(rec, &res, &Receipt{Instance: by, Token: "token"})
		return ended
	}); err != nil {
		t.Fatal(err)
	}
}

func (o *own) leave(t *rapid.T) {
	if o.sender == nil || !o.sender.waiter.leave() {
		return
	}
	o.left = true
	unclaimed, err := o.sender.finishUnclaimed(context.Background(), o.l, failed(o.id, &ToolError{NotDelivered: true}))
	if err != nil {
		t.Fatal(err)
	}
	if unclaimed && len(o.told) > 0 {
		t.Fatal("its caller hears that a call did not run which a worker was told to run")
	}
	o.over = o.over || unclaimed
}

func (o *own) check(t *rapid.T) {
	if len(o.told) > 1 {
		t.Fatalf("%v were told to run it", o.told)
	}
	rec, _, err := o.l.read(context.Background(), callKey("acme", o.id))
	if err != nil {
		t.Fatal(err)
	}
	if rec != nil || !o.claimed {
		return
	}
	o.over = true
	switch {
	case o.left:
		t.Fatal("there is no record of a call whose caller has no result")
	case o.sender == nil: // It ended with the result given.
	case !o.sender.over() || !o.told[unquoted(o.sender.result.ResultJSON)]:
		t.Fatalf("there is no record, and the result is %s", o.sender.result.ResultJSON)
	}
}

func unquoted(text json.RawMessage) (s string) {
	_ = json.Unmarshal(text, &s)
	return s
}

// Whatever workers claim and answer, and whoever crashes or goes away, a call that
// nobody else asks for is run by one worker at most, also when its record is gone, and
// its result is with its caller or in the record.
func TestOwnCallRecord(t *testing.T) {
	db := memory(t)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		o := &own{l: &ledger{records: db, retention: time.Hour}, id: fmt.Sprint("own-", n), told: map[string]bool{}}
		o.sender = accepted(o.id, "")
		sender, worker := rapid.Bool(), rapid.SampledFrom([]string{"w1", "w2", "w3"})
		t.Repeat(map[string]func(*rapid.T){
			"claim":  func(t *rapid.T) { o.claim(t, o.at(t, sender.Draw(t, "sender")), worker.Draw(t, "worker")) },
			"result": func(t *rapid.T) { o.result(t, o.at(t, sender.Draw(t, "sender")), worker.Draw(t, "worker")) },
			"leave":  o.leave,
			"keep": func(t *rapid.T) {
				if o.sender != nil {
					o.sender.keep(context.Background(), o.l)
				}
			},
			"look": func(t *rapid.T) {
				if c := o.at(t, sender.Draw(t, "sender")); c != nil {
					if err := c.refresh(context.Background(), o.l); err != nil {
						t.Fatal(err)
					}
				}
			},
			"forget": func(*rapid.T) { o.other = nil },
			"crash":  func(*rapid.T) { o.sender = nil },
			"lose": func(t *rapid.T) {
				by := worker.Draw(t, "worker")
				if c := o.at(t, false); c != nil {
					if err := c.finishLost(context.Background(), o.l, by, failed(o.id, &ToolError{OutcomeUnknown: true})); err != nil {
						t.Fatal(err)
					}
				}
			},
			"": o.check,
		})
	})
}
