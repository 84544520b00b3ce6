package streamtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/registry/stream"
)

func testFull(t *testing.T, f *fixture) {
	s := f.open(t, f.client, &stream.Options{MaxEvents: 10})
	add(t, s, 0, 10)
	if _, err := s.Add(within(t, wait), "call", []byte("10")); !errors.Is(err, stream.ErrFull) {
		t.Fatalf("Add to a full stream = %v", err)
	}
	k := sink(t, s, &stream.SinkOptions{InFlight: 3})
	event := receive(t, k)
	// An event that is held takes up room.
	if _, err := s.Add(within(t, wait), "call", []byte("10")); !errors.Is(err, stream.ErrFull) {
		t.Fatalf("Add to a stream with held events = %v", err)
	}
	ack(t, event)
	eventually(t, func() (bool, string) {
		_, err := s.Add(within(t, wait), "call", []byte("10"))
		return err == nil, fmt.Sprintf("Add after there was room = %v", err)
	})
	for i := range 10 {
		event := receive(t, k)
		if string(event.Payload) != fmt.Sprint(i+1) {
			t.Errorf("event %d is %s", i+1, event.Payload)
		}
		ack(t, event)
	}
	empty(t, s)
}

func testBacklog(t *testing.T, f *fixture) {
	const count, adders = 3_000, 10
	s := f.open(t, f.client, nil)
	failed := make(chan error, adders)
	for i := range adders {
		go func() {
			failed <- addAll(within(t, wait), s, i*count/adders, (i+1)*count/adders)
		}()
	}
	for range adders {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
	if size, err := s.Size(within(t, wait)); err != nil || size.Waiting != count {
		t.Fatalf("Size = %+v, %v; want %d waiting", size, err, count)
	}
	got := newSeen()
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	for i := range 3 {
		k := sink(t, f.open(t, client(t, f.backend), nil), nil)
		working.Go(func() { got.work(ctx, i, k) })
	}
	got.all(t, count, true)
	empty(t, s)
	cancel()
	working.Wait()
}

func testLarge(t *testing.T, f *fixture) {
	s := f.open(t, f.client, nil)
	limit := f.client.MaxPayload()
	if limit < 512<<10 {
		t.Errorf("MaxPayload = %d, too small for what tools return", limit)
	}
	large := bytes.Repeat([]byte("0123456789abcde\n"), limit/16)
	for range 3 {
		if _, err := s.Add(within(t, wait), "call", large); err != nil {
			t.Fatal(err)
		}
	}
	k := sink(t, s, nil)
	for range 3 {
		event := receive(t, k)
		if !bytes.Equal(event.Payload, large) {
			t.Errorf("%d bytes came back as %d others", len(large), len(event.Payload))
		}
		ack(t, event)
	}
	tooLarge := make([]byte, limit+1)
	if _, err := s.Add(within(t, wait), "call", tooLarge); !errors.Is(err, stream.ErrTooLarge) {
		t.Errorf("Add of more than MaxPayload = %v", err)
	}
	m := stream.Message{Name: "result", Payload: tooLarge}
	if err := f.client.Publish(within(t, wait), "large", m); !errors.Is(err, stream.ErrTooLarge) {
		t.Errorf("Publish of more than MaxPayload = %v", err)
	}
	if _, err := f.client.Request(within(t, wait), "large", m); !errors.Is(err, stream.ErrTooLarge) {
		t.Errorf("Request with more than MaxPayload = %v", err)
	}
	empty(t, s)
}

// foreign are names that a backend cannot use as they are, or might take for one
// another.
var foreign = []string{"a", "A", "a.b", "a*b", "a>b", "a b", "a:b", "a::b", ":a", "a:", "a~b", "a%3Ab", "a/b", `a\b`, "a\nb", "a\x00b", "a=b",
	"ünïcode ✓", "..", "*", ">", "$JS.API", "{a}", strings.Repeat("x", stream.MaxNameBytes), strings.Repeat("x", stream.MaxNameBytes-1) + "y",
	strings.Repeat("é", stream.MaxNameBytes/2), strings.Repeat("é", stream.MaxNameBytes/2-1) + "ö"}

func testForeignNames(t *testing.T, f *fixture) {
	// Names as long as they may be leave no room for one that is the case's own.
	for _, name := range foreign {
		g := &fixture{backend: f.backend, client: f.client, name: name}
		s := g.open(t, f.client, nil)
		if s.Name() != name {
			t.Errorf("Name = %q, want %q", s.Name(), name)
		}
		if _, err := s.Add(within(t, wait), name, []byte(name)); err != nil {
			t.Fatalf("%q: %v", name, err)
		}
	}
	for _, name := range foreign {
		s, err := f.client.Stream(within(t, wait), name, nil)
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		k, err := s.Sink(within(t, wait), name, nil)
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		event := receive(t, k)
		if string(event.Payload) != name || event.Name != name {
			t.Errorf("%q received %q %q", name, event.Name, event.Payload)
		}
		ack(t, event)
		empty(t, s)
		if err := s.RemoveSink(within(t, wait), name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	testForeignSubjects(t, f)
}

func testForeignSubjects(t *testing.T, f *fixture) {
	heard := make(chan [2]string, 2*len(foreign))
	for _, name := range foreign {
		_, err := f.client.Subscribe(within(t, wait), name, func(m stream.Message) { heard <- [2]string{name, m.Name + "|" + string(m.Payload)} })
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
	}
	for _, name := range foreign {
		if err := f.client.Publish(within(t, wait), name, stream.Message{Name: name, Payload: []byte(name)}); err != nil {
			t.Fatalf("%q: %v", name, err)
		}
	}
	for range foreign {
		select {
		case got := <-heard:
			if got[1] != got[0]+"|"+got[0] {
				t.Errorf("%q heard %q", got[0], got[1])
			}
		case <-time.After(wait):
			t.Fatal("a message did not come")
		}
	}
}

func testOneSink(t *testing.T, f *fixture) {
	s := f.open(t, f.client, nil)
	if err := s.RemoveSink(within(t, wait), "provider"); err != nil {
		t.Errorf("removing a sink that is not there: %v", err)
	}
	k := sink(t, s, nil)
	if _, err := s.Sink(within(t, wait), "other", nil); !errors.Is(err, stream.ErrConflict) || !strings.Contains(err.Error(), "provider") {
		t.Fatalf("a second sink = %v, want ErrConflict that names the first", err)
	}
	add(t, s, 0, 2)
	ack(t, receive(t, k))
	event := receive(t, k)
	eventually(t, func() (bool, string) { // an acknowledgement is sent, and may be lost with its sink
		size, err := s.Size(t.Context())
		return err == nil && size.Waiting+size.Held == 1, fmt.Sprintf("the stream holds %+v, %v", size, err)
	})
	k.Close()
	if err := s.RemoveSink(within(t, wait), "provider"); err != nil {
		t.Fatal(err)
	}
	other, err := s.Sink(within(t, wait), "other", nil)
	if err != nil {
		t.Fatal(err)
	}
	again := receive(t, other)
	if again.ID != event.ID || again.Deliveries != 1 {
		t.Errorf("the new sink got %s, delivery %d; want %s, delivery 1", again.ID, again.Deliveries, event.ID)
	}
	ack(t, again)
	empty(t, s)
}

func testOneLease(t *testing.T, f *fixture) {
	s := f.open(t, f.client, nil)
	sink(t, s, &stream.SinkOptions{Lease: 2 * time.Second})
	if k := sink(t, s, nil); k.Lease() != 2*time.Second {
		t.Errorf("a worker that gives none has the lease %v", k.Lease())
	}
	sink(t, s, &stream.SinkOptions{Lease: 2 * time.Second})
	if _, err := s.Sink(within(t, wait), "provider", &stream.SinkOptions{Lease: 3 * time.Second}); !errors.Is(err, stream.ErrConflict) {
		t.Errorf("another lease = %v, want ErrConflict", err)
	}
}

func testDrain(t *testing.T, f *fixture) {
	const count = 600
	s := f.open(t, f.client, nil)
	got := newSeen()
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	defer working.Wait()
	defer cancel()
	long := 5 * time.Second
	leaving := sink(t, f.open(t, client(t, f.backend), nil), &stream.SinkOptions{InFlight: 100, Lease: long})
	staying := sink(t, f.open(t, client(t, f.backend), nil), &stream.SinkOptions{InFlight: 10})
	working.Go(func() { got.work(ctx, 0, leaving) })
	working.Go(func() { got.work(ctx, 1, staying) })
	added := make(chan error, 1)
	go func() { added <- addAll(within(t, wait), s, 0, count) }()
	eventually(t, func() (bool, string) { return got.distinct() > count/6, "the burst did not begin" })
	if err := leaving.Drain(within(t, wait)); err != nil {
		t.Errorf("Drain = %v", err)
	}
	if _, err := leaving.Receive(t.Context()); !errors.Is(err, stream.ErrClosed) {
		t.Errorf("Receive after Drain = %v", err)
	}
	if err := <-added; err != nil {
		t.Fatal(err)
	}
	// What the drained sink gave back comes before its lease would have ended.
	began := time.Now()
	got.all(t, count, true)
	if after := time.Since(began); after > long/2 && !f.backend.Relays {
		t.Errorf("the events came only after %v", after)
	}
	empty(t, s)
}

func testDrainWaits(t *testing.T, f *fixture) {
	s := f.open(t, f.client, nil)
	k := sink(t, s, &stream.SinkOptions{Lease: lease})
	add(t, s, 0, 1)
	event := receive(t, k)
	if err := k.Drain(within(t, lease/2)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Drain with a held event = %v, want the end of the context", err)
	}
	var drained atomic.Bool
	done := make(chan error, 1)
	go func() {
		err := k.Drain(within(t, wait))
		drained.Store(true)
		done <- err
	}()
	tick, end := time.NewTicker(lease/5), time.After(2*lease)
	for waiting := true; waiting; {
		select {
		case <-tick.C:
			if err := event.Extend(t.Context()); err != nil {
				t.Fatal(err)
			}
		case <-end:
			waiting = false
		}
	}
	if drained.Load() {
		t.Error("Drain returned while an event was held")
	}
	ack(t, event)
	if err := <-done; err != nil {
		t.Errorf("Drain = %v", err)
	}
	empty(t, s)
}

func testCloseTwice(t *testing.T, f *fixture) {
	c := f.backend.Client(t)
	s := f.open(t, c, nil)
	k := sink(t, s, nil)
	sub, err := c.Subscribe(within(t, wait), "close", func(stream.Message) {})
	if err != nil {
		t.Fatal(err)
	}
	receiving := make(chan error, 1)
	go func() {
		_, err := k.Receive(t.Context())
		receiving <- err
	}()
	for name, end := range map[string]func() error{"the sink": k.Close, "the subscription": sub.Close, "the client": c.Close} {
		for range 2 {
			if err := end(); err != nil {
				t.Errorf("closing %s: %v", name, err)
			}
		}
	}
	if err := <-receiving; !errors.Is(err, stream.ErrClosed) {
		t.Errorf("Receive that waited = %v", err)
	}
	ctx := within(t, wait)
	for name, use := range map[string]func() error{
		"Stream":    func() error { _, err := c.Stream(ctx, f.name, nil); return err },
		"Add":       func() error { _, err := s.Add(ctx, "call", nil); return err },
		"Sink":      func() error { _, err := s.Sink(ctx, "provider", nil); return err },
		"Receive":   func() error { _, err := k.Receive(ctx); return err },
		"Publish":   func() error { return c.Publish(ctx, "s", stream.Message{Name: "m"}) },
		"Request":   func() error { _, err := c.Request(ctx, "s", stream.Message{Name: "m"}); return err },
		"Subscribe": func() error { _, err := c.Subscribe(ctx, "s", func(stream.Message) {}); return err },
	} {
		if err := use(); !errors.Is(err, stream.ErrClosed) {
			t.Errorf("%s after Close = %v", name, err)
		}
	}
	f.open(t, f.client, nil) // It is destroyed with a client that lives.
}

func testContexts(t *testing.T, f *fixture) {
	s := f.open(t, f.client, nil)
	k := sink(t, s, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := k.Receive(ctx)
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Receive = %v, want the end of the context", err)
	}
	for name, use := range map[string]func() error{
		"Add":     func() error { _, err := s.Add(ctx, "call", nil); return err },
		"Request": func() error { _, err := f.client.Request(ctx, "s", stream.Message{Name: "m"}); return err },
		"Stream":  func() error { _, err := f.client.Stream(ctx, f.name, nil); return err },
	} {
		if err := use(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a context that ended = %v", name, err)
		}
	}
	add(t, s, 0, 1)
	for event := receive(t, k); ; event = receive(t, k) {
		ack(t, event)
		if string(event.Payload) == "0" { // The Add whose context ended may have got through.
			break
		}
	}
	empty(t, s)
}

func testBounds(t *testing.T, f *fixture) {
	f.open(t, f.client, &stream.Options{MaxEvents: 2})
	s := f.open(t, client(t, f.backend), nil)
	add(t, s, 0, 2)
	if _, err := s.Add(within(t, wait), "call", nil); !errors.Is(err, stream.ErrFull) {
		t.Errorf("Add beyond the bound that another client set = %v", err)
	}
	s = f.open(t, client(t, f.backend), &stream.Options{MaxEvents: 4})
	add(t, s, 2, 4)
	if _, err := s.Add(within(t, wait), "call", nil); !errors.Is(err, stream.ErrFull) {
		t.Errorf("Add beyond the new bound = %v", err)
	}
}

func testDestroy(t *testing.T, f *fixture) {
	s := f.open(t, f.client, nil)
	k := sink(t, s, &stream.SinkOptions{Lease: lease})
	add(t, s, 0, 3)
	receive(t, k)
	if err := s.Destroy(within(t, wait)); err != nil {
		t.Fatal(err)
	}
	if err := s.Destroy(within(t, wait)); err != nil {
		t.Errorf("destroying twice: %v", err)
	}
	if size, err := s.Size(within(t, wait)); err != nil || size != (stream.Size{}) {
		t.Errorf("Size of a destroyed stream = %+v, %v", size, err)
	}
	// The sink and the stream go on, on a new stream.
	add(t, s, 10, 11)
	for {
		event := receive(t, k)
		if string(event.Payload) == "10" {
			ack(t, event)
			break
		}
	}
	empty(t, s)
}

func testShortLived(t *testing.T, f *fixture) {
	opts := &stream.Options{TTL: time.Minute}
	s := f.open(t, f.client, opts)
	neighbour, err := f.client.Stream(within(t, wait), f.name+":other", opts)
	if err != nil {
		t.Fatal(err)
	}
	defer neighbour.Destroy(within(t, wait)) //nolint:errcheck // Its events vanish in a minute.
	add(t, neighbour, 100, 101)
	add(t, s, 0, 20)
	if size, err := s.Size(within(t, wait)); err != nil || size.Waiting != 20 {
		t.Errorf("Size = %+v, %v", size, err)
	}
	k := sink(t, f.open(t, client(t, f.backend), opts), nil)
	for i := range 20 {
		event := receive(t, k)
		if string(event.Payload) != fmt.Sprint(i) {
			t.Fatalf("event %d is %s", i, event.Payload)
		}
		ack(t, event)
	}
	empty(t, s)
	if size, err := neighbour.Size(within(t, wait)); err != nil || size.Waiting != 1 {
		t.Errorf("Size of the neighbour = %+v, %v", size, err)
	}
}

func testExpiry(t *testing.T, f *fixture) {
	s := f.open(t, f.client, &stream.Options{TTL: time.Second})
	add(t, s, 0, 5)
	empty(t, s)
}

func testInvalid(t *testing.T, f *fixture) {
	ctx := within(t, wait)
	s := f.open(t, f.client, nil)
	long := strings.Repeat("n", stream.MaxNameBytes+1)
	for _, name := range []string{"", "\xff", long} {
		m := stream.Message{Name: "m"}
		for method, use := range map[string]func() error{
			"Stream":      func() error { _, err := f.client.Stream(ctx, name, nil); return err },
			"Sink":        func() error { _, err := s.Sink(ctx, name, nil); return err },
			"Add":         func() error { _, err := s.Add(ctx, name, nil); return err },
			"Publish":     func() error { return f.client.Publish(ctx, name, m) },
			"Publish of":  func() error { return f.client.Publish(ctx, "s", stream.Message{Name: name}) },
			"Request":     func() error { _, err := f.client.Request(ctx, name, m); return err },
			"Subscribe":   func() error { _, err := f.client.Subscribe(ctx, name, func(stream.Message) {}); return err },
			"Respond":     func() error { _, err := f.client.Respond(ctx, name, nil); return err },
			"Remove sink": func() error { return s.RemoveSink(ctx, name) },
		} {
			if err := use(); !errors.Is(err, stream.ErrInvalid) {
				t.Errorf("%s with the name %.9q = %v", method, name, err)
			}
		}
	}
	if _, err := f.client.Stream(ctx, f.name, &stream.Options{MaxEvents: -1}); !errors.Is(err, stream.ErrInvalid) {
		t.Errorf("a negative bound = %v", err)
	}
	if _, err := s.Sink(ctx, "provider", &stream.SinkOptions{MaxDeliveries: 1}); !errors.Is(err, stream.ErrInvalid) {
		t.Errorf("a cap without Dead = %v", err)
	}
}

// testBoundOfTwo opens new streams for a client that sets a bound and one that
// keeps what is there, at the same time.
func testBoundOfTwo(t *testing.T, f *fixture) {
	other := client(t, f.backend)
	for i := range 5 {
		name := f.name + ":" + strconv.Itoa(i)
		var opening sync.WaitGroup
		opening.Go(func() {
			if _, err := other.Stream(within(t, wait), name, nil); err != nil {
				t.Error(err)
			}
		})
		s, err := f.client.Stream(within(t, wait), name, &stream.Options{MaxEvents: 1})
		if err != nil {
			t.Fatal(err)
		}
		opening.Wait()
		add(t, s, 0, 1)
		if _, err := s.Add(within(t, wait), "call", nil); !errors.Is(err, stream.ErrFull) {
			t.Errorf("stream %d: an event above its bound: %v", i, err)
		}
		if err := s.Destroy(within(t, wait)); err != nil {
			t.Error(err)
		}
	}
}
