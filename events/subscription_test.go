package events_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/toolcrib/toolcrib/events"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// burst publishes notes with the given numbers.
func burst(t *testing.T, bus *events.Bus, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		if err := bus.Publish(context.Background(), events.Event{Type: "note.made", Payload: note{N: n}}); err != nil {
			t.Fatal(err)
		}
	}
}

// arrival is an event and when its reader had it.
type arrival struct {
	n  int
	at time.Duration
}

// TestReaderIsWokenOnceForMany: a reader that waits gets the first event at
// once, those that come soon after it together, and again one at once when
// nothing came for a while.
func TestReaderIsWokenOnceForMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := events.NewBus(registry(t))
		sub := bus.Subscribe(events.Filter{}, nil)
		begin := time.Now()
		got := make(chan arrival, 100)
		go func() {
			defer close(got)
			for e := range sub.Events() {
				got <- arrival{e.Payload.(note).N, time.Since(begin)}
			}
		}()
		synctest.Wait() // the reader waits
		for n := range 10 {
			burst(t, bus, n, n+1)
			synctest.Wait() // and waits again, if it was woken
		}
		if len(got) != 1 {
			t.Errorf("the reader has %d events at once, want the first alone", len(got))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if len(got) != 10 {
			t.Fatalf("the reader has %d events, want 10", len(got))
		}
		for n := range 10 {
			a := <-got
			if a.n != n || n == 0 && a.at != 0 || n > 0 && (a.at == 0 || a.at > time.Millisecond) {
				t.Errorf("event %d came as number %d after %v", a.n, n, a.at)
			}
		}
		burst(t, bus, 10, 11)
		synctest.Wait()
		if a := <-got; a.n != 10 || a.at != time.Second {
			t.Errorf("after a quiet second event %d came after %v", a.n, a.at)
		}
		sub.Close()
		<-got
	})
}

// TestNothingIsHeldBackWhenAskedFor: a reader that looks without waiting, and
// one that reads after Close, find all that was published.
func TestNothingIsHeldBackWhenAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := events.NewBus(registry(t))
		sub := bus.Subscribe(events.Filter{}, &events.SubscribeOptions{Buffer: 8})
		for n := range 6 {
			burst(t, bus, n, n+1)
			select {
			case e := <-sub.Events():
				if e.Payload.(note).N != n {
					t.Errorf("got %d, want %d", e.Payload.(note).N, n)
				}
			default:
				t.Errorf("event %d is not there", n)
			}
		}
		burst(t, bus, 6, 17)
		if sub.Missed() != 3 {
			t.Errorf("missed %d, want 3: those in the channel and those held back share the room", sub.Missed())
		}
		<-sub.Events()
		sub.Close()
		want := 7
		for e := range sub.Events() {
			if m, ok := e.Payload.(events.MissedPayload); ok {
				if m.Count != 3 || want != 14 {
					t.Errorf("a report of %d before event %d", m.Count, want)
				}
				want = -1
				continue
			}
			if e.Payload.(note).N != want {
				t.Errorf("got %d, want %d", e.Payload.(note).N, want)
			}
			want++
		}
		if want != -1 {
			t.Error("the report of what was missed did not come last")
		}
	})
}

// TestLoudPublisherWakesSooner: what is held back never fills more than half of
// the room.
func TestLoudPublisherWakesSooner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := events.NewBus(registry(t))
		sub := bus.Subscribe(events.Filter{}, &events.SubscribeOptions{Buffer: 4})
		read := make(chan int)
		go func() {
			n := 0
			for range sub.Events() {
				n++
			}
			read <- n
		}()
		for n := range 100 {
			synctest.Wait()
			burst(t, bus, n, n+1)
		}
		if sub.Missed() != 0 {
			t.Errorf("missed %d though the reader kept up", sub.Missed())
		}
		sub.Close()
		if n := <-read; n != 100 {
			t.Errorf("read %d, want 100", n)
		}
	})
}
