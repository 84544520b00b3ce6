package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/toolcrib/toolcrib/bench/streams/calls"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/registry/stream/natsstream"
)

// idle counts the messages that clients send to a server and get from it while nothing is called.
func idle(ctx context.Context, toolsets string, intervals int) error {
	dir, err := os.MkdirTemp("", "bench-nats-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true, Authorization: token,
		JetStream: true, StoreDir: dir})
	if err != nil {
		return err
	}
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	if !s.ReadyForConnections(10 * time.Second) {
		return errors.New("the server does not start")
	}
	return calls.Idle(ctx, calls.Server{
		What: "messages to and from clients",
		Connect: func(ctx context.Context) (stream.Client, error) {
			return natsstream.Dial(ctx, s.ClientURL(), &natsstream.Options{Token: token})
		},
		Count: func(context.Context) (int64, error) {
			v, err := s.Varz(nil)
			if err != nil {
				return 0, err
			}
			return v.InMsgs + v.OutMsgs, nil
		},
	}, toolsets, intervals)
}
