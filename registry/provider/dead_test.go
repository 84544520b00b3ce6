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
	"github.com/toolcrib/toolcrib/registry/stream"
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
		d.ToolUseID == "" || d.Bytes == 0 || d.Reason != fmt.Sprintf("it was given to workers %d times, and none answered it", d.Deliveries) || d.Deliveries < 2 || d.Instance == "" || time.Since(d.Kept).Abs() > time.Minute {
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

// A dead letter is the message as it came, whatever that is, with why it was given up
// beside it.
func TestDeadLetterSaysWhy(t *testing.T) {
	c := newCrib(t, nil)
	c.serve("demo", serving(echo), provider.Options{})
	c.up("demo", 1)
	unread, err := c.client.Stream(t.Context(), "unread", &stream.Options{MaxEvents: 1})
	c.check(err)
	_, err = unread.Add(t.Context(), "result", nil)
	c.check(err)
	large := `{"type":"call","tool_use_id":"large","tool":"no name","payload":{"a":"`
	large += strings.Repeat("x", c.client.MaxPayload()-len(large)-len(`"}}`)) + `"}}`
	want := map[string]string{ // parts of reasons by payloads
		"no JSON\x00\xff": "it cannot be served: the message is no JSON object",
		`{"type":"call","tool_use_id":"lost","tool":"demo.read","payload":{"pin":"1234"},"reply_to":"unread","more":{"of":"it"}}`: "its answer could not be delivered: stream: full",
		large: "it cannot be served: tool: ",
	}
	for payload := range want {
		c.add("demo", "by hand", payload)
	}
	dead, err := c.client.Stream(t.Context(), registry.DeadStream("demo"), nil)
	c.check(err)
	await(t, "all are given up", func() bool {
		size, err := dead.Size(t.Context())
		return err == nil && size.Waiting == len(want)
	})
	kept, err := dead.(stream.Browser).Browse(t.Context(), "", 10)
	c.check(err)
	page, err := c.reg.DeadLetters(t.Context(), registry.DeadLetterQuery{Toolset: "demo"})
	if err != nil || len(page.Letters) != len(kept) {
		t.Fatalf("the dead letters: %+v, %v", page, err)
	}
	for i, d := range page.Letters {
		part, there := want[string(kept[i].Payload)]
		if !there || kept[i].Name != "by hand" {
			t.Errorf("kept is %q %.100q", kept[i].Name, kept[i].Payload)
		}
		delete(want, string(kept[i].Payload))
		if !strings.HasPrefix(d.Reason, part) || d.Deliveries != 1 || d.Instance == "" {
			t.Errorf("the dead letter: %+v", d)
		}
	}
}

// What somebody writes beside a dead letter is bounded, and believed in nothing but
// words.
func TestDeadLetterWithForgedNote(t *testing.T) {
	c := newCrib(t, nil)
	c.serve("demo", serving(echo), provider.Options{})
	c.up("demo", 1)
	dead, err := c.client.Stream(t.Context(), registry.DeadStream("demo"), nil)
	c.check(err)
	const plain = "workers took it again and again"
	notes := []struct {
		note, reason string
		deliveries   int
	}{
		{``, plain, 0},
		{`no JSON`, plain, 0},
		{`{"deliveries":7}`, plain, 0},
		{`{"reason":""}`, plain, 0},
		{`{"reason":"a","deliveries":1e99}`, plain, 0},
		{`{"reason":"a","reason":"b"}`, plain, 0},
		{`{"reason":["a"]}`, plain, 0},
		{`{"reason":"a\u001b[2J\nb","deliveries":-3}`, "a [2J b", 0},
		{`{"reason":"a","more":true,"deliveries":2}`, "a", 2},
		{`{"reason":"` + strings.Repeat("ä", 800) + `","deliveries":2}`, strings.Repeat("ä", 254) + "…", 2},
	}
	for _, n := range notes {
		_, err := dead.(stream.Annotator).AddNoted(t.Context(), "call", []byte(`{"type":"call","tool_use_id":"t","tool":"demo.read","payload":{}}`), n.note)
		c.check(err)
	}
	page, err := c.reg.DeadLetters(t.Context(), registry.DeadLetterQuery{})
	if err != nil || len(page.Letters) != len(notes) {
		t.Fatalf("the dead letters: %+v, %v", page, err)
	}
	for i, d := range page.Letters {
		if !strings.HasPrefix(d.Reason, notes[i].reason) || len(d.Reason) > 512 || d.Deliveries != notes[i].deliveries || d.ToolUseID != "t" || d.Tool != "demo.read" {
			t.Errorf("with %.60s: %+v", notes[i].note, d)
		}
	}
}
