package mcptool

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/tools"
)

// A pipedServer is a Server whose connections lead to rawServers of this
// process, so that its life runs on a bubble's clock.
type pipedServer struct {
	*Server
	down    atomic.Bool // nobody answers
	dials   atomic.Int32
	changed atomic.Int32
	raw     atomic.Pointer[rawServer] // of the last connection
	mode    atomic.Pointer[string]
	pipe    atomic.Pointer[io.PipeWriter]
}

// hangUp ends the last connection.
func (p *pipedServer) hangUp() { p.pipe.Load().Close() }

func startPiped(t *testing.T, mode string, cfg Config) *pipedServer {
	t.Helper()
	cfg.Name, cfg.Command, cfg.Logger = "odd", []string{"not started"}, slog.New(slog.DiscardHandler)
	p := &pipedServer{Server: start(t, &cfg)}
	p.OnChange(func() { p.changed.Add(1) })
	p.mode.Store(&mode)
	p.transport = func() mcpwire.Transport {
		p.dials.Add(1)
		if p.down.Load() {
			return &mcpwire.StreamTransport{Reader: strings.NewReader(""), Writer: io.Discard}
		}
		fromServer, toClient := io.Pipe()
		fromClient, toServer := io.Pipe()
		raw := newRawServer(*p.mode.Load(), toClient)
		p.raw.Store(raw)
		p.pipe.Store(toClient)
		go raw.serve(fromClient)
		return &mcpwire.StreamTransport{Reader: fromServer, Writer: toServer}
	}
	return p
}

// Calls to a server that is down are refused at once, with the time of the
// next attempt, and do not make an attempt each.
func TestCallsMakeNoStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startPiped(t, "plain", Config{})
		p.down.Store(true)
		echo := p.describe(definition{name: "echo"})
		refused := 0
		for range 6000 { // ten minutes
			_, err := echo.Invoke(t.Context(), nil)
			var te *tools.Error
			if !errors.As(err, &te) || te.Delivery != tools.NotDelivered || te.RetryAfter > callPause {
				t.Fatalf("error: %#v", err)
			}
			if te.RetryAfter > 0 {
				refused++
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := p.dials.Load(); n < 55 || n > 75 {
			t.Errorf("%d attempts in ten minutes", n)
		}
		if refused < 5900 {
			t.Errorf("%d calls were told when to come again", refused)
		}
		p.down.Store(false)
		time.Sleep(callPause)
		invoke(t, echo, "{}")
	})
}

// A connection that is lost is made again without anybody calling, however
// long the server stays away, and its tools are asked for again.
func TestServerComesBackAfterAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startPiped(t, "plain", Config{})
		discover(t, p.Server)
		time.Sleep(time.Minute)
		p.down.Store(true)
		p.hangUp()
		time.Sleep(time.Hour)
		if st := p.Status(); st.Connected || st.LastError == "" || p.changed.Load() != 0 {
			t.Errorf("while it is away: %+v, changed %d times", st, p.changed.Load())
		}
		if n := p.dials.Load(); n < 30 || n > 150 { // each attempt opens twice
			t.Errorf("%d attempts in an hour", n)
		}
		p.down.Store(false)
		time.Sleep(2 * idlePause)
		if st := p.Status(); !st.Connected || st.LastError != "" || st.Restarts != 1 || p.changed.Load() != 1 {
			t.Errorf("when it is back: %+v, changed %d times", st, p.changed.Load())
		}
	})
}

// A child that ends soon after each start is started ever more rarely.
func TestCrashLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startPiped(t, "plain", Config{})
		discover(t, p.Server)
		for range 6000 { // ten minutes
			p.hangUp()
			time.Sleep(100 * time.Millisecond)
		}
		if n := p.dials.Load(); n > 25 {
			t.Errorf("%d starts in ten minutes", n)
		}
	})
}

// What a server spoke last time is what it is asked for next time; when it
// speaks something else by then, that is negotiated.
func TestRevisionIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startPiped(t, "silent", Config{})
		begin := time.Now()
		discover(t, p.Server)
		if d := time.Since(begin); d < 5*time.Second {
			t.Fatalf("a server that is silent to server/discover was reached in %v", d)
		}
		p.hangUp()
		synctest.Wait()
		begin = time.Now()
		discover(t, p.Server)
		if d := time.Since(begin); d > time.Second || p.Status().Revision != "2025-06-18" {
			t.Errorf("reached again after %v, %+v", d, p.Status())
		}
		newer := "newer"
		p.mode.Store(&newer)
		p.hangUp()
		synctest.Wait()
		discover(t, p.Server)
		if got := p.Status().Revision; got != "2025-11-25" {
			t.Errorf("Revision = %s", got)
		}
	})
}

func TestKeepAliveRetiresASilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startPiped(t, "plain", Config{KeepAlive: 10 * time.Second})
		found := discover(t, p.Server)
		time.Sleep(time.Hour)
		if n := p.dials.Load(); n != 1 {
			t.Fatalf("%d connections while the server answered", n)
		}
		if inits, _ := p.raw.Load().counts(); inits != 1 {
			t.Fatalf("initialized %d times", inits)
		}
		invoke(t, found["deafen"], "{}")
		time.Sleep(2 * time.Minute)
		if n := p.dials.Load(); n != 2 || !p.Status().Connected {
			t.Errorf("%d connections, %+v", n, p.Status())
		}
	})
}

func TestKeepAliveLeavesARunningCallAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startPiped(t, "plain", Config{KeepAlive: 10 * time.Second})
		found := discover(t, p.Server)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := found["hang"].Invoke(ctx, nil)
			done <- err
		}()
		synctest.Wait()
		invoke(t, found["deafen"], "{}")
		time.Sleep(time.Hour)
		if n := p.dials.Load(); n != 1 {
			t.Errorf("%d connections", n)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the call ended with %v", err)
		}
	})
}

func TestListIsReadAgainWhenItsTimeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startPiped(t, "ttl", Config{})
		discover(t, p.Server)
		time.Sleep(29 * time.Second)
		if n := p.changed.Load(); n != 0 {
			t.Errorf("told %d times before the end", n)
		}
		time.Sleep(2 * time.Second)
		if n := p.changed.Load(); n != 1 {
			t.Errorf("told %d times at the end", n)
		}
		time.Sleep(time.Hour)
		if n := p.changed.Load(); n != 1 {
			t.Errorf("told %d times, and nobody read the list", n)
		}
	})
}

func TestChangesSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told atomic.Int32
		var c changes
		defer c.close()
		c.onChange(func() { told.Add(1) })
		for range 20 {
			c.mark()
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(settleTime)
		if n := told.Load(); n != 1 {
			t.Errorf("a burst was told %d times", n)
		}
		for range 500 { // five seconds without a rest
			c.mark()
			time.Sleep(10 * time.Millisecond)
		}
		if n := told.Load(); n < 4 || n > 7 {
			t.Errorf("five busy seconds were told %d times", n)
		}
		c.mark()
		c.reading()
		told.Store(0)
		time.Sleep(time.Minute)
		if n := told.Load(); n != 0 {
			t.Errorf("what was read meanwhile was told %d times", n)
		}
	})
}
