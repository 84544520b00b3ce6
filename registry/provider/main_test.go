package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/registry/stream/natsserver"
	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/store/sqlstore"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
)

func TestMain(m *testing.M) {
	if os.Getenv(envURL) != "" {
		if err := work(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// patience bounds each thing that the tests wait for, generously: it decides
// only how long a failure takes.
const patience = 2 * time.Minute

// crib is a stream server, a store, a registry on both, and a catalog of the
// workers' tools.
type crib struct {
	t      testing.TB
	server *natsserver.Server
	client stream.Client
	store  store.Store
	reg    *registry.Registry
	cat    tools.LiveCatalog
	source *registry.Source
}

// quick has the consequences of pings come in a time that a test can wait, and
// not so soon that a busy machine has them come of themselves.
func quick() *registry.Options {
	return &registry.Options{PingInterval: 500 * time.Millisecond, MissedPings: 6, StaleAfter: 20 * time.Second, DrainTimeout: 20 * time.Second}
}

func newCrib(t testing.TB, opts *registry.Options) *crib {
	t.Helper()
	return newCribOn(t, opts, nil)
}

// newCribOn is newCrib with options of the stream server.
func newCribOn(t testing.TB, opts *registry.Options, server *natsserver.Options) *crib {
	t.Helper()
	c := &crib{t: t}
	var err error
	if c.server, err = natsserver.Start(t.TempDir(), server); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.check(c.server.Close()) })
	c.client = c.connect()
	if c.store, err = sqlstore.OpenMemory(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.check(c.store.Close()) })
	c.open(opts)
	return c
}

func (c *crib) check(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Error(err)
	}
}

func (c *crib) connect() stream.Client {
	c.t.Helper()
	client, err := c.server.Client(c.t.Context(), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { c.check(client.Close()) })
	return client
}

// open starts a registry and keeps its tools in a new catalog.
func (c *crib) open(opts *registry.Options) {
	c.t.Helper()
	if opts == nil {
		opts = quick()
	}
	reg, err := registry.New(c.t.Context(), c.client, c.store, opts)
	if err != nil {
		c.t.Fatal(err)
	}
	c.reg = reg
	c.t.Cleanup(func() { c.close(reg) })
	cat := tools.NewCatalog().(tools.LiveCatalog)
	source := reg.Source()
	c.cat, c.source = cat, source
	source.OnChange(func() { swap(cat, source) })
	c.check(source.Connect(c.t.Context()))
	swap(cat, source)
}

func swap(cat tools.LiveCatalog, source *registry.Source) {
	if list, err := source.Discover(context.Background()); err == nil {
		cat.SwapSource(source.SourceID(), list)
	}
}

func (c *crib) close(reg *registry.Registry) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := reg.Close(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		c.t.Error(err)
	}
}

// serve runs a worker until stop is called, which returns what Serve did.
func (c *crib) serve(toolset string, h provider.Handler, opts provider.Options) (stop func() error) {
	c.t.Helper()
	return c.serveOn(c.connect(), toolset, h, opts)
}

// serveOn is serve on a client of the caller's.
func (c *crib) serveOn(client stream.Client, toolset string, h provider.Handler, opts provider.Options) (stop func() error) {
	c.t.Helper()
	if opts.Pong == nil {
		opts.Pong = provider.Pong(client, "")
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- provider.Serve(ctx, client, toolset, h, opts) }()
	var ended atomic.Bool
	stop = func() error {
		cancel()
		if ended.Swap(true) {
			return nil
		}
		select {
		case err := <-done:
			return err
		case <-time.After(patience):
			return errors.New("Serve does not end")
		}
	}
	c.t.Cleanup(func() { _ = stop() })
	return stop
}

// await waits until a condition holds.
func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	limit := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("within %s: not %s", patience, what)
		}
	}
}

// up waits until n workers of a toolset are.
func (c *crib) up(toolset string, n int) {
	c.t.Helper()
	await(c.t, "the workers of "+toolset+" are up", func() bool { return c.live(toolset) == n })
}

func (c *crib) live(toolset string) int {
	n := 0
	for _, s := range c.reg.Toolsets() {
		for _, w := range s.Workers {
			if s.Name == toolset && w.Up {
				n++
			}
		}
	}
	return n
}

func caller(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return identity.WithQuadruple(ctx, identity.Quadruple{Identity: identity.Identity{TenantID: "acme", UserID: "ada", SessionID: "s1"}, RunID: "r1"})
}

func (c *crib) call(ctx context.Context, tool, args string) (tools.ToolResult, error) {
	return tools.Invoke(ctx, c.cat, tool, json.RawMessage(args))
}

type addArgs struct {
	A int `json:"a"`
	B int `json:"b"`
}

type sum struct {
	Sum int `json:"sum"`
}

// calculator is a catalog with a pure tool and one that has effects.
func calculator(t *testing.T) tools.ToolCatalog {
	t.Helper()
	cat := tools.NewCatalog()
	add := func(_ context.Context, in addArgs) (sum, error) { return sum{in.A + in.B}, nil }
	for name, effect := range map[string]tools.SideEffect{"math.add": tools.SideEffectPure, "math.book": tools.SideEffectWrite} {
		if err := inproc.RegisterFunc(cat, name, add, tools.WithSideEffect(effect), tools.WithDescription("Adds.")); err != nil {
			t.Fatal(err)
		}
	}
	return cat
}
