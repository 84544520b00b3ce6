package natsstream_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/registry/stream/natsstream"
)

// The server is killed again and again while many add and work. Every event of
// which Add said that it is kept comes.
func TestServerIsKilledAgainAndAgain(t *testing.T) {
	kills, adders, workers := 8, 4, 4
	if testing.Short() {
		kills = 2
	}
	address := freeAddress(t)
	config := filepath.Join(t.TempDir(), "nats.conf")
	text := fmt.Sprintf("listen: %q\njetstream { store_dir: %q, max_mem: 64MB, max_file: 1GB, sync_interval: 10s }\n", address, t.TempDir())
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	server := startProcess(t, config)
	k := newKept()
	ctx, stop := context.WithCancel(t.Context())
	var adding, working sync.WaitGroup
	for i := range adders {
		q := openQueue(t, address)
		adding.Go(func() { k.add(ctx, t, q, i) })
	}
	for range workers {
		sink, err := openQueue(t, address).Sink(t.Context(), "provider", &stream.SinkOptions{Lease: 2 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		working.Go(func() { k.work(t.Context(), sink) })
		defer sink.Close() //nolint:errcheck // It never fails.
	}
	for range kills {
		k.grow(t, 300)
		server.restart(t, os.Kill)
	}
	k.grow(t, 300)
	stop()
	adding.Wait()
	k.complete(t)
}

func openQueue(t *testing.T, address string) stream.Stream {
	t.Helper()
	c := dial(t, "nats://"+address, &natsstream.Options{})
	t.Cleanup(func() { c.Close() }) //nolint:errcheck // It never fails.
	q, err := c.Stream(t.Context(), "toolset:killed:requests", nil)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// kept counts what was added, and what came of it.
type kept struct {
	added atomic.Int64
	mu    sync.Mutex
	want  map[string]bool // confirmed
	came  map[string]int
}

func newKept() *kept { return &kept{want: map[string]bool{}, came: map[string]int{}} }

func (k *kept) add(ctx context.Context, t *testing.T, q stream.Stream, who int) {
	for i := 0; ctx.Err() == nil; i++ {
		payload := strconv.Itoa(who) + ":" + strconv.Itoa(i)
		_, err := q.Add(ctx, "call", []byte(payload))
		if ctx.Err() != nil {
			return // Nobody knows whether the last one is kept.
		}
		if err != nil && !errors.Is(err, stream.ErrUnavailable) && !errors.Is(err, stream.ErrFull) {
			t.Errorf("Add = %v", err)
		}
		if err == nil {
			k.added.Add(1)
			k.mu.Lock()
			k.want[payload] = true
			k.mu.Unlock()
		}
	}
}

func (k *kept) work(ctx context.Context, sink stream.Sink) {
	for {
		event, err := sink.Receive(ctx)
		if err != nil {
			return
		}
		k.mu.Lock()
		k.came[string(event.Payload)]++
		k.mu.Unlock()
		event.Ack(ctx) //nolint:errcheck // It comes again.
	}
}

// grow waits until a number of events more are confirmed.
func (k *kept) grow(t *testing.T, by int64) {
	t.Helper()
	target, deadline := k.added.Load()+by, time.After(time.Minute)
	for tick := time.NewTicker(10 * time.Millisecond); k.added.Load() < target; {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%d events are added, and no more", k.added.Load())
		}
	}
}

// complete waits until all that was confirmed came.
func (k *kept) complete(t *testing.T) {
	t.Helper()
	deadline := time.After(time.Minute)
	for tick := time.NewTicker(50 * time.Millisecond); ; {
		missing, again := k.missing()
		if missing == 0 {
			t.Logf("%d events were confirmed, and %d deliveries were repeated", k.added.Load(), again)
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%d of %d events did not come", missing, k.added.Load())
		}
	}
}

func (k *kept) missing() (missing, again int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for payload := range k.want {
		if k.came[payload] == 0 {
			missing++
		}
	}
	for _, times := range k.came {
		again += times - 1
	}
	return missing, again
}
