package registry

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcrib/toolcrib/registry/stream"
)

// greeted is a client that notes when hello is said.
type greeted struct {
	stream.Client
	began time.Time

	mu sync.Mutex
	at []time.Duration
}

func (g *greeted) times() []time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.at)
}

func (g *greeted) Publish(_ context.Context, subject string, m stream.Message) error {
	if subject == HelloSubject("") && m.Name == MessageHello {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.at = append(g.at, time.Since(g.began))
	}
	return nil
}

// Workers whose connections come back after a registry began are asked to announce
// themselves, for a while.
func TestHelloAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &greeted{began: time.Now()}
		r := &Registry{client: g, started: time.Now()}
		r.ctx, r.stop = context.WithCancel(t.Context())
		defer r.stop()
		go r.helloAgain()
		time.Sleep(helloTime - time.Millisecond)
		synctest.Wait()
		if at := g.times(); len(at) != 4 || at[0] != helloFirst {
			t.Errorf("asked after %v", at)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if at := g.times(); len(at) != 5 || at[4] != helloTime {
			t.Errorf("asked after %v", at)
		}
	})
}
