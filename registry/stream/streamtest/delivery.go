package streamtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/registry/stream"
)

func testRoundTrip(t *testing.T, f *fixture) {
	s := f.open(t, f.client, nil)
	if s.Name() != f.name {
		t.Errorf("Name = %q", s.Name())
	}
	before := time.Now()
	id, err := s.Add(within(t, wait), "call", []byte(`{"tool":"a.b"}`))
	if err != nil {
		t.Fatal(err)
	}
	if size, err := s.Size(within(t, wait)); err != nil || size != (stream.Size{Waiting: 1}) {
		t.Errorf("Size before = %+v, %v", size, err)
	}
	k := sink(t, s, nil)
	if k.Lease() != stream.DefaultLease {
		t.Errorf("Lease = %v", k.Lease())
	}
	event := receive(t, k)
	if event.ID != id || event.Name != "call" || string(event.Payload) != `{"tool":"a.b"}` || event.Deliveries != 1 {
		t.Errorf("received %+v, want the event %s", event, id)
	}
	if off := event.Added.Sub(before); off < -time.Second || off > wait {
		t.Errorf("added %v after it was added", off)
	}
	if size, err := s.Size(within(t, wait)); err != nil || size != (stream.Size{Held: 1}) {
		t.Errorf("Size while held = %+v, %v", size, err)
	}
	ack(t, event)
	empty(t, s)
	if _, err := s.Add(within(t, wait), "ping", nil); err != nil {
		t.Fatal(err)
	}
	event = receive(t, k)
	if event.Name != "ping" || len(event.Payload) != 0 {
		t.Errorf("received %q %q", event.Name, event.Payload)
	}
	ack(t, event)
}

func testOrder(t *testing.T, f *fixture) {
	const count = 500
	s := f.open(t, f.client, nil)
	add(t, s, 0, count/2)
	k := sink(t, s, &stream.SinkOptions{InFlight: 7})
	added := make(chan error, 1)
	go func() { added <- addAll(within(t, wait), s, count/2, count) }()
	for i := range count {
		event := receive(t, k)
		if string(event.Payload) != strconv.Itoa(i) {
			t.Fatalf("event %d is %s", i, event.Payload)
		}
		ack(t, event)
	}
	if err := <-added; err != nil {
		t.Error(err)
	}
	empty(t, s)
}

// seen counts the events that workers got, by payload.
type seen struct {
	mu    sync.Mutex
	count map[string]int
	by    map[int]int // events of each worker
}

func newSeen() *seen { return &seen{count: map[string]int{}, by: map[int]int{}} }

func (s *seen) note(worker int, event stream.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count[string(event.Payload)]++
	s.by[worker]++
}

func (s *seen) distinct() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.count)
}

// work receives and acknowledges until the sink or the context ends.
func (s *seen) work(ctx context.Context, worker int, k stream.Sink) {
	for {
		event, err := k.Receive(ctx)
		if err != nil {
			return
		}
		s.note(worker, event)
		event.Ack(ctx) //nolint:errcheck // The event comes again.
	}
}

// below counts the different events that came of the first ones. An add that was
// broken off may have brought one more.
func (s *seen) below(count int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	came := 0
	for i := range count {
		if s.count[strconv.Itoa(i)] > 0 {
			came++
		}
	}
	return came
}

// all waits until count events were seen, and makes sure that none came twice.
func (s *seen) all(t *testing.T, count int, once bool) {
	t.Helper()
	eventually(t, func() (bool, string) {
		came := s.below(count)
		return came >= count, fmt.Sprintf("%d of %d events came", came, count)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range count {
		if got := s.count[strconv.Itoa(i)]; got < 1 || once && got > 1 {
			t.Errorf("event %d came %d times", i, got)
		}
	}
}

func testShare(t *testing.T, f *fixture) {
	const workers, count = 4, 400
	var s stream.Stream
	got := newSeen()
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	defer working.Wait()
	defer cancel()
	for i := range workers {
		s = f.open(t, client(t, f.backend), nil)
		k := sink(t, s, &stream.SinkOptions{InFlight: 4})
		working.Go(func() { got.work(ctx, i, k) })
	}
	add(t, s, 0, count)
	got.all(t, count, true)
	empty(t, s)
	got.mu.Lock()
	defer got.mu.Unlock()
	for i := range workers {
		if got.by[i] == 0 {
			t.Errorf("worker %d got none of %d events: %v", i, count, got.by)
		}
	}
}

func testExtend(t *testing.T, f *fixture) {
	s := f.open(t, f.client, nil)
	k := sink(t, s, &stream.SinkOptions{Lease: lease})
	other := sink(t, f.open(t, client(t, f.backend), nil), nil)
	if other.Lease() != lease {
		t.Errorf("the lease of the second worker is %v, not that of the sink", other.Lease())
	}
	add(t, s, 0, 1)
	first, second := make(chan stream.Event, 2), make(chan stream.Event, 2)
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	for from, to := range map[stream.Sink]chan stream.Event{k: first, other: second} {
		waiting.Go(func() {
			for {
				event, err := from.Receive(ctx)
				if err != nil {
					return
				}
				to <- event
			}
		})
	}
	var event stream.Event
	select {
	case event = <-first:
	case event = <-second:
	case <-time.After(wait):
		t.Fatal("no event came")
	}
	extend(t, event, 4*lease, first, second)
	ack(t, event)
	empty(t, s)
}

// extend keeps an event for a time, in which nothing may come.
func extend(t *testing.T, event stream.Event, while time.Duration, others ...chan stream.Event) {
	t.Helper()
	tick, end := time.NewTicker(lease/8), time.After(while)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := event.Extend(t.Context()); err != nil {
				t.Fatal(err)
			}
		case again := <-others[0]:
			t.Fatalf("the event came again, delivery %d", again.Deliveries)
		case again := <-others[1]:
			t.Fatalf("the event came again, delivery %d", again.Deliveries)
		case <-end:
			return
		}
	}
}

func testLeaseEnds(t *testing.T, f *fixture) {
	s := f.open(t, f.client, nil)
	k := sink(t, s, &stream.SinkOptions{Lease: lease, InFlight: 1})
	add(t, s, 0, 1)
	event := receive(t, k)
	began := time.Now()
	other := sink(t, f.open(t, client(t, f.backend), nil), nil)
	again := receive(t, other)
	if again.ID != event.ID || again.Deliveries != 2 {
		t.Errorf("received %s, delivery %d; want %s, delivery 2", again.ID, again.Deliveries, event.ID)
	}
	if after := time.Since(began); after < lease/2 {
		t.Errorf("the event came again after %v, within its lease", after)
	}
	<-time.After(lease / 2) // The worker may have got the event a little after its lease began.
	if err := event.Extend(t.Context()); !errors.Is(err, stream.ErrLost) {
		t.Errorf("Extend of a lost lease = %v", err)
	}
	ack(t, again)
	empty(t, s)
}

func testWorkerDies(t *testing.T, f *fixture) {
	s := f.open(t, f.client, nil)
	add(t, s, 0, 10)
	dead := f.backend.Client(t)
	k := sink(t, f.open(t, dead, nil), &stream.SinkOptions{Lease: 2 * lease, InFlight: 10})
	for range 5 {
		receive(t, k)
	}
	dead.Close()
	got := newSeen()
	survivor := sink(t, s, nil)
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	working.Go(func() { got.work(ctx, 0, survivor) })
	got.all(t, 10, false)
	empty(t, s)
	cancel()
	working.Wait()
}

func testNack(t *testing.T, f *fixture) {
	s := f.open(t, f.client, nil)
	k := sink(t, s, nil)
	add(t, s, 0, 1)
	event := receive(t, k)
	if err := event.Nack(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	event = receive(t, k)
	if event.Deliveries != 2 {
		t.Errorf("delivery %d, want 2", event.Deliveries)
	}
	began := time.Now()
	if err := event.Nack(t.Context(), 2*lease); err != nil {
		t.Fatal(err)
	}
	event = receive(t, k)
	if after := time.Since(began); after < 2*lease*9/10 || event.Deliveries != 3 {
		t.Errorf("delivery %d came after %v", event.Deliveries, after)
	}
	ack(t, event)
	empty(t, s)
}

func testCap(t *testing.T, f *fixture) {
	s := f.open(t, f.client, nil)
	dead := make(chan stream.Event, 10)
	k := sink(t, s, &stream.SinkOptions{MaxDeliveries: 3, Dead: func(_ context.Context, event stream.Event) error {
		dead <- event
		return nil
	}})
	add(t, s, 0, 1)
	for i := range 3 {
		event := receive(t, k)
		if event.Deliveries != i+1 {
			t.Errorf("delivery %d, want %d", event.Deliveries, i+1)
		}
		if err := event.Nack(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case event := <-dead:
		if string(event.Payload) != "0" || event.Deliveries <= 3 {
			t.Errorf("Dead got %q, delivery %d", event.Payload, event.Deliveries)
		}
	case <-time.After(wait):
		t.Fatal("Dead was not called")
	}
	empty(t, s)
	if len(dead) > 0 {
		t.Error("Dead was called twice")
	}
}

func testBurialFails(t *testing.T, f *fixture) {
	s := f.open(t, f.client, nil)
	var calls atomic.Int32
	k := sink(t, s, &stream.SinkOptions{Lease: lease, MaxDeliveries: 1, Dead: func(context.Context, stream.Event) error {
		if calls.Add(1) == 1 {
			return errors.New("the caller cannot be told")
		}
		return nil
	}})
	add(t, s, 0, 1)
	if err := receive(t, k).Nack(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	empty(t, s)
	if calls.Load() != 2 {
		t.Errorf("Dead was called %d times, want 2", calls.Load())
	}
}

func testPoison(t *testing.T, f *fixture) {
	const count = 50
	s := f.open(t, f.client, nil)
	buried := make(chan string, count)
	k := sink(t, s, &stream.SinkOptions{Lease: lease, InFlight: 8, MaxDeliveries: 2, Dead: func(_ context.Context, event stream.Event) error {
		buried <- string(event.Payload)
		return nil
	}})
	add(t, s, 0, count)
	got := newSeen()
	for got.distinct() < count-1 {
		event := receive(t, k)
		if string(event.Payload) == "3" {
			continue // It kills its handler, and is never settled.
		}
		got.note(0, event)
		ack(t, event)
	}
	// The second delivery of the poisoned event may not have come yet.
	ctx, cancel := context.WithCancel(within(t, wait))
	var working sync.WaitGroup
	working.Go(func() {
		for {
			if _, err := k.Receive(ctx); err != nil {
				return
			}
		}
	})
	select {
	case what := <-buried:
		if what != "3" {
			t.Errorf("event %s was buried", what)
		}
	case <-ctx.Done():
		t.Error("the poisoned event was not buried")
	}
	cancel()
	working.Wait()
	empty(t, s)
}

func testSettledOnce(t *testing.T, f *fixture) {
	s := f.open(t, f.client, nil)
	k := sink(t, s, nil)
	add(t, s, 0, 1)
	event := receive(t, k)
	ack(t, event)
	for name, err := range map[string]error{"Ack": event.Ack(t.Context()), "Nack": event.Nack(t.Context(), 0), "Extend": event.Extend(t.Context())} {
		if !errors.Is(err, stream.ErrSettled) {
			t.Errorf("%s of a settled lease = %v", name, err)
		}
	}
	nothing(t, k, lease)
	empty(t, s)
}

func testInFlight(t *testing.T, f *fixture) {
	s := f.open(t, f.client, nil)
	add(t, s, 0, 20)
	k := sink(t, s, &stream.SinkOptions{InFlight: 3})
	held := []stream.Event{receive(t, k), receive(t, k), receive(t, k)}
	nothing(t, k, lease)
	other := sink(t, f.open(t, client(t, f.backend), nil), &stream.SinkOptions{InFlight: 1})
	event := receive(t, other)
	if slices.ContainsFunc(held, func(e stream.Event) bool { return e.ID == event.ID }) {
		t.Error("two workers hold one event")
	}
	for _, event := range append(held, event) {
		ack(t, event)
	}
	got := newSeen()
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	working.Go(func() { got.work(ctx, 0, k) })
	working.Go(func() { got.work(ctx, 1, other) })
	empty(t, s)
	cancel()
	working.Wait()
	if got.distinct() != 16 {
		t.Errorf("%d events came, want the other 16", got.distinct())
	}
}
