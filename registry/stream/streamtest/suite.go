package streamtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/registry/stream"
)

// Backend is a server that runs for one run of the suite.
type Backend struct {
	// Client connects anew, as another process would. The suite closes it.
	Client func(t *testing.T) stream.Client

	// Restart stops the server as an operator would, and starts it again on
	// what it kept. Clients are left to reconnect. Nil leaves the cases out.
	Restart func(t *testing.T)

	// Kill is as Restart, but the server has no time to do anything before it
	// ends, as with kill -9.
	Kill func(t *testing.T)

	// Forgets says that the server keeps nothing over a restart, or may lose
	// some of what it answered. Those cases then only hold that clients go on.
	Forgets bool

	// Relays says that servers pass events on to one another. One that is on its
	// way to a worker that just ended its intake is then not given back, and
	// comes again when its lease ended.
	Relays bool

	// Received counts the messages or commands that the server has received
	// from clients since it started. Nil leaves out the case that counts them.
	Received func(t *testing.T) int64
}

// wait bounds everything that a case waits for.
const wait = 60 * time.Second

// lease is one that cases wait for the end of. A busy machine may stand still for a
// part of it.
const lease = 1200 * time.Millisecond

// fixture is what a case works with.
type fixture struct {
	backend *Backend
	client  stream.Client
	name    string // of the case's own stream
}

// Run runs the suite against the server that start starts.
func Run(t *testing.T, start func(t *testing.T) *Backend) {
	backend := start(t)
	for _, one := range []struct {
		name string
		run  func(*testing.T, *fixture)
	}{
		{"events arrive as they were added", testRoundTrip},
		{"events arrive in order", testOrder},
		{"workers share the events", testShare},
		{"an extended lease does not end", testExtend},
		{"an event whose lease ended goes to another worker", testLeaseEnds},
		{"an event of a worker that died goes to another", testWorkerDies},
		{"an event that was given back waits out its delay", testNack},
		{"an event that is never acknowledged reaches the cap", testCap},
		{"an event whose burial failed is buried again", testBurialFails},
		{"a poisoned event does not stop the others", testPoison},
		{"a full stream refuses", testFull},
		{"a bound holds for whoever opens the stream first", testBoundOfTwo},
		{"3,000 waiting events are all delivered", testBacklog},
		{"a worker holds no more than its share", testInFlight},
		{"payloads may be large", testLarge},
		{"names may hold anything", testForeignNames},
		{"a stream has one sink", testOneSink},
		{"a sink has one lease", testOneLease},
		{"a drain loses nothing", testDrain},
		{"a drain waits for what is held", testDrainWaits},
		{"closing twice is fine", testCloseTwice},
		{"contexts end what waits", testContexts},
		{"a lease is settled once", testSettledOnce},
		{"bounds are kept or set", testBounds},
		{"events can be looked at", testBrowse},
		{"events of a short-lived stream can be looked at", testBrowseShort},
		{"a note stays beside its event", testNote},
		{"a destroyed stream is empty", testDestroy},
		{"a short-lived stream passes events on", testShortLived},
		{"events of a short-lived stream vanish", testExpiry},
		{"bad names and options are refused", testInvalid},
		{"messages reach all who listen", testPublish},
		{"messages arrive in order", testPublishOrder},
		{"a closed subscription hears nothing", testUnsubscribe},
		{"one of those who respond is asked", testRespond},
		{"many questions are answered at once", testManyQuestions},
		{"a question to nobody is known at once", testNobodyResponds},
		{"many streams are quiet", testQuiet},
		{"what was added outlives a restart", testRestart},
		{"what was added outlives a kill", testKill},
		{"work goes on over a restart", testWorkOverRestart},
		{"a lease goes on over a restart", testLeaseOverRestart},
		{"the bus works after a restart", testBusAfterRestart},
	} {
		t.Run(one.name, func(t *testing.T) {
			one.run(t, newFixture(t, backend))
		})
	}
}

func newFixture(t *testing.T, b *Backend) *fixture {
	return &fixture{backend: b, client: client(t, b), name: fmt.Sprintf("toolset:case-%d:requests", time.Now().UnixNano())}
}

// client connects, and closes when the case ends.
func client(t *testing.T, b *Backend) stream.Client {
	t.Helper()
	c := b.Client(t)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("closing a client: %v", err)
		}
	})
	return c
}

// within returns a context that bounds what a case waits for.
func within(t *testing.T, limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// open opens the case's stream, which is destroyed when the case ends.
func (f *fixture) open(t *testing.T, c stream.Client, opts *stream.Options) stream.Stream {
	t.Helper()
	s, err := c.Stream(within(t, wait), f.name, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		if err := s.Destroy(ctx); err != nil && !errors.Is(err, stream.ErrClosed) {
			t.Errorf("destroying the stream: %v", err)
		}
	})
	return s
}

func sink(t *testing.T, s stream.Stream, opts *stream.SinkOptions) stream.Sink {
	t.Helper()
	k, err := s.Sink(within(t, wait), "provider", opts)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// add puts events with the payloads from, from+1, … below to.
func add(t *testing.T, s stream.Stream, from, to int) {
	t.Helper()
	if err := addAll(within(t, wait), s, from, to); err != nil {
		t.Fatal(err)
	}
}

func addAll(ctx context.Context, s stream.Stream, from, to int) error {
	for i := from; i < to; i++ {
		if _, err := s.Add(ctx, "call", fmt.Append(nil, i)); err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
	}
	return nil
}

func receive(t *testing.T, k stream.Sink) stream.Event {
	t.Helper()
	event, err := k.Receive(within(t, wait))
	if err != nil {
		t.Fatal(err)
	}
	return event
}

// nothing makes sure that no event comes for a while.
func nothing(t *testing.T, k stream.Sink, while time.Duration) {
	t.Helper()
	event, err := k.Receive(within(t, while))
	if err == nil {
		t.Fatalf("an event came: %q, delivery %d", event.Payload, event.Deliveries)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Receive = %v, want the end of the context", err)
	}
}

func ack(t *testing.T, event stream.Event) {
	t.Helper()
	if err := event.Ack(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// empty waits until a stream holds nothing.
func empty(t *testing.T, s stream.Stream) {
	t.Helper()
	eventually(t, func() (bool, string) {
		size, err := s.Size(within(t, wait))
		return err == nil && size == stream.Size{}, fmt.Sprintf("the stream holds %+v, %v", size, err)
	})
}

// eventually asks until done says so, and fails with what it said last.
func eventually(t *testing.T, done func() (bool, string)) {
	t.Helper()
	deadline := time.After(wait)
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		ok, said := done()
		if ok {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal(said)
		}
	}
}
