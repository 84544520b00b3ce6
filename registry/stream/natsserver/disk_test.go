//go:build linux

package natsserver_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/registry/stream/natsserver"
	"github.com/toolcrib/toolcrib/registry/stream/natsstream"
)

// fill writes a file until the disk has no room for more, or for less than leave.
func fill(t *testing.T, name string, leave uint64) {
	t.Helper()
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // It is full.
	block := make([]byte, 4096)
	for {
		var stat syscall.Statfs_t
		if err := syscall.Statfs(filepath.Dir(name), &stat); err != nil {
			t.Fatal(err)
		}
		if stat.Bavail*uint64(stat.Bsize) < leave {
			return
		}
		if _, err := file.Write(block); err != nil {
			return
		}
	}
}

func TestNearlyFullDiskIsSaid(t *testing.T) {
	disk := peertest.SmallDisk(t, "100m")
	s := start(t, filepath.Join(disk, "streams"), nil)
	q := open(t, s, "toolset:a:requests")
	if _, err := q.Add(within(t, time.Minute), "call", nil); err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(disk, "ballast")
	fill(t, ballast, 60<<20)
	if _, err := q.Add(within(t, time.Minute), "call", nil); !errors.Is(err, stream.ErrNoRoom) || !errors.Is(err, stream.ErrFull) {
		t.Fatalf("Add on a disk that is nearly full = %v", err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Add(within(t, time.Minute), "call", nil); err != nil {
		t.Errorf("Add when the disk has room = %v", err)
	}
}

// Another program fills the disk. The server fails to write, and goes on when there
// is room again, with all that was confirmed.
func TestFullDiskIsOutlived(t *testing.T) {
	const count = 20
	disk := peertest.SmallDisk(t, "150m")
	s := start(t, filepath.Join(disk, "streams"), nil)
	q := open(t, s, "toolset:a:requests")
	for range count {
		if _, err := q.Add(within(t, time.Minute), "call", make([]byte, 100<<10)); err != nil {
			t.Fatal(err)
		}
	}
	k, err := q.Sink(within(t, time.Minute), "provider", &stream.SinkOptions{InFlight: 4, Lease: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	first, err := k.Receive(within(t, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	seen[first.ID] = true
	ballast := filepath.Join(disk, "ballast")
	fill(t, ballast, 0)
	breakStore(t, s)
	if err := first.Ack(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := q.Add(within(t, time.Minute), "call", nil); !errors.Is(err, stream.ErrUnavailable) {
		t.Errorf("Add to a server that failed = %v", err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	for len(seen) < count {
		event, err := k.Receive(within(t, time.Minute))
		if err != nil {
			t.Fatalf("after %d of %d events: %v", len(seen), count, err)
		}
		seen[event.ID] = true
		event.Ack(t.Context()) //nolint:errcheck // It comes again.
	}
	ctx := within(t, time.Minute)
	for err = stream.ErrUnavailable; errors.Is(err, stream.ErrUnavailable) && ctx.Err() == nil; {
		_, err = q.Add(ctx, "call", nil)
	}
	if err != nil {
		t.Errorf("Add to the server that recovered = %v", err)
	}
}

// breakStore adds an event past those who look after the disk.
func breakStore(t *testing.T, s *natsserver.Server) {
	t.Helper()
	c, err := natsstream.Dial(within(t, time.Minute), s.URL(), &natsstream.Options{Token: s.Token()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // It never fails.
	q, err := c.Stream(within(t, time.Minute), "toolset:a:requests", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	for err == nil {
		_, err = q.Add(ctx, "call", make([]byte, 100<<10))
	}
}
