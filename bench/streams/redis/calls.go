package main

import (
	"context"
	"errors"
	"os"

	"github.com/toolcrib/toolcrib/bench/streams/calls"
	"github.com/toolcrib/toolcrib/bench/streams/floor"
	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/stream/redisstream"
)

// gateway is a catalog of tools that workers run.
type gateway struct{ floor.Caller }

func startCalls(tool string) func(context.Context, *options) (program, error) {
	return func(ctx context.Context, o *options) (program, error) {
		dir, err := os.MkdirTemp("", "bench-redis-")
		if err != nil {
			return nil, err
		}
		client, err := redisstream.Dial(ctx, o.url, nil)
		if err != nil {
			return nil, err
		}
		queue, err := client.Stream(ctx, registry.RequestStream("bench"), nil)
		if err != nil {
			return nil, err
		}
		caller, err := calls.Start(ctx, &floor.Options{Payload: o.payload}, calls.Backend{Client: client, Server: o.url, Dir: dir, Close: func() error {
			return errors.Join(queue.Destroy(context.Background()), client.Close(), os.RemoveAll(dir))
		}}, tool)
		return gateway{caller}, err
	}
}

func (g gateway) call(ctx context.Context) error { return g.Call(ctx) }

func (g gateway) close() error { return g.Close() }

// workCalls is a worker until it is killed.
func workCalls(ctx context.Context, o *options) error {
	client, err := redisstream.Dial(ctx, o.url, nil)
	if err != nil {
		return err
	}
	return calls.Work(ctx, &floor.Options{InFlight: o.inflight}, client)
}
