package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcrib/toolcrib/test/control"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/mcptool"
	"github.com/toolcrib/toolcrib/tools/toolstest"
)

// A session that the server forgot is opened again once, nobody notices, and what is new is found.
func TestForgottenSession(t *testing.T) {
	toolstest.NothingLeft(t)
	up := newUpstream(t)
	g := open(t, up.source("up", ""))
	up.forget()
	if got := g.text(t, "up_echo", `{"a":1}`); got != `{"a":1}` {
		t.Errorf("the call: %s", got)
	}
	await(t, "the new tool is in the catalog", func() bool { return g.has(t, "up_extra0") })
	if n := len(up.Events("initialize")); n != 2 {
		t.Errorf("initialized %d times", n)
	}
}

func TestSessionExpiresUnderFiftyCallers(t *testing.T) {
	toolstest.NothingLeft(t)
	up := newUpstream(t)
	g := open(t, up.source("up", ""))
	for round := range 3 {
		up.forget()
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				args := fmt.Sprintf(`{"i":%d}`, i)
				if res, err := g.call(t, "up_echo", args); err != nil || res.Text() != args {
					t.Errorf("round %d, call %d: %q, %v", round, i, res.Text(), err)
				}
			})
		}
		wg.Wait()
		if inits, ran := len(up.Events("initialize")), len(up.Events("call")); inits != round+2 || ran != 50*(round+1) {
			t.Errorf("round %d: initialized %d times, %d calls ran", round, inits, ran)
		}
	}
}

// While a server is away its calls are refused, those of another server never notice, and when it is back it is
// initialized once and its new tools are found.
func TestRestartOfAServer(t *testing.T) {
	toolstest.NothingLeft(t)
	up, other := newUpstream(t), newUpstream(t)
	g := open(t, up.source("up", ", policy: {max_attempts: 1}"), other.source("other", ", policy: {max_attempts: 1}"))
	stop := g.keepCalling(t, "other_echo")
	g.text(t, "up_echo", `{}`)
	up.Stop()
	await(t, "calls are known not to have been delivered", func() bool {
		_, err := g.call(t, "up_echo", `{}`)
		var te *tools.Error
		return errors.As(err, &te) && te.Delivery == tools.NotDelivered && !te.OutcomeUnknown
	})
	up.extra = 1
	up.Start(t)
	await(t, "calls work again", func() bool {
		_, err := g.call(t, "up_echo", `{}`)
		return err == nil
	})
	await(t, "its new tool is found", func() bool { return g.has(t, "up_extra0") })
	if n := len(up.Events("initialize")); n != 2 {
		t.Errorf("initialized %d times", n)
	}
	stop()
	if n := len(other.Events("initialize")); n != 1 {
		t.Errorf("the other server was initialized %d times", n)
	}
}

// keepCalling calls a tool again and again, and fails the test when a call fails or takes long, until it is stopped.
func (g *gate) keepCalling(t testing.TB, name string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			began := time.Now()
			if _, err := g.call(t, name, `{}`); err != nil {
				t.Errorf("%s noticed: %v", name, err)
			}
			if spent := time.Since(began); spent > 2*time.Second {
				t.Errorf("%s took %s", name, spent)
			}
		}
	}()
	return func() { cancel(); <-done }
}

func TestServerThatHangsOnInitialize(t *testing.T) {
	toolstest.NothingLeft(t)
	up, other := newUpstream(t), newUpstream(t)
	up.hang = make(chan struct{})
	g := openWith(t, "limits: {connect_timeout_ms: 1000}", up.source("up", ""), other.source("other", ""))
	defer g.keepCalling(t, "other_echo")()
	if got := g.state("up"); got != "down" {
		t.Errorf("the source is %s", got)
	}
	if n := up.stuck(); n > 1 {
		t.Errorf("%d attempts hang at the same time", n)
	}
	up.mu.Lock()
	hang := up.hang
	up.hang = nil
	up.mu.Unlock()
	close(hang)
	await(t, "the source is ready", func() bool { return g.state("up") == "ready" })
	g.text(t, "up_echo", `{}`)
	await(t, "nothing hangs any more", func() bool { return up.stuck() == 0 })
}

// A server that has no stream of its own is not asked for it again and again.
func TestNoStreamOnGet(t *testing.T) {
	up := newUpstream(t)
	g := open(t, up.source("up", ", keep_alive: 1s"))
	for end := time.Now().Add(2500 * time.Millisecond); time.Now().Before(end); {
		g.text(t, "up_echo", `{}`)
	}
	if n := len(up.Events("GET")); n > 2 {
		t.Errorf("asked %d times", n)
	}
}

// One call that is slow holds up none of the others.
func TestSlowInOneOfTwenty(t *testing.T) {
	desk, up := control.Open(t, nil), newUpstream(t)
	g := open(t, up.source("up", ""), child("kid", "plain", desk, ""))
	for _, name := range []string{"up", "kid"} {
		t.Run(name, func(t *testing.T) {
			slow := g.later(t, name+"_late", `{"ms":2000}`)
			var wg sync.WaitGroup
			for range 4 {
				for range 19 {
					wg.Go(func() {
						if _, err := g.call(t, name+"_echo", `{}`); err != nil {
							t.Error(err)
						}
					})
				}
			}
			wg.Wait()
			select {
			case <-slow:
				t.Error("the slow one was first")
			default:
			}
			if got := receive(t, slow); got.err != nil || got.Text() != "late" {
				t.Errorf("the slow one: %q, %v", got.Text(), got.err)
			}
		})
	}
}

// An endpoint is an upstream without a network, so that its time is that of a bubble.
type endpoint struct {
	*upstream
	down bool
}

func (e *endpoint) RoundTrip(r *http.Request) (*http.Response, error) {
	e.mu.Lock()
	down := e.down
	e.mu.Unlock()
	if down {
		return nil, syscall.ECONNREFUSED
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w.Result(), nil
}

// A server that comes back after an hour, without its sessions, is initialized once, and answers the first call after a
// short while.
func TestServerThatComesBackAfterAnHour(t *testing.T) {
	desk := control.Open(t, nil) // outside of the bubble, where it never waits
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{upstream: &upstream{Desk: desk}}
		e.odd = newOdd(func(format string, args ...any) { e.Note(fmt.Sprintf(format, args...)) })
		var changed atomic.Int32
		s, err := mcptool.New(&mcptool.Config{Name: "up", URL: "http://127.0.0.1:1/mcp", HTTP: e})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(context.Background())
		s.OnChange(func() { changed.Add(1) })
		list, err := s.Discover(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		echo := list[slices.IndexFunc(list, func(d tools.ToolDescriptor) bool { return d.Tool.Name == "up_echo" })].Invoke
		e.setDown(true)
		for range 60 {
			_, err := echo(t.Context(), json.RawMessage(`{}`))
			var te *tools.Error
			if !errors.As(err, &te) || te.Delivery == tools.Answered {
				t.Fatalf("while it is away: %#v", err)
			}
			time.Sleep(time.Minute)
		}
		e.forget()
		e.setDown(false)
		time.Sleep(time.Minute)
		if res, err := echo(t.Context(), json.RawMessage(`{}`)); err != nil || res.Text() != `{}` {
			t.Errorf("when it is back: %v", err)
		}
		time.Sleep(time.Minute)
		if n := len(e.Events("initialize")); n != 2 || changed.Load() == 0 {
			t.Errorf("initialized %d times, told of %d changes", n, changed.Load())
		}
	})
}

func (e *endpoint) setDown(down bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.down = down
}

// A health check never interrupts a running call and never initializes again.
func TestHealthCheckLeavesARunningCallAlone(t *testing.T) {
	desk, up := control.Open(t, nil), newUpstream(t)
	g := open(t, up.source("up", ", keep_alive: 1s"), child("kid", "plain", desk, ", keep_alive: 1s"))
	for name, d := range map[string]*control.Desk{"up": up.Desk, "kid": desk} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d.Wait(t, "ping", 2)
			call := g.later(t, name+"_late", `{"ms":6000}`)
			d.Wait(t, "call", 1)
			g.text(t, name+"_deafen", `{}`)
			if got := receive(t, call); got.err != nil || got.Text() != "late" || got.Attempts != 1 {
				t.Errorf("the call: %q, %v", got.Text(), got.err)
			}
			if n := len(d.Events("initialize")); n != 1 {
				t.Errorf("initialized %d times", n)
			}
		})
	}
}

// A server that is silent while no call runs is connected anew.
func TestSilentServerIsConnectedAnew(t *testing.T) {
	desk := control.Open(t, nil)
	g := open(t, child("kid", "plain", desk, ", keep_alive: 1s"))
	g.text(t, "kid_deafen", `{}`)
	desk.Wait(t, "initialize", 2)
	await(t, "calls work again", func() bool { _, err := g.call(t, "kid_echo", `{}`); return err == nil })
}
