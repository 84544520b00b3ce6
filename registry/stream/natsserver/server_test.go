package natsserver_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/registry/stream/natsserver"
	"github.com/toolcrib/toolcrib/registry/stream/natsstream"
)

func open(t *testing.T, s *natsserver.Server, name string) stream.Stream {
	t.Helper()
	c, err := s.Client(within(t, time.Minute), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() }) //nolint:errcheck // It never fails.
	q, err := c.Stream(within(t, time.Minute), name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestTokenIsKeptForTheOwnerAlone(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, nil)
	token := s.Token()
	info, err := os.Stat(s.TokenFile())
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 || len(token) < 20 {
		t.Errorf("the token of %d characters has the mode %v", len(token), info.Mode())
	}
	if strings.Contains(s.URL(), token) {
		t.Errorf("the URL tells the token: %s", s.URL())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if again := start(t, dir, nil); again.Token() != token {
		t.Error("a restart changes the token")
	}
}

func TestStrangersAreRefused(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	for _, opts := range []*natsstream.Options{nil, {Token: "guess"}} {
		c, err := natsstream.Dial(within(t, 10*time.Second), s.URL(), opts)
		if err == nil {
			c.Close() //nolint:errcheck // It never fails.
			t.Errorf("a client with %+v is let in", opts)
		}
	}
}

func TestFolderServesOneServer(t *testing.T) {
	dir := t.TempDir()
	start(t, dir, nil)
	if second, err := natsserver.Start(dir, nil); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("a second server on the folder = %v, %v", second, err)
	}
}

func TestAddressInUseIsAnError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // It ends with the test.
	began := time.Now()
	if _, err := natsserver.Start(t.TempDir(), &natsserver.Options{Address: l.Addr().String()}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("Start = %v, want an error that names the address", err)
	}
	if after := time.Since(began); after > 20*time.Second {
		t.Errorf("it took %v to say so", after)
	}
}

func TestBadOptions(t *testing.T) {
	for _, opts := range []*natsserver.Options{{Address: "nowhere"}, {Address: "127.0.0.1:http"}, {Address: "127.0.0.1:99999"}, {MaxPayload: -1},
		{MaxPayload: natsserver.MaxPayload + 1}, {MaxStore: -1}} {
		if _, err := natsserver.Start(t.TempDir(), opts); !errors.Is(err, stream.ErrInvalid) {
			t.Errorf("%+v: %v", opts, err)
		}
	}
}

// A server that is full says so, and takes events again when there is room.
func TestStoreIsBounded(t *testing.T) {
	s := start(t, t.TempDir(), &natsserver.Options{MaxStore: 1 << 20})
	q := open(t, s, "toolset:a:requests")
	payload := make([]byte, 100<<10)
	var err error
	stored := 0
	for ; err == nil; stored++ {
		if stored > 20 {
			t.Fatal("events beyond the bound are taken")
		}
		_, err = q.Add(within(t, time.Minute), "call", payload)
	}
	if !errors.Is(err, stream.ErrFull) {
		t.Fatalf("Add to a full server = %v", err)
	}
	k, err := q.Sink(within(t, time.Minute), "provider", nil)
	if err != nil {
		t.Fatal(err)
	}
	for range stored - 1 {
		event, err := k.Receive(within(t, time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		if err := event.Ack(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for err = stream.ErrFull; errors.Is(err, stream.ErrFull); {
		_, err = q.Add(within(t, time.Minute), "call", payload)
	}
	if err != nil {
		t.Errorf("Add when there is room again = %v", err)
	}
}

func TestLogTellsNoSecret(t *testing.T) {
	var lines peertest.Log
	s := start(t, t.TempDir(), &natsserver.Options{Logger: lines.Logger(slog.LevelDebug)})
	open(t, s, "toolset:a:requests")
	if c, err := natsstream.Dial(within(t, 10*time.Second), s.URL(), &natsstream.Options{Token: "a-wrong-guess"}); err == nil {
		c.Close() //nolint:errcheck // It never fails.
	}
	text := lines.String()
	if !strings.Contains(text, "component=nats") || strings.Contains(text, s.Token()) || strings.Contains(text, "a-wrong-guess") {
		t.Errorf("the log: %s", text)
	}
}

// Whatever the way to sync, what was added is there after a restart.
func TestEveryWayToSyncKeepsEvents(t *testing.T) {
	for name, sync := range map[string]natsserver.Sync{"grouped": natsserver.SyncGrouped, "every": natsserver.SyncEvery, "later": natsserver.SyncLater} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := start(t, dir, &natsserver.Options{Sync: sync})
			q := open(t, s, "toolset:a:requests")
			for range 50 {
				if _, err := q.Add(within(t, time.Minute), "call", []byte("payload")); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			size, err := open(t, start(t, dir, &natsserver.Options{Sync: sync}), "toolset:a:requests").Size(within(t, time.Minute))
			if err != nil || size.Waiting != 50 {
				t.Errorf("after the restart: %+v, %v", size, err)
			}
		})
	}
}

func TestAddToAServerThatWasClosedEnds(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	q := open(t, s, "toolset:a:requests")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	ctx := within(t, 300*time.Millisecond)
	for ctx.Err() == nil { // The first may be on its way when the connection breaks.
		if _, err := q.Add(ctx, "call", nil); !errors.Is(err, stream.ErrUnavailable) {
			t.Fatalf("Add = %v", err)
		}
	}
	if _, err := q.Add(ctx, "call", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Add with a context that ended = %v", err)
	}
}

// A store that could not be written is opened again, and workers that wait go on.
func TestStoreIsOpenedAgain(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	q := open(t, s, "toolset:a:requests")
	k, err := q.Sink(within(t, time.Minute), "provider", &stream.SinkOptions{InFlight: 2})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Add(within(t, time.Minute), "call", []byte("before")); err != nil {
		t.Fatal(err)
	}
	natsserver.FailWrite(s)
	ctx := within(t, time.Minute)
	for err = stream.ErrUnavailable; errors.Is(err, stream.ErrUnavailable) && ctx.Err() == nil; {
		_, err = q.Add(ctx, "call", []byte("after"))
	}
	if err != nil {
		t.Fatal(err)
	}
	for last := ""; last != "after"; {
		event, err := k.Receive(ctx)
		if err != nil {
			t.Fatal(err)
		}
		last = string(event.Payload)
		if err := event.Ack(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
