package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/toolcrib/toolcrib/bench/streams/floor"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/registry/stream/natsserver"
	"github.com/toolcrib/toolcrib/registry/stream/natsstream"
)

const (
	queue   = "toolset:bench:requests"
	replies = "bench:replies"
)

// seam is the caller over the packages. A request and its answer are the id of the call, a line end, and the payload.
type seam struct {
	floor.Answers
	dir     string
	server  *natsserver.Server
	client  *natsstream.Client
	queue   stream.Stream
	payload string
}

func startSeam(sync natsserver.Sync) func(context.Context, *floor.Options) (floor.Caller, error) {
	return func(ctx context.Context, o *floor.Options) (floor.Caller, error) {
		s := &seam{payload: strings.Repeat("x", o.Payload)}
		var err error
		if s.dir, err = os.MkdirTemp("", "bench-nats-"); err != nil {
			return nil, err
		}
		if s.server, err = natsserver.Start(s.dir, &natsserver.Options{Token: token, Sync: sync}); err != nil {
			return nil, err
		}
		if s.client, err = s.server.Client(ctx, nil); err != nil {
			return nil, err
		}
		if s.queue, err = s.client.Stream(ctx, queue, nil); err != nil {
			return nil, err
		}
		_, err = s.client.Subscribe(ctx, replies, func(m stream.Message) {
			id, _, _ := bytes.Cut(m.Payload, []byte("\n"))
			s.Come(string(id))
		})
		return s, err
	}
}

func (s *seam) Server() string { return s.server.URL() }

func (s *seam) Close() error {
	return errors.Join(s.client.Close(), s.server.Close(), os.RemoveAll(s.dir))
}

func (s *seam) Call(ctx context.Context) error {
	id, answered := s.Expect()
	if _, err := s.queue.Add(ctx, "call", []byte(id+"\n"+s.payload)); err != nil {
		return err
	}
	return floor.Await(id, answered)
}

// workSeam answers requests until it is killed.
func workSeam(ctx context.Context, o *floor.Options) error {
	client, err := natsstream.Dial(ctx, o.Server, &natsstream.Options{Token: token})
	if err != nil {
		return err
	}
	s, err := client.Stream(ctx, queue, nil)
	if err != nil {
		return err
	}
	sink, err := s.Sink(ctx, "provider", &stream.SinkOptions{InFlight: max(o.InFlight, 1)})
	if err != nil {
		return err
	}
	for {
		event, err := sink.Receive(ctx)
		if err != nil {
			return err
		}
		go func() {
			err := client.Publish(ctx, replies, stream.Message{Name: "result", Payload: event.Payload})
			if err = errors.Join(err, event.Ack(ctx)); err != nil {
				fmt.Fprintln(os.Stderr, "nats: worker:", err)
			}
		}()
	}
}
