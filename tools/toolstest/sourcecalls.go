package toolstest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/tools"
)

// odd is a text that must come through as it is.
const odd = `quotes " ' and a backslash \ and / é 😀 9007199254740993`

func testDiscover(t *testing.T, s *sourceRun) {
	id := s.Provider.SourceID()
	if id == "" {
		t.Error("the source has no id")
	}
	ch := s.connect(t)
	if len(ch.Refused) > 0 {
		t.Errorf("tools are refused: %v", ch.Refused)
	}
	for _, p := range []Probe{s.Echo("x"), s.Big(1), s.Wait, s.Bad} {
		if _, ok := s.cat.Resolve(p.Name); !ok {
			t.Errorf("there is no tool %s among %v", p.Name, ch.Added)
		}
	}
	for _, tool := range s.cat.List(tools.FilterFrom(caller(t))) {
		if err := tools.CheckName(tool.Name); err != nil {
			t.Errorf("%q: %v", tool.Name, err)
		}
		if tool.Source != id || tool.Transport == "" {
			t.Errorf("%s: source %q, transport %q", tool.Name, tool.Source, tool.Transport)
		}
	}
	again := s.discover(t)
	if len(again.Added)+len(again.Updated)+len(again.Removed) > 0 || again.Unchanged != len(ch.Added) {
		t.Errorf("nothing changed, and the second discovery gives %+v", again)
	}
	if s.Provider.SourceID() != id {
		t.Errorf("the id changed from %q to %q", id, s.Provider.SourceID())
	}
}

func testCall(t *testing.T, s *sourceRun) {
	s.connect(t)
	res, err := s.call(t, s.Echo("hello there"))
	if err != nil {
		t.Fatal(err)
	}
	if got := holds(t, res); !strings.Contains(got, "hello there") || res.IsError || res.Attempts != 1 || res.CallID == "" {
		t.Errorf("result: %s, %+v", got, res)
	}
	res, err = s.call(t, s.Echo(odd))
	if err != nil {
		t.Fatal(err)
	}
	if !echoes(t, res, odd) {
		t.Errorf("%q came back as %s", odd, holds(t, res))
	}
}

// echoes reports whether a result holds the text, as text or as JSON.
func echoes(t *testing.T, r tools.ToolResult, text string) bool {
	t.Helper()
	all := holds(t, r)
	if strings.Contains(all, text) {
		return true
	}
	var plain strings.Builder
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		t.Fatal(err)
	}
	return strings.Contains(all, strings.TrimSpace(plain.String()))
}

func testChange(t *testing.T, s *sourceRun) {
	_, notifies := s.Provider.(tools.ChangeNotifier)
	if s.Change == nil {
		t.Skip("what the source offers does not change")
	}
	s.connect(t)
	name := s.Change()
	if notifies {
		receive(t, s.changed, "the source did not tell of the change")
	}
	// Who is told of one change may be told before the last of it is there.
	found := Await(stepLimit, func() bool {
		s.discover(t)
		_, ok := s.cat.Resolve(name)
		return ok
	})
	if !found {
		t.Fatalf("the new tool %s is not found", name)
	}
	if res, err := s.call(t, s.Echo("still")); err != nil || !strings.Contains(holds(t, res), "still") {
		t.Errorf("a call after the change: %v", err)
	}
}

func testCancel(t *testing.T, s *sourceRun) {
	s.connect(t)
	ctx, cancel := context.WithCancel(caller(t))
	done := make(chan error, 1)
	go func() {
		_, err := tools.Invoke(ctx, s.cat, s.Wait.Name, s.Wait.Args)
		done <- err
	}()
	receive(t, s.Waiting, "the call did not reach the server")
	cancel()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the cancelled call ended with %v", err)
		}
		s.checkError(t, err)
	case <-time.After(stepLimit):
		t.Fatal("the cancelled call does not end")
	}
	if s.Cancelled != nil {
		receive(t, s.Cancelled, "the server did not learn of the cancellation")
	}
	if _, err := s.call(t, s.Echo("after")); err != nil {
		t.Errorf("the call after it: %v", err)
	}
}

// Of a call that the server has and does not answer in time nothing is known,
// which matters where the tool may change something.
func testDeadline(t *testing.T, s *sourceRun) {
	s.connect(t)
	const limit = time.Second // in which a call gets to any server, also on a busy machine
	err := s.cat.Amend(func(tool *tools.Tool) {
		if tool.Name == s.Wait.Name {
			tool.Policy.TimeoutMS, tool.Policy.MaxRetries = int(limit/time.Millisecond), -1
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, err = s.call(t, s.Wait)
	if spent := time.Since(began); spent < limit || spent > limit+5*time.Second {
		t.Errorf("the call took %s of a limit of %s", spent, limit)
	}
	var te *tools.Error
	if !errors.As(err, &te) || te.Class != tools.ErrClassTimeout || te.OutcomeUnknown != s.hasEffects(t, s.Wait.Name) {
		t.Errorf("the call ended with %#v", err)
	}
	if s.Cancelled != nil {
		receive(t, s.Cancelled, "the server did not learn of the end")
	}
	if _, err := s.call(t, s.Echo("after")); err != nil {
		t.Errorf("the call after it: %v", err)
	}
}

func (s *sourceRun) hasEffects(t *testing.T, name string) bool {
	t.Helper()
	d, ok := s.cat.Resolve(name)
	if !ok {
		t.Fatalf("there is no tool %s", name)
	}
	return d.Tool.SideEffects != tools.SideEffectPure && d.Tool.SideEffects != tools.SideEffectRead
}

func testBigResult(t *testing.T, s *sourceRun) {
	s.connect(t)
	res, err := s.call(t, s.Big(s.big))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(holds(t, res), strings.Repeat("x", s.big)) {
		t.Errorf("the result of %d bytes is not whole", s.big)
	}
}

func testBadArguments(t *testing.T, s *sourceRun) {
	s.connect(t)
	_, err := s.call(t, s.Bad)
	var te *tools.Error
	if !errors.Is(err, tools.ErrToolInvalidArgs) || !errors.As(err, &te) || te.Delivery != tools.NotDelivered || te.Class != tools.ErrClassPermanent {
		t.Errorf("%s %s: %#v", s.Bad.Name, s.Bad.Args, err)
	}
}

func testFailures(t *testing.T, s *sourceRun) {
	s.connect(t)
	for _, f := range s.Failures {
		t.Run(f.Title, func(t *testing.T) {
			res, err := s.driver(t, f.Name)(caller(t), f.Args)
			s.checkError(t, err)
			if f.Answer {
				if err != nil || !res.IsError {
					t.Errorf("the answer that it failed: %+v, %v", res, err)
				}
				return
			}
			var te *tools.Error
			if !errors.As(err, &te) {
				t.Fatalf("it gives %+v, %v", res, err)
			}
			if te.Class != f.Class || te.Delivery != f.Delivery || te.RetryAfter != f.RetryAfter || te.SafeMessage() == "" {
				t.Errorf("class %s, delivery %d, retry after %s, want %s, %d, %s: %v",
					te.Class, te.Delivery, te.RetryAfter, f.Class, f.Delivery, f.RetryAfter, te)
			}
		})
	}
	if _, err := s.call(t, s.Echo("after")); err != nil {
		t.Errorf("the call after them: %v", err)
	}
}

func testManyAtOnce(t *testing.T, s *sourceRun) {
	s.connect(t)
	ctx := caller(t)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			text := fmt.Sprintf("<%d>", i)
			p := s.Echo(text)
			res, err := tools.Invoke(ctx, s.cat, p.Name, p.Args)
			if err != nil {
				t.Errorf("call %d: %v", i, err)
			} else if !strings.Contains(holds(t, res), text) && !strings.Contains(holds(t, res), fmt.Sprintf(`\u003c%d\u003e`, i)) {
				t.Errorf("call %d got %s", i, holds(t, res))
			}
		})
	}
	wg.Wait()
}
