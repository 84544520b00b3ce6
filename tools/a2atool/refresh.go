package a2atool

import (
	"context"
	"sync"
	"time"
)

// refreshWait bounds one reading of the card beside the calls.
const refreshWait = 30 * time.Second

// refresh has the card read again when its time to live has ended. It is safe
// for concurrent use.
type refresh struct {
	mu      sync.Mutex
	tell    func()
	timer   *time.Timer
	stopped bool
}

func (r *refresh) onChange(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tell = f
}

// after has f run once after d, in place of what was due before.
func (r *refresh) after(d time.Duration, f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
	}
	if !r.stopped {
		r.timer = time.AfterFunc(d, f)
	}
}

func (r *refresh) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	if r.timer != nil {
		r.timer.Stop()
	}
}

func (r *refresh) changed() {
	r.mu.Lock()
	tell := r.tell
	r.mu.Unlock()
	if tell != nil {
		tell()
	}
}

// schedule has the card read again after its time to live.
func (p *Peer) schedule() {
	if p.cfg.CardTTL > 0 {
		p.refresh.after(p.cfg.CardTTL, func() { p.aside(p.reread) })
	}
}

// reread reads the card and tells of a change. When the card cannot be read,
// what was known of the agent stays.
func (p *Peer) reread() {
	ctx, cancel := context.WithTimeout(p.life, refreshWait)
	defer cancel()
	a, err := p.readAgent(ctx)
	switch {
	case p.life.Err() != nil:
	case err != nil:
		p.note(err)
		p.log.Warn("the agent's card cannot be read again", "error", err.Error())
		p.schedule()
	case p.adopt(a):
		p.log.Info("the agent's card has changed")
		p.refresh.changed()
	}
}
