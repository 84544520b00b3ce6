package natsserver_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/registry/stream/natsserver"
	"github.com/toolcrib/toolcrib/registry/stream/natsstream"
	"github.com/toolcrib/toolcrib/registry/stream/streamtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, dir string, opts *natsserver.Options) *natsserver.Server {
	t.Helper()
	s, err := natsserver.Start(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func within(t *testing.T, limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// The server is in this process, and so are its clients.
func TestInProcess(t *testing.T) {
	streamtest.Run(t, func(t *testing.T) *streamtest.Backend {
		s := start(t, t.TempDir(), &natsserver.Options{Address: "none"})
		return &streamtest.Backend{
			Client: func(t *testing.T) stream.Client {
				c, err := s.Client(within(t, time.Minute), nil)
				if err != nil {
					t.Fatal(err)
				}
				return c
			},
			Received: func(t *testing.T) int64 { return natsserver.Received(t, s) },
		}
	})
}

// Workers reach the server over the loopback interface, with the token of its
// folder.
func TestOverLoopback(t *testing.T) {
	streamtest.Run(t, func(t *testing.T) *streamtest.Backend {
		dir := t.TempDir()
		s := start(t, dir, nil)
		url := s.URL()
		return &streamtest.Backend{
			Client: func(t *testing.T) stream.Client {
				c, err := natsstream.Dial(within(t, time.Minute), url, &natsstream.Options{TokenFile: s.TokenFile()})
				if err != nil {
					t.Fatal(err)
				}
				return c
			},
			Restart: func(*testing.T) {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = start(t, dir, &natsserver.Options{Address: url[len("nats://"):]})
			},
		}
	})
}
