package transparency

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/gateway/gatewaytest"
)

const (
	// seed makes the exchanges.
	seed = 20260728
	// exchanges is how many each route has, beside the lists.
	exchanges = 300
	// patience bounds what must happen at some time; it decides only how long a failure takes.
	patience = 50 * time.Second
)

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// A bench has an upstream, a client of its own, and one that sees it through a gateway.
type bench struct {
	route
	upstream        *upstream
	direct, through *client
	used            map[string]bool // normalisations
}

// serve serves h until the test ends.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

func newBench(t *testing.T, r route, c *catalogue) *bench {
	t.Helper()
	b := &bench{route: r, upstream: newUpstream(r.upstream, c), used: map[string]bool{}}
	url := serve(t, b.upstream)
	b.direct = &client{url: url, stateless: r.upstream}
	b.through = &client{url: serve(t, openGateway(t, url).Handler()) + "/mcp", stateless: r.client}
	for _, c := range []*client{b.direct, b.through} {
		t.Cleanup(c.close)
		if err := c.open(bounded(t)); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// openGateway opens one whose only source is the upstream, under its own names. All tools are listed, and a failed call is
// not made again, as either is the gateway's own doing and is configured.
func openGateway(t *testing.T, url string) *gateway.Gateway {
	t.Helper()
	cfg := gatewaytest.Parse(t, fmt.Sprintf(
		"mcp: {discovery: full}\ntools: {mcp_servers: [{name: up, url: %q, prefix: none, policy: {max_attempts: 1}}]}\n", url))
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	return gatewaytest.Open(t, cfg, &gateway.Options{Logger: log})
}

// run makes the exchange with one of the clients.
func (b *bench) run(t *testing.T, x *exchange, through bool) *outcome {
	t.Helper()
	c := b.direct
	if through {
		c = b.through
	}
	b.upstream.play(&x.script)
	defer b.upstream.play(nil)
	got, err := c.ask(bounded(t), x.request(through))
	if err != nil {
		t.Fatalf("%s, through the gateway %t: %v", x.label, through, err)
	}
	o := &outcome{id: string(got.id), result: parse(got.result), error: parse(got.error)}
	for _, n := range got.notes {
		o.notes = append(o.notes, toldNote{n.Method, parse(n.Params)})
	}
	for _, params := range b.upstream.heard() {
		o.asked = append(o.asked, parse(params))
	}
	return o
}

// compare makes the exchange both ways and returns how they differ, beyond what is meant.
func (b *bench) compare(t *testing.T, x *exchange) string {
	t.Helper()
	return differences(b.route, b.run(t, x, false), b.run(t, x, true), b.used)
}

// Whatever an MCP server says and whatever its client sends is the same with the gateway between them, in both eras and
// across them.
func TestTransparency(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	used := map[string]bool{}
	complete := t.Run("routes", func(t *testing.T) {
		for _, r := range []route{{false, false}, {true, true}, {true, false}, {false, true}} {
			t.Run(r.String(), func(t *testing.T) {
				t.Parallel()
				b := travel(t, r)
				mu.Lock()
				defer mu.Unlock()
				for name := range b.used {
					used[name] = true
				}
			})
		}
	})
	for _, n := range normalisations() {
		if complete && !used[n.name] {
			t.Errorf("nothing needed the normalisation %q (%s)", n.name, n.reason)
		}
	}
}

// travel makes all exchanges of a route.
func travel(t *testing.T, r route) *bench {
	g := newGenerator(seed, r.upstream)
	c := g.catalogue()
	b := newBench(t, r, c)
	b.lists(t)
	failed := 0
	for n := range exchanges {
		x := g.exchange(c, n)
		if diff := b.compare(t, x); diff != "" {
			t.Errorf("exchange %d, %s: %s", n, x.label, diff)
			failed++
		}
		if failed > 10 {
			t.Fatal("no more is compared")
		}
	}
	b.knownLosses(t)
	b.upstream.report(t)
	return b
}

// lists compares what is listed, entry by entry. What stands around the entries is each side's own: where a page ends,
// the cursor of the next, the order, and how long the list may be kept.
func (b *bench) lists(t *testing.T) {
	t.Helper()
	for _, l := range listMembers {
		direct, through := b.list(t, b.direct, l.method, l.member), b.list(t, b.through, l.method, l.member)
		if len(direct) != len(through) || len(direct) == 0 {
			t.Errorf("%s: %d entries directly, %d through the gateway", l.method, len(direct), len(through))
		}
		have := map[string]*tree{}
		for _, entry := range through {
			have[entry.get(l.key).String()] = entry
		}
		for _, entry := range direct {
			raw := entry.get(l.key).String()
			id, err := strconv.Unquote(raw)
			if err != nil {
				t.Fatal(err)
			}
			seen := have[strconv.Quote(throughName(l.method, id))]
			if l.key == "name" && seen != nil { // names are those of the catalog
				seen.put("name", raw)
			}
			if entry.String() != seen.String() {
				t.Errorf("%s: directly\n%s\nthrough the gateway\n%s", l.method, entry, seen)
			}
		}
	}
}

// list follows a list to its end.
func (b *bench) list(t *testing.T, c *client, method, key string) []*tree {
	t.Helper()
	var entries []*tree
	var cursor []string
	for page := range 20 {
		got, err := c.ask(bounded(t), request{id: strconv.Itoa(page), method: method, members: cursor})
		if err != nil || got.result == nil {
			t.Fatalf("%s: %+v, %v", method, got, err)
		}
		result := parse(got.result)
		entries = append(entries, result.get(key).elements...)
		next := result.get("nextCursor")
		if next == nil {
			return entries
		}
		cursor = []string{member("cursor", next.String())}
	}
	t.Fatalf("%s does not end", method)
	return nil
}
