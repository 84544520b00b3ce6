package main

import (
	"context"
	"errors"
	"os"

	"github.com/toolcrib/toolcrib/bench/streams/calls"
	"github.com/toolcrib/toolcrib/bench/streams/floor"
	"github.com/toolcrib/toolcrib/registry/stream/natsserver"
	"github.com/toolcrib/toolcrib/registry/stream/natsstream"
)

// startCalls is the gateway: a catalog of tools that workers run.
func startCalls(sync natsserver.Sync, tool string) func(context.Context, *floor.Options) (floor.Caller, error) {
	return func(ctx context.Context, o *floor.Options) (floor.Caller, error) {
		dir, err := os.MkdirTemp("", "bench-nats-")
		if err != nil {
			return nil, err
		}
		server, err := natsserver.Start(dir, &natsserver.Options{Token: token, Sync: sync})
		if err != nil {
			return nil, err
		}
		client, err := server.Client(ctx, nil)
		if err != nil {
			return nil, err
		}
		return calls.Start(ctx, o, calls.Backend{Client: client, Server: server.URL(), Dir: dir, Later: sync == natsserver.SyncLater, Close: func() error {
			return errors.Join(client.Close(), server.Close(), os.RemoveAll(dir))
		}}, tool)
	}
}

// workCalls is a worker until it is killed.
func workCalls(ctx context.Context, o *floor.Options) error {
	client, err := natsstream.Dial(ctx, o.Server, &natsstream.Options{Token: token})
	if err != nil {
		return err
	}
	return calls.Work(ctx, o, client)
}
