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

func startCalls(tool string) func(context.Context, *floor.Options) (floor.Caller, error) {
	return func(ctx context.Context, o *floor.Options) (floor.Caller, error) {
		dir, err := os.MkdirTemp("", "bench-redis-")
		if err != nil {
			return nil, err
		}
		client, err := redisstream.Dial(ctx, o.Server, nil)
		if err != nil {
			return nil, err
		}
		queue, err := client.Stream(ctx, registry.RequestStream("bench"), nil)
		if err != nil {
			return nil, err
		}
		return calls.Start(ctx, o, calls.Backend{Client: client, Server: o.Server, Dir: dir, Close: func() error {
			return errors.Join(queue.Destroy(context.Background()), client.Close(), os.RemoveAll(dir))
		}}, tool)
	}
}

// workCalls is a worker until it is killed.
func workCalls(ctx context.Context, o *floor.Options) error {
	client, err := redisstream.Dial(ctx, o.Server, nil)
	if err != nil {
		return err
	}
	return calls.Work(ctx, o, client)
}
