package registry

import (
	"context"
	"time"

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

// helloAgain says hello to workers that were not there yet.
func (r *Registry) helloAgain() {
	for pause, said := helloFirst, time.Duration(0); said < helloTime; pause *= 2 {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-r.ctx.Done():
			timer.Stop()
			return
		}
		said += pause
		if err := r.hello(r.ctx); err != nil && r.ctx.Err() == nil {
			r.log.Debug("workers cannot be asked to announce themselves, which they do in time", "error", err)
		}
	}
}
