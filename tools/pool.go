package tools

import (
	"sync"
	"sync/atomic"
	"time"
)

// pool lends goroutines that stay warm for a while, because starting one costs
// more than handing it work. The zero value is ready.
type pool struct {
	mu   sync.Mutex
	idle []*worker
}

// The bounds of a pool.
const (
	maxIdleWorkers = 64
	workerIdleTime = 200 * time.Millisecond
)

type worker struct{ work chan func() }

// do runs f on another goroutine.
func (p *pool) do(f func()) {
	p.mu.Lock()
	n := len(p.idle)
	if n == 0 {
		p.mu.Unlock()
		go p.serve(f)
		return
	}
	w := p.idle[n-1]
	p.idle = p.idle[:n-1]
	p.mu.Unlock()
	w.work <- f
}

func (p *pool) serve(f func()) {
	w := &worker{work: make(chan func())}
	timer := time.NewTimer(workerIdleTime)
	defer timer.Stop()
	for {
		f()
		if !p.park(w) {
			return
		}
		timer.Reset(workerIdleTime)
		select {
		case f = <-w.work:
		case <-timer.C:
			if p.leave(w) {
				return
			}
			f = <-w.work // somebody took this worker and is about to hand it work
		}
	}
}

// park makes w available, unless enough others are.
func (p *pool) park(w *worker) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) >= maxIdleWorkers {
		return false
	}
	p.idle = append(p.idle, w)
	return true
}

// leave takes w out of the pool, and reports false when it was lent out.
func (p *pool) leave(w *worker) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, other := range p.idle {
		if other == w {
			p.idle = append(p.idle[:i], p.idle[i+1:]...)
			return true
		}
	}
	return false
}

// lateness counts calls whose tool ignored the end of its context.
type lateness struct{ lingering, dropped atomic.Int64 }

// Lateness is how many calls were answered without their tool.
type Lateness struct {
	// Lingering is how many of them still run.
	Lingering int64
	// Dropped is how many results came too late and were dropped.
	Dropped int64
}

// Lateness returns the counts since the catalog was made.
func (c *catalog) Lateness() Lateness {
	return Lateness{Lingering: c.late.lingering.Load(), Dropped: c.late.dropped.Load()}
}
