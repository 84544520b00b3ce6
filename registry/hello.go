package registry

import (
	"context"
	"time"

	"github.com/toolcrib/toolcrib/internal/wait"
	"github.com/toolcrib/toolcrib/registry/stream"
)

// A registry says hello when it begins, and again after helloFirst, twice that and
// so on, for helloTime in all. A stream server that begins with it has lost its
// connections, and workers that come back after the first hello have not heard it.
const (
	helloFirst = 500 * time.Millisecond
	helloTime  = 15500 * time.Millisecond
)

// hello asks the workers to announce themselves.
func (r *Registry) hello(ctx context.Context) error {
	return r.client.Publish(ctx, HelloSubject(r.opts.Namespace), stream.Message{Name: MessageHello})
}

// Readmit has all workers announce themselves again, as when Admit decides otherwise than
// before: one that is refused then finishes its calls and ends, and what a toolset was
// granted is replaced. It does not wait for that, which takes a second, or until the
// backend is reached.
func (r *Registry) Readmit() {
	r.background(func(ctx context.Context) {
		for pause := helloFirst; r.hello(ctx) != nil && wait.For(ctx, pause); {
			pause = min(2*pause, helloTime)
		}
		r.helloAgain()
	})
}

// helloAgain says hello to workers that were not there yet.
func (r *Registry) helloAgain() {
	for pause, said := helloFirst, time.Duration(0); said < helloTime && wait.For(r.ctx, pause); pause *= 2 {
		said += pause
		if err := r.hello(r.ctx); err != nil && r.ctx.Err() == nil {
			r.log.Debug("workers cannot be asked to announce themselves, which they do in time", "error", err)
		}
	}
}
