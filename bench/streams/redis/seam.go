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
	"github.com/toolcrib/toolcrib/registry/stream/redisstream"
)

// seam is the caller over the package. A request and its answer are the id of the call, a line end, and the payload; the
// subject of the answers is the name of the event.
type seam struct {
	floor.Answers
	server  string
	client  *redisstream.Client
	queue   stream.Stream
	replies string
	payload string
}

func startSeam(ctx context.Context, o *floor.Options) (floor.Caller, error) {
	client, err := redisstream.Dial(ctx, o.Server, nil)
	if err != nil {
		return nil, err
	}
	s := &seam{
		server: o.Server, client: client,
		replies: fmt.Sprintf("bench:replies:%d", os.Getpid()), payload: strings.Repeat("x", o.Payload),
	}
	if s.queue, err = client.Stream(ctx, requests, nil); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	if err := s.queue.Destroy(ctx); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	_, err = client.Subscribe(ctx, s.replies, func(m stream.Message) {
		id, _, _ := bytes.Cut(m.Payload, []byte("\n"))
		s.Come(string(id))
	})
	return s, err
}

func (s *seam) Close() error {
	return errors.Join(s.queue.Destroy(context.Background()), s.client.Close())
}

func (s *seam) Server() string { return s.server }

func (s *seam) Call(ctx context.Context) error {
	id, answered := s.Expect()
	if _, err := s.queue.Add(ctx, s.replies, []byte(id+"\n"+s.payload)); err != nil {
		return err
	}
	return floor.Await(id, answered)
}

// workSeam answers requests until it is killed.
func workSeam(ctx context.Context, o *floor.Options) error {
	client, err := redisstream.Dial(ctx, o.Server, nil)
	if err != nil {
		return err
	}
	queue, err := client.Stream(ctx, requests, nil)
	if err != nil {
		return err
	}
	sink, err := queue.Sink(ctx, group, &stream.SinkOptions{InFlight: max(o.InFlight, 1)})
	if err != nil {
		return err
	}
	for {
		event, err := sink.Receive(ctx)
		if err != nil {
			return err
		}
		go func() {
			err := client.Publish(ctx, event.Name, stream.Message{Name: "result", Payload: event.Payload})
			if err = errors.Join(err, event.Ack(ctx)); err != nil {
				fmt.Fprintln(os.Stderr, "redis: worker:", err)
			}
		}()
	}
}
