package provider

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/stream"
)

// attended is a client that takes announcements while a registry is there, and notes
// when.
type attended struct {
	stream.Client

	mu    sync.Mutex
	there bool
	took  []time.Time
}

func (a *attended) Request(context.Context, string, stream.Message) (stream.Message, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.there {
		return stream.Message{}, stream.ErrNoResponder
	}
	a.took = append(a.took, time.Now())
	payload, err := json.Marshal(registry.Admission{Status: registry.StatusServe})
	return stream.Message{Name: registry.MessageAnnounce, Payload: payload}, err
}

func (a *attended) attend(there bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.there, a.took = there, nil
}

func (a *attended) times() []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.took
}

// known begins the part of a worker that stays known to registries.
func known(t *testing.T) (*worker, *attended) {
	a := &attended{}
	w := &worker{client: a, toolset: "demo", instance: "i", contract: &registry.Contract{}, heard: make(chan struct{}, 1),
		greeted: make(chan struct{}, 1), renew: make(chan struct{}, 1), retired: make(chan struct{})}
	go func() {
		if err := w.stayKnown(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	return w, a
}

// A registry that starts has the workers back soon, however long none was there.
func TestGreetingEndsAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, a := known(t)
		for range 20 {
			a.attend(false)
			poke(w.renew)
			time.Sleep(5 * time.Minute)
			a.attend(true)
			poke(w.greeted)
			time.Sleep(firstPause)
			synctest.Wait()
			if n := len(a.times()); n != 1 {
				t.Fatalf("%d announcements %s after a registry began", n, firstPause)
			}
		}
	})
}

// A worker does not announce itself without end when registries greet without end, and
// soon when one greets after that.
func TestGreetingsAreSpaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, a := known(t)
		a.attend(true)
		const span = time.Minute
		for range span / time.Millisecond {
			poke(w.greeted)
			time.Sleep(time.Millisecond)
		}
		if n, most := len(a.times()), greetingsAtOnce+int(span/greetingsEvery); n > most+1 || n < most-1 {
			t.Errorf("%d announcements in %s, want about %d", n, span, most)
		}
		for range 3 {
			a.attend(true)
			began := time.Now()
			poke(w.greeted)
			time.Sleep(greetingsEvery)
			synctest.Wait()
			if len(a.times()) == 0 {
				t.Errorf("no announcement %s after a greeting", time.Since(began))
			}
		}
		time.Sleep(greetingsAtOnce * greetingsEvery)
		a.attend(true)
		for n := range greetingsAtOnce {
			poke(w.greeted)
			time.Sleep(firstPause)
			synctest.Wait()
			if got := len(a.times()); got != n+1 {
				t.Errorf("%d announcements after %d greetings", got, n+1)
			}
		}
	})
}
