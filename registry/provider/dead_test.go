package provider_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/tools"
)

// A call that workers take again and again, and none answers, is given up, and
// its caller told.
func TestDeadLetter(t *testing.T) {
	opts := quick()
	bus := events.NewBus(mustRegistry(t))
	opts.Bus = bus
	sub := bus.Subscribe(events.Filter{Types: []events.EventType{registry.EventTypeWorkerDeadLetter}}, nil)
	defer sub.Close()
	c := newCrib(t, opts)
	const grace = 200 * time.Millisecond
	worker := provider.Options{SinkAckGracePeriod: grace, MaxDeliveries: 2}
	stop := c.serve("demo", serving(echo), worker)
	c.up("demo", 1)
	c.check(stop())
	c.announce("demo")
	out := make(chan outcome, 1)
	go func() {
		res, err := c.call(registry.Wait(caller(t)), "demo.read", `{"password":"hunter2"}`)
		out <- outcome{res, err}
	}()
	c.takeAndDie("demo", grace, 2)
	c.serve("demo", serving(echo), worker)
	o := <-out
	var te *tools.Error
	if !errors.As(o.err, &te) || te.Class != tools.ErrClassPermanent || !strings.Contains(te.Message, "none answered") {
		t.Errorf("the caller is told %#v", o.err)
	}
	if e := <-sub.Events(); e.Tool != "demo.read" || e.Identity.TenantID != "acme" {
		t.Errorf("the event: %+v", e)
	}
	page, err := c.reg.DeadLetters(t.Context(), registry.DeadLetterQuery{})
	if err != nil || len(page.Letters) != 1 || page.Next != "" {
		t.Fatalf("the dead letters: %+v, %v", page, err)
	}
	d := page.Letters[0]
	if d.Toolset != "demo" || d.Tool != "demo.read" || d.TenantID != "acme" || d.UserID != "ada" || d.SessionID != "s1" || d.RunID != "r1" ||
		d.ToolUseID == "" || d.Bytes == 0 || !strings.Contains(d.Reason, "none answered") || time.Since(d.Kept).Abs() > time.Minute {
		t.Errorf("the dead letter: %+v", d)
	}
	if text, err := json.Marshal(page); err != nil || strings.Contains(string(text), "hunter2") {
		t.Errorf("the dead letter tells arguments: %s, %v", text, err)
	}
}

// Dead letters are told in pages, toolset by toolset, and stay where they are.
func TestDeadLettersInPages(t *testing.T) {
	c := newCrib(t, nil)
	want := map[string]int{"a": 3, "b": 0, "c": 4}
	for toolset, n := range want {
		c.serve(toolset, handler{HandlerFunc: echo, tools: []registry.ToolSpec{spec(toolset+".read", tools.SideEffectRead)}}, provider.Options{})
		c.up(toolset, 1)
		s, err := c.client.Stream(t.Context(), registry.DeadStream(toolset), nil)
		c.check(err)
		for i := range n {
			_, err := s.Add(t.Context(), "call", fmt.Appendf(nil, `{"type":"call","tool_use_id":"%s%d","tool":%q,"payload":{}}`, toolset, i, toolset+".read"))
			c.check(err)
		}
	}
	for _, limit := range []int{1, 2, 3, 0} {
		var got []string
		q := registry.DeadLetterQuery{Limit: limit}
		for more := true; more; more = q.After != "" {
			page, err := c.reg.DeadLetters(t.Context(), q)
			if err != nil || limit > 0 && len(page.Letters) > limit || len(page.Letters) == 0 {
				t.Fatalf("%+v: %+v, %v", q, page, err)
			}
			for _, d := range page.Letters {
				got = append(got, d.ToolUseID)
			}
			q.After = page.Next
		}
		if fmt.Sprint(got) != "[a0 a1 a2 c0 c1 c2 c3]" {
			t.Errorf("in pages of %d: %q", limit, got)
		}
	}
	if page, err := c.reg.DeadLetters(t.Context(), registry.DeadLetterQuery{Toolset: "b"}); err != nil || len(page.Letters) != 0 {
		t.Errorf("of a toolset without any: %+v, %v", page, err)
	}
	if _, err := c.reg.DeadLetters(t.Context(), registry.DeadLetterQuery{Toolset: "none"}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("of no toolset: %v", err)
	}
	for _, q := range []registry.DeadLetterQuery{{Toolset: "no name"}, {After: "x"}, {After: "/1"}} {
		if _, err := c.reg.DeadLetters(t.Context(), q); !errors.Is(err, registry.ErrInvalid) {
			t.Errorf("%+v: %v", q, err)
		}
	}
}
