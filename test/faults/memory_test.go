package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/toolcrib/toolcrib/test/control"
	"github.com/toolcrib/toolcrib/tools/toolstest"
)

const (
	idleSessions  = 200
	manyUpstreams = 20
	toolsOfEach   = 25
	mostMemory    = 60 << 20
)

// Two hundred idle sessions that all listed five hundred tools of twenty servers cost little beside the bare program.
func TestIdleSessionsAreSmall(t *testing.T) {
	bare := serve(t)
	connect(t, bare.url+"/mcp", "2025-06-18")
	before := memory(t, bare.PID(), "VmRSS")

	listed := toolstest.NewHTTPServer(t, func() (http.Handler, func()) { return http.HandlerFunc(longList), nil })
	var servers []string
	for i := range manyUpstreams {
		servers = append(servers, fmt.Sprintf("{name: s%d, url: '%s/mcp'}", i, listed.URL))
	}
	p := serve(t, servers...)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var streams sync.WaitGroup
	size := 0
	for range idleSessions {
		c := connect(t, p.url+"/mcp", "2025-06-18")
		list := c.post(t, ctx, "tools/list", `{}`)
		size, _, _ = countLetters(list.Body)
		list.Body.Close()
		resp, err := c.http.Do(c.request(t, ctx, http.MethodGet, ""))
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("the stream of a session: %v, %v", resp, err)
		}
		streams.Go(func() { _ = each(resp, func(answer) bool { return true }) })
	}
	rss, anonymous := memory(t, p.PID(), "VmRSS"), memory(t, p.PID(), "RssAnon")
	t.Logf("bare %.1f MiB, with %d sessions, %d servers and a list of %d KiB %.1f MiB (anonymous %.1f MiB): %.1f MiB more",
		mib(before), idleSessions, manyUpstreams, size>>10, mib(rss), mib(anonymous), mib(rss-before))
	if rss-before > mostMemory {
		t.Errorf("it costs %.1f MiB of memory, more than %d", mib(rss-before), mostMemory>>20)
	}
	cancel()
	streams.Wait()
}

func mib(n int) float64 { return float64(n) / (1 << 20) }

// longList is a server that offers tools of a usual size.
func longList(w http.ResponseWriter, r *http.Request) {
	var m message
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	out := ""
	switch m.Method {
	case "initialize":
		out = result(&m, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"long","version":"1"}}`)
	case "tools/list":
		var list []string
		for i := range toolsOfEach {
			list = append(list, fmt.Sprintf(`{"name":"tool%d","description":%q,"inputSchema":{"type":"object","properties":{"path":{"type":"string","description":%q},"limit":{"type":"integer","minimum":1,"maximum":1000}},"required":["path"]}}`,
				i, strings.Repeat("What it does. ", 40), strings.Repeat("Where it is. ", 30)))
		}
		out = result(&m, `{"tools":[`+strings.Join(list, ",")+`]}`)
	default:
		if m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		out = failure(&m, -32601, "no such method")
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, out)
}

// Ten thousand calls, some of which fail and some of which are cancelled, leave no goroutine, file, child or memory.
func TestManyCallsLeaveNothing(t *testing.T) {
	toolstest.NothingLeft(t)
	desk, up := control.Open(t, nil), newUpstream(t)
	g := open(t, up.source("up", ""), child("kid", "plain", desk, ""))
	at := g.listen(t)
	c := connect(t, at, "2025-06-18")
	n := *calls
	if testing.Short() {
		n = min(n, 200)
	}
	round := func(n int) {
		var work sync.WaitGroup
		for range 16 {
			work.Go(func() {
				for i := range n / 16 {
					g.mixedCall(t, c, i)
				}
			})
		}
		work.Wait()
		c.http.CloseIdleConnections()
	}
	round(max(n/10, 64)) // pools are filled, pages are touched
	before, heapBefore, held := steady(0), heap(), toolstest.Holding()
	round(n)
	const pooled = 64 // connections that are kept for the next calls have goroutines
	if after := steady(before + pooled); after > before+pooled {
		t.Errorf("%d goroutines before, and %d after %d calls", before, after, n)
	}
	if now := toolstest.Holding(); now.Children != held.Children || now.Files > held.Files+40 {
		t.Errorf("held before: %+v, and after: %+v", held, now)
	}
	if grown := int(heap()) - int(heapBefore); grown > 8<<20 {
		t.Errorf("the heap grew by %d KiB", grown>>10)
	}
	t.Logf("%d calls: goroutines %d → %d, heap %d → %d KiB, %+v → %+v", n, before, runtime.NumGoroutine(), heapBefore>>10, heap()>>10, held, toolstest.Holding())
}

// mixedCall makes one call of a mixture.
func (g *gate) mixedCall(t testing.TB, c *client, i int) {
	name := []string{"up", "kid"}[i%2]
	switch i % 10 {
	case 3: // cancelled
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if resp, err := c.http.Do(c.message(t, ctx, "tools/call", fmt.Sprintf(`{"name":"%s_echo","arguments":{}}`, name))); err == nil {
			resp.Body.Close()
		}
	case 7: // refused
		if a := c.call(t, "tools/call", `{"name":"nobody_knows","arguments":{}}`, nil); a.Error == nil && !strings.Contains(string(a.Result), `"isError":true`) {
			t.Errorf("a tool that is not there: %s", a.Result)
		}
	default:
		if got := c.text(t, name+"_echo", fmt.Sprintf(`{"i":%d}`, i)); got != fmt.Sprintf(`{"i":%d}`, i) {
			t.Errorf("call %d: %s", i, got)
		}
	}
}

// steady returns the number of goroutines when it is not above want for a moment, or after some time.
func steady(want int) int {
	toolstest.Await(patience/6, func() bool { return runtime.NumGoroutine() <= want })
	return runtime.NumGoroutine()
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
