package streamtest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/registry/stream"
)

func testRestart(t *testing.T, f *fixture) { testOutlives(t, f, f.backend.Restart) }
func testKill(t *testing.T, f *fixture)    { testOutlives(t, f, f.backend.Kill) }

// testOutlives makes sure that events of which Add said that they are kept are
// there when the server is.
func testOutlives(t *testing.T, f *fixture, restart func(*testing.T)) {
	if restart == nil {
		t.Skip("the backend cannot be restarted so")
	}
	const count, done = 300, 40
	s := f.open(t, f.client, nil)
	add(t, s, 0, count)
	k := sink(t, s, &stream.SinkOptions{Lease: 2 * time.Second, InFlight: done + 10})
	var held []stream.Event
	for i := range done + 10 {
		if event := receive(t, k); i < done {
			ack(t, event)
		} else {
			held = append(held, event)
		}
	}
	eventually(t, func() (bool, string) {
		size, err := s.Size(within(t, wait))
		return err == nil && size.Waiting+size.Held == count-done, "the acknowledgements did not arrive"
	})
	restart(t)
	got := newSeen()
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	working.Go(func() { got.work(ctx, 0, k) })
	other := sink(t, f.open(t, client(t, f.backend), nil), nil)
	working.Go(func() { got.work(ctx, 1, other) })
	add(t, s, count, count+20)
	wanted := func(i int) bool { return i >= count || !f.backend.Forgets && i >= done }
	eventually(t, func() (bool, string) {
		got.mu.Lock()
		defer got.mu.Unlock()
		for i := range count + 20 {
			if wanted(i) && got.count[strconv.Itoa(i)] == 0 {
				return false, "event " + strconv.Itoa(i) + " did not come"
			}
		}
		return true, ""
	})
	empty(t, s)
	cancel()
	working.Wait()
	for _, event := range held {
		event.Ack(t.Context()) //nolint:errcheck // Another worker had it since.
	}
}

// testWorkOverRestart restarts the server while events are added and worked on,
// twice.
func testWorkOverRestart(t *testing.T, f *fixture) {
	if f.backend.Restart == nil {
		t.Skip("the backend cannot be restarted")
	}
	s := f.open(t, f.client, nil)
	got := newSeen()
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	for i := range 2 {
		k := sink(t, f.open(t, client(t, f.backend), nil), &stream.SinkOptions{Lease: 2 * time.Second})
		working.Go(func() { got.work(ctx, i, k) })
	}
	var added atomic.Int64
	adding, stop := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() { failed <- addUntil(adding, s, &added) }()
	for round := range 2 {
		eventually(t, func() (bool, string) { return added.Load() > int64(200*(round+1)), "adding stands still" })
		f.backend.Restart(t)
	}
	after := added.Load() + 200
	eventually(t, func() (bool, string) { return added.Load() > after, "adding did not go on after the restart" })
	stop()
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	if !f.backend.Forgets {
		got.all(t, int(added.Load()), false)
	}
	empty(t, s)
	cancel()
	working.Wait()
}

// addUntil adds 0, 1, 2, … until the context ends. What may not have been added is
// added again.
func addUntil(ctx context.Context, s stream.Stream, added *atomic.Int64) error {
	for ctx.Err() == nil {
		_, err := s.Add(ctx, "call", []byte(strconv.FormatInt(added.Load(), 10)))
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			added.Add(1)
		case errors.Is(err, stream.ErrFull):
			<-time.After(time.Millisecond)
		case !errors.Is(err, stream.ErrUnavailable):
			return err
		}
	}
	return nil
}

// testLeaseOverRestart holds an event through a restart. The worker that holds it
// and extends does not get it again.
func testLeaseOverRestart(t *testing.T, f *fixture) {
	if f.backend.Restart == nil || f.backend.Forgets {
		t.Skip("the backend does not keep leases over a restart")
	}
	// The server is back before the lease would end.
	const lease = 5 * time.Second
	s := f.open(t, f.client, nil)
	k := sink(t, s, &stream.SinkOptions{Lease: lease})
	add(t, s, 0, 1)
	event := receive(t, k)
	again := make(chan stream.Event, 10)
	ctx, cancel := context.WithCancel(t.Context())
	var receiving sync.WaitGroup
	var extended tally
	receiving.Go(func() {
		for {
			event, err := k.Receive(ctx)
			if err != nil {
				return
			}
			again <- event
		}
	})
	stop := make(chan struct{})
	receiving.Go(func() {
		for tick := time.NewTicker(200 * time.Millisecond); ; {
			select {
			case <-tick.C:
				extended.note(event.Extend(ctx)) // The server may be away.
			case <-stop:
				return
			}
		}
	})
	f.backend.Restart(t)
	select {
	case event := <-again:
		t.Errorf("the event came again while it was held, delivery %d; %s", event.Deliveries, &extended)
	case <-time.After(2 * lease):
	}
	close(stop)
	ack(t, event)
	empty(t, s)
	cancel()
	receiving.Wait()
}

func testBusAfterRestart(t *testing.T, f *fixture) {
	if f.backend.Restart == nil {
		t.Skip("the backend cannot be restarted")
	}
	subject := f.name + ":replies"
	listener := make(chan stream.Message, 1000)
	other := client(t, f.backend)
	subscribe(t, other, subject, func(m stream.Message) { listener <- m })
	_, err := other.Respond(within(t, wait), subject, func(_ context.Context, m stream.Message) stream.Message { return m })
	if err != nil {
		t.Fatal(err)
	}
	f.backend.Restart(t)
	eventually(t, func() (bool, string) {
		err := f.client.Publish(within(t, wait), subject, stream.Message{Name: "m"})
		return err == nil && len(listener) > 0, "messages are not heard after a restart"
	})
	eventually(t, func() (bool, string) {
		_, err := f.client.Request(within(t, time.Second), subject, stream.Message{Name: "m"})
		return err == nil, "questions are not answered after a restart"
	})
}

// tally says how often something was done, and how it last failed.
type tally struct {
	mu       sync.Mutex
	done     int
	failures []string
}

func (y *tally) note(err error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if err == nil {
		y.done++
		return
	}
	y.failures = append(y.failures, err.Error())
}

func (y *tally) String() string {
	y.mu.Lock()
	defer y.mu.Unlock()
	return fmt.Sprintf("it was extended %d times, and failed to %d times: %q", y.done, len(y.failures), y.failures)
}
