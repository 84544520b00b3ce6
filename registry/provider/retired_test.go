package provider_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/tools"
)

// slowly opens no stream before it may, and tells when the worker is asked to retire.
type slowly struct {
	stream.Client
	may, asked chan struct{}
	once       sync.Once
}

func (s *slowly) Stream(ctx context.Context, name string, opts *stream.Options) (stream.Stream, error) {
	<-s.may
	return s.Client.Stream(ctx, name, opts)
}

func (s *slowly) Respond(ctx context.Context, subject string, answer func(context.Context, stream.Message) stream.Message) (stream.Subscription, error) {
	return s.Client.Respond(ctx, subject, func(ctx context.Context, m stream.Message) stream.Message {
		if m.Name == registry.MessageRetire {
			s.once.Do(func() { close(s.asked) })
		}
		return answer(ctx, m)
	})
}

// A worker that is told to end while it is asked to retire, and before it has received
// anything, ends at once, and so the next contract serves.
func TestRetiredBeforeItServes(t *testing.T) {
	c := newCrib(t, nil)
	client := &slowly{Client: c.connect(), may: make(chan struct{}), asked: make(chan struct{})}
	stop := c.serveOn(client, "demo", serving(echo), provider.Options{})
	c.up("demo", 1)
	next := serving(echo)
	next.tools = append(next.tools, spec("demo.more", tools.SideEffectRead))
	c.serve("demo", next, provider.Options{})
	<-client.asked
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	close(client.may)
	if err := <-ended; err != nil && !errors.Is(err, provider.ErrSuperseded) {
		t.Error(err)
	}
	await(t, "the next contract serves", func() bool {
		s := c.reg.Toolsets()[0]
		return s.Revision == 2 && s.Up && !s.Changing
	})
}
