package calls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/store/sqlstore"
	"github.com/toolcrib/toolcrib/tools"
)

// Server is a stream server whose traffic is counted.
type Server struct {
	// Connect returns a new client of it.
	Connect func(ctx context.Context) (stream.Client, error)
	// Count returns how many messages the server has been sent, or commands.
	Count func(ctx context.Context) (int64, error)
	// What is what it counts.
	What string
}

// Idle counts what passes a server while nothing is called, with a registry and so many toolsets, each of which has one
// worker with a connection of its own. intervals is for how many ping intervals it is counted.
func Idle(ctx context.Context, s Server, list string, intervals int) error {
	for part := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return fmt.Errorf("-idle is made of numbers: %w", err)
		}
		if err := s.idle(ctx, n, intervals); err != nil {
			return err
		}
	}
	return nil
}

func (s Server) idle(ctx context.Context, toolsets, intervals int) (fault error) {
	dir, err := os.MkdirTemp("", "bench-idle-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	db, err := sqlstore.Open(ctx, filepath.Join(dir, "toolcrib.db"), nil)
	if err != nil {
		return err
	}
	defer db.Close()
	client, err := s.Connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	reg, err := registry.New(ctx, client, db, nil)
	if err != nil {
		return err
	}
	working, stop := context.WithCancel(ctx)
	ended := make(chan error, toolsets)
	for i := range toolsets {
		go func() { ended <- s.work(working, fmt.Sprint("idle", i)) }()
	}
	defer func() {
		stop()
		for range toolsets {
			fault = errors.Join(fault, <-ended)
		}
		fault = errors.Join(fault, reg.Close(context.Background()))
	}()
	for reg.Health() != nil || len(reg.Toolsets()) < toolsets {
		select {
		case err := <-ended:
			ended <- nil
			return fmt.Errorf("a worker ended: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
	return s.report(ctx, toolsets, intervals)
}

// report counts over whole intervals, the first of which lets what belongs to the start pass.
func (s Server) report(ctx context.Context, toolsets, intervals int) error {
	ticks := time.NewTicker(registry.DefaultPingInterval)
	defer ticks.Stop()
	<-ticks.C
	before, err := s.Count(ctx)
	if err != nil {
		return err
	}
	for range intervals {
		<-ticks.C
	}
	after, err := s.Count(ctx)
	if err != nil {
		return err
	}
	each := float64(after-before) / float64(intervals)
	fmt.Printf("%d toolsets with a worker each, nothing called: %.1f %s in each ping interval of %s, %.2f for each toolset\n",
		toolsets, each, s.What, registry.DefaultPingInterval, each/float64(toolsets))
	return nil
}

func (s Server) work(ctx context.Context, toolset string) error {
	client, err := s.Connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	c := registry.Contract{Toolset: toolset, Tools: []registry.ToolSpec{{Name: toolset + ".read", ArgsSchema: json.RawMessage(`{"type":"object"}`),
		ResultSchema: json.RawMessage(`{}`), SideEffects: tools.SideEffectRead}}}
	return provider.Serve(ctx, client, toolset, provider.HandlerFunc(func(_ context.Context, m registry.ToolCallMessage) (registry.ToolResultMessage, error) {
		return registry.ToolResultMessage{ResultJSON: m.Payload}, nil
	}), provider.Options{Pong: provider.Pong(client, ""), Contract: &c})
}
