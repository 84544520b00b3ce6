package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcrib/toolcrib/test/control"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/toolstest"
)

// An answer after the deadline is dropped: the call has ended with an unknown outcome, the connection lives on, and nobody
// else is given it.
func TestAnswerAfterTheDeadline(t *testing.T) {
	toolstest.NothingLeft(t)
	desk, up := control.Open(t, nil), newUpstream(t)
	const hurry = ", tool_policies: {late: {timeout_ms: 200}}"
	g := open(t, up.source("up", hurry), child("kid", "plain", desk, hurry))
	for name, d := range map[string]*control.Desk{"up": up.Desk, "kid": desk} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			_, err := g.call(t, name+"_late", `{"ms":3000}`)
			var te *tools.Error
			if !errors.As(err, &te) || te.Class != tools.ErrClassTimeout || !errors.Is(err, tools.ErrOutcomeUnknown) || te.Attempts != 1 {
				t.Errorf("the call ended with %#v", err)
			}
			if spent := time.Since(began); spent > 2500*time.Millisecond {
				t.Errorf("after %s of 200 ms", spent)
			}
			for i := range 20 {
				if got := g.text(t, name+"_echo", fmt.Sprintf(`{"i":%d}`, i)); got != fmt.Sprintf(`{"i":%d}`, i) {
					t.Errorf("call %d was given %q", i, got)
				}
			}
			d.Wait(t, "answered", 1)
			if got := g.text(t, name+"_echo", `{"last":1}`); got != `{"last":1}` {
				t.Errorf("the call after the late answer was given %q", got)
			}
			if late, inits := d.Events("call"), d.Events("initialize"); len(inits) != 1 || strings.Count(fmt.Sprint(late), "late") != 1 {
				t.Errorf("initialized %d times, calls: %v", len(inits), late)
			}
		})
	}
}

// peakOf returns the most memory that a process had, in bytes.
func peakOf(t testing.TB, pid int) int { return memory(t, pid, "VmHWM") }

var memoryLine = regexp.MustCompile(`(?m)^(Vm\w+|Rss\w+):\s+(\d+) kB$`)

func memory(t testing.TB, pid int, what string) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skipf("the memory of a process cannot be read here: %v", err)
	}
	for _, m := range memoryLine.FindAllStringSubmatch(string(status), -1) {
		if m[1] == what {
			return number(t, m[2]) << 10
		}
	}
	t.Fatalf("no %s in %s", what, status)
	return 0
}

// Large results pass whole, in memory that is bounded by a few times the size of one, however many there are.
func TestLargeResult(t *testing.T) {
	size, rounds := *megabytes<<20, 1
	if testing.Short() || raceDetector {
		size, rounds = min(size, 8<<20), 10
	}
	up := newUpstream(t)
	desk := control.Open(t, nil)
	p := serve(t, up.source("up", ""), child("kid", "plain", desk, ""))
	for _, version := range []string{"2025-06-18", stateless} {
		c := connect(t, p.url+"/mcp", version)
		for _, name := range []string{"up", "kid"} {
			began := time.Now()
			for range rounds {
				resp := c.post(t, bounded(t), "tools/call", fmt.Sprintf(`{"name":"%s_big","arguments":{"n":%d}}`, name, size))
				n, letters, err := countLetters(resp.Body)
				resp.Body.Close()
				if err != nil || letters < size || n > size+size/10+4096 {
					t.Errorf("%s over %s: %d letters of %d in %d bytes, %v", version, name, letters, size, n, err)
				}
			}
			t.Logf("%s over %s: %d times %d MiB in %s, at most %d MiB of memory so far", version, name, rounds, size>>20,
				time.Since(began).Round(time.Millisecond), peakOf(t, p.PID())>>20)
		}
	}
	const garbage = 256 << 20 // that a process holds whose collector has little of a busy processor
	if peak, most := peakOf(t, p.PID()), 6*size+garbage; peak > most {
		t.Errorf("it took %d MiB of memory for results of %d MiB", peak>>20, size>>20)
	}
	if got := connect(t, p.url+"/mcp", stateless).text(t, "kid_echo", `{}`); got != `{}` {
		t.Errorf("afterwards: %s", got)
	}
}

func countLetters(r io.Reader) (n, letters int, err error) {
	buf := make([]byte, 1<<16)
	for {
		k, err := r.Read(buf)
		n += k
		letters += strings.Count(string(buf[:k]), "x")
		if err == io.EOF {
			return n, letters, nil
		}
		if err != nil {
			return n, letters, err
		}
	}
}

const manyNotes = 10_000

// A server's notes reach the caller, each once, in order and before the answer, however many there are.
func TestTenThousandProgressNotes(t *testing.T) {
	toolstest.NothingLeft(t)
	desk, up := control.Open(t, nil), newUpstream(t)
	g := open(t, up.source("up", ""), child("kid", "plain", desk, ""))
	at := g.listen(t)
	for _, name := range []string{"up", "kid"} {
		t.Run(name+" to Go", func(t *testing.T) {
			var peer toolstest.Peer
			ctx := tools.WithEntrance(g.LocalContext(bounded(t)), tools.Entrance{Peer: &peer})
			if _, err := tools.Invoke(ctx, g.Catalog(), name+"_notes", json.RawMessage(fmt.Sprintf(`{"n":%d}`, manyNotes))); err != nil {
				t.Fatal(err)
			}
			notes, _ := peer.Heard()
			for i, n := range notes {
				if n.Progress != float64(i+1) {
					t.Fatalf("note %d says %v", i, n.Progress)
				}
			}
			if len(notes) != manyNotes {
				t.Errorf("%d notes", len(notes))
			}
		})
		for _, version := range []string{"2025-06-18", stateless} {
			t.Run(name+" to "+version, func(t *testing.T) {
				c, next := connect(t, at, version), 1
				a := c.call(t, "tools/call", fmt.Sprintf(`{"name":"%s_notes","arguments":{"n":%d},"_meta":{"progressToken":"mine"}}`, name, manyNotes), func(a answer) {
					if want := fmt.Sprintf(`"progress":%d`, next); !strings.Contains(string(a.Params), want) || !strings.Contains(string(a.Params), `"mine"`) {
						t.Fatalf("note %d: %s %s", next, a.Method, a.Params)
					}
					next++
				})
				if a.Error != nil || next != manyNotes+1 {
					t.Errorf("%d notes, then %s, %+v", next-1, a.Result, a.Error)
				}
			})
		}
	}
}

// A caller that does not take its notes holds up no other caller of the same server.
func TestCallerThatIsStuck(t *testing.T) {
	toolstest.NothingLeft(t)
	desk, up := control.Open(t, nil), newUpstream(t)
	g := open(t, up.source("up", ""), child("kid", "plain", desk, ""))
	for _, name := range []string{"up", "kid"} {
		stuck, release := make(chan struct{}), make(chan struct{})
		var once sync.Once
		peer := toolstest.Peer{OnProgress: func(tools.ProgressNote) { once.Do(func() { close(stuck) }); <-release }}
		done := make(chan error, 1)
		go func() {
			ctx := tools.WithEntrance(g.LocalContext(bounded(t)), tools.Entrance{Peer: &peer})
			_, err := tools.Invoke(ctx, g.Catalog(), name+"_notes", json.RawMessage(fmt.Sprintf(`{"n":%d}`, 2*manyNotes)))
			done <- err
		}()
		receive(t, stuck)
		for range 50 {
			g.text(t, name+"_echo", `{}`)
		}
		close(release)
		if err := receive(t, done); err != nil {
			t.Errorf("%s: the call of the stuck caller: %v", name, err)
		}
	}
}

// An answer that is none ends the call with what is known, and nothing else.
func TestBrokenAnswers(t *testing.T) {
	toolstest.NothingLeft(t)
	up := newUpstream(t)
	g := open(t, up.source("up", ", policy: {timeout_ms: 5000}"))
	for how, want := range map[string]tools.Delivery{
		"html": tools.DeliveryUnknown, "half": tools.DeliveryUnknown, "empty": tools.DeliveryUnknown, "another id": tools.DeliveryUnknown,
		"a stream without an answer": tools.DeliveryUnknown, "a stream of noise": tools.DeliveryUnknown,
		"cut off": tools.DeliveryUnknown, "reset": tools.DeliveryUnknown,
	} {
		t.Run(how, func(t *testing.T) {
			began, ran := time.Now(), len(up.Events("initialize"))
			_, err := g.call(t, "up_broken", fmt.Sprintf(`{"how":%q}`, how))
			var te *tools.Error
			if !errors.As(err, &te) || te.Delivery != want || te.Attempts != 1 {
				t.Errorf("the call ended with %#v", err)
			}
			if spent := time.Since(began); spent > 4*time.Second {
				t.Errorf("after %s", spent)
			}
			if got := g.text(t, "up_echo", `{}`); got != `{}` {
				t.Errorf("the call after it: %s", got)
			}
			if n := len(up.Events("initialize")); n != ran {
				t.Error("the session was given up")
			}
			t.Logf("%v", err)
		})
	}
}

// listen serves the gateway on a port of this machine and returns the URL of its MCP endpoint.
func (g *gate) listen(t testing.TB) string {
	t.Helper()
	return toolstest.NewHTTPServer(t, func() (http.Handler, func()) { return g.Handler(), nil }).URL + "/mcp"
}

// A client that goes away in the middle of a call ends the call where the protocol says so, and says so itself where it
// does not; others never notice.
func TestClientThatGoesAway(t *testing.T) {
	toolstest.NothingLeft(t)
	desk, up := control.Open(t, nil), newUpstream(t)
	g := open(t, up.source("up", ""), child("kid", "plain", desk, ""))
	at := g.listen(t)
	stop := g.keepCalling(t, "kid_echo")
	defer stop()
	for name, d := range map[string]*control.Desk{"up": up.Desk, "kid": desk} {
		cancelled := 0
		for _, version := range []string{stateless, "2025-06-18"} {
			t.Run(name+" "+version, func(t *testing.T) {
				c := connect(t, at, version)
				ctx, cancel := context.WithCancel(bounded(t))
				req := c.message(t, ctx, "tools/call", fmt.Sprintf(`{"name":"%s_wait","arguments":{}}`, name))
				gone := make(chan struct{})
				go func() {
					defer close(gone)
					if resp, err := c.http.Do(req); err == nil {
						_, _ = io.Copy(io.Discard, resp.Body) // until it is cut off
						resp.Body.Close()
					}
				}()
				cancelled++
				d.Wait(t, "waiting", cancelled)
				cancel()
				receive(t, gone)
				if version != stateless {
					c.notify(t, "notifications/cancelled", fmt.Sprintf(`{"requestId":%d,"reason":"enough"}`, c.ids.Load()))
				}
				d.Wait(t, "cancelled", cancelled)
			})
		}
	}
}

// A client on standard input that goes away ends its calls.
func TestClientOnStdioThatGoesAway(t *testing.T) {
	toolstest.NothingLeft(t)
	desk := control.Open(t, nil)
	g := open(t, child("kid", "plain", desk, ""))
	in, write := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- g.ServeStdio(bounded(t), in, io.Discard) }()
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"kid_wait","arguments":{}}}`,
	} {
		fmt.Fprintln(write, line)
	}
	desk.Wait(t, "waiting", 1)
	write.Close()
	desk.Wait(t, "cancelled", 1)
	if err := receive(t, served); err != nil {
		t.Errorf("ServeStdio: %v", err)
	}
}

// What a server offers after it came back reaches clients that were connected all the time.
func TestListChangedAfterReconnect(t *testing.T) {
	toolstest.NothingLeft(t)
	desk, up := control.Open(t, nil), newUpstream(t)
	g := open(t, up.source("up", ""), child("kid", "plain", desk, ""))
	changed := make(chan struct{}, 16)
	c := mcp.NewClient(&mcp.Implementation{Name: "faults", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
	})
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	session, err := c.Connect(bounded(t), &mcp.StreamableClientTransport{Endpoint: g.listen(t), HTTPClient: &http.Client{Transport: transport}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	offers := func(name string) bool {
		list, err := session.ListTools(bounded(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range list.Tools {
			if tool.Name == name {
				return true
			}
		}
		return false
	}
	up.forget() // and grown
	g.text(t, "up_echo", `{}`)
	receive(t, changed)
	await(t, "the client sees the new tool of the server over HTTP", func() bool { return offers("up_extra0") })
	desk.Order(t, "grow")
	receive(t, changed)
	await(t, "the client sees the new tool of the child", func() bool { return offers("kid_extra0") })
	desk.Order(t, "crash") // the next child offers less
	receive(t, changed)
	await(t, "the client sees that it is gone", func() bool { return !offers("kid_extra0") })
}
