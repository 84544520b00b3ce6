package redisstream_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/registry/stream/redisstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dial connects a client that the caller closes.
func dial(t *testing.T, r *peertest.Redis) *redisstream.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c, err := redisstream.Dial(ctx, r.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func open(t *testing.T, c *redisstream.Client, name string, o *stream.Options) stream.Stream {
	t.Helper()
	s, err := c.Stream(peertest.Bounded(t), name, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func openSink(t *testing.T, s stream.Stream, name string, o *stream.SinkOptions) stream.Sink {
	t.Helper()
	sink, err := s.Sink(peertest.Bounded(t), name, o)
	if err != nil {
		t.Fatal(err)
	}
	return sink
}

func receive(t *testing.T, s stream.Sink) stream.Event {
	t.Helper()
	event, err := s.Receive(peertest.Bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	return event
}

func ack(t *testing.T, e stream.Event) {
	t.Helper()
	if err := e.Ack(context.Background()); err != nil {
		t.Error(err)
	}
}
