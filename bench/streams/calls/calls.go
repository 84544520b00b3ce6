// Package calls measures calls of tools on workers: through the catalog's door, the registry, a stream, and back.
package calls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/toolcrib/toolcrib/bench/streams/floor"
	"github.com/toolcrib/toolcrib/internal/heap"
	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/store/sqlstore"
	"github.com/toolcrib/toolcrib/tools"
)

// The tools that are called: one that is only sent, and one that is recorded and claimed as well.
const (
	Read  = "bench.read"
	Write = "bench.write"
)

// Backend is what calls travel over. The caller closes it.
type Backend struct {
	Client stream.Client
	Server string // where a worker finds it
	Dir    string // for the records
	Later  bool   // whether the records need not be on the disk at once
	Close  func() error
}

// gateway is the caller.
type gateway struct {
	backend Backend
	db      *sqlstore.DB
	reg     *registry.Registry
	cat     tools.LiveCatalog
	tool    string
	args    json.RawMessage
	heap    *heap.Floor // that of toolcrib serve
}

// Start returns a caller of a tool over a backend.
func Start(ctx context.Context, o *floor.Options, b Backend, tool string) (floor.Caller, error) {
	g := &gateway{heap: heap.NewFloor(), backend: b, tool: tool, args: json.RawMessage(`{"text":"` + strings.Repeat("x", o.Payload) + `"}`)}
	var err error
	if g.db, err = sqlstore.Open(ctx, filepath.Join(b.Dir, "toolcrib.db"), nil); err != nil {
		return nil, err
	}
	if g.reg, err = registry.New(ctx, b.Client, g.db, &registry.Options{Wait: true, SyncLater: b.Later}); err != nil {
		return nil, err
	}
	if err = g.reg.Register(ctx, contract(), registry.Grant{}); err != nil {
		return nil, err
	}
	source := g.reg.Source()
	list, err := source.Discover(ctx)
	if err != nil {
		return nil, err
	}
	g.cat = tools.NewCatalog().(tools.LiveCatalog)
	g.cat.SwapSource(source.SourceID(), list)
	return g, nil
}

func (g *gateway) Server() string { return g.backend.Server }

func (g *gateway) Call(ctx context.Context) error {
	_, err := tools.Invoke(ctx, g.cat, g.tool, g.args)
	return err
}

func (g *gateway) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(g.reg.Close(ctx), g.db.Close(), g.backend.Close())
}

func contract() registry.Contract {
	c := registry.Contract{Toolset: "bench"}
	for name, effect := range map[string]tools.SideEffect{Read: tools.SideEffectRead, Write: tools.SideEffectWrite} {
		c.Tools = append(c.Tools, registry.ToolSpec{Name: name, ArgsSchema: json.RawMessage(`{"type":"object"}`), ResultSchema: json.RawMessage(`{}`), SideEffects: effect})
	}
	return c
}

// Work is a worker until it is killed. It answers a call with its arguments.
func Work(ctx context.Context, o *floor.Options, client stream.Client) error {
	made, floor := contract(), heap.NewFloor()
	defer runtime.KeepAlive(floor)
	err := provider.Serve(ctx, client, "bench", provider.HandlerFunc(func(_ context.Context, m registry.ToolCallMessage) (registry.ToolResultMessage, error) {
		return registry.ToolResultMessage{ResultJSON: m.Payload}, nil
	}), provider.Options{Pong: provider.Pong(client, ""), Contract: &made, MaxConcurrentToolCalls: max(o.InFlight, 1)})
	fmt.Fprintln(os.Stderr, "worker:", err)
	return err
}
