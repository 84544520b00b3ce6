package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/toolcrib/toolcrib/bench/streams/calls"
	"github.com/toolcrib/toolcrib/bench/streams/floor"
	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/stream/redisstream"
)

func startCalls(tool string, synced *string) func(context.Context, *floor.Options) (floor.Caller, error) {
	return func(ctx context.Context, o *floor.Options) (floor.Caller, error) {
		dir, err := os.MkdirTemp("", "bench-redis-")
		if err != nil {
			return nil, err
		}
		client, err := redisstream.Dial(ctx, o.Server, nil)
		if err != nil {
			return nil, err
		}
		later, err := syncsLater(ctx, o, *synced)
		if err != nil {
			return nil, err
		}
		queue, err := client.Stream(ctx, registry.RequestStream("bench"), nil)
		if err != nil {
			return nil, err
		}
		return calls.Start(ctx, o, calls.Backend{Client: client, Server: o.Server, Dir: dir, Later: later, Close: func() error {
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

// syncsLater reports whether records need not be on the disk at once: when it is said so, or when the server itself does not
// wait for the disk, so that the floor does not promise more.
func syncsLater(ctx context.Context, o *floor.Options, mode string) (bool, error) {
	if mode != "" {
		return mode == "later", nil
	}
	client, err := connect(o)
	if err != nil {
		return false, err
	}
	defer client.Close()
	set, err := client.ConfigGet(ctx, "append*").Result()
	if err != nil {
		return false, fmt.Errorf("how the server syncs cannot be read; say -sync grouped or later: %w", err)
	}
	return set["appendonly"] != "yes" || set["appendfsync"] != "always", nil
}
