package redisstream

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/toolcrib/toolcrib/registry/stream"
)

// hub listens, on one connection, to all channels that the parts of a client listen to.
type hub struct {
	ctx context.Context // ends with the client
	log *slog.Logger
	sub *redis.PubSub

	mu       sync.Mutex
	channels map[string]*channel
	running  bool
	ended    chan struct{}
}

// channel is one that the client listens to.
type channel struct {
	ears    map[*ear]struct{}
	leaving []*ear        // hear on until Redis sends no more
	ready   chan struct{} // closed when Redis said that it sends what is published from now on
	signals []chan struct{}
}

// ear hears what is published on a channel.
type ear struct {
	name string
	hear func(text string) // must not block
}

func newHub(ctx context.Context, client *redis.Client, log *slog.Logger) *hub {
	return &hub{ctx: ctx, log: log, sub: client.Subscribe(ctx), channels: map[string]*channel{}, ended: make(chan struct{})}
}

// listen lets an ear hear, and returns when it misses nothing from then on.
func (h *hub) listen(ctx context.Context, e *ear) error {
	select {
	case <-h.add(e):
		return nil
	case <-ctx.Done():
		h.remove(e)
		return unavailable(ctx.Err())
	case <-h.ctx.Done():
		return stream.ErrClosed
	}
}

// add lets an ear hear, and does not wait.
func (h *hub) add(e *ear) (ready <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.channels[e.name]
	if c == nil {
		c = &channel{ears: map[*ear]struct{}{}}
		h.channels[e.name] = c
	}
	if len(c.ears) == 0 {
		c.ready = make(chan struct{})
		c.signals = append(c.signals, c.ready)
		// Where there is no connection the channel is noted, and subscribed to when there is one.
		_ = h.sub.Subscribe(h.ctx, e.name)
	}
	c.ears[e] = struct{}{}
	if !h.running {
		h.running = true
		go h.run()
	}
	return c.ready
}

// unlisten ends an ear's hearing. For the last ear of a channel it waits until Redis sends no more, a second at most.
func (h *hub) unlisten(e *ear) {
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-h.remove(e):
	case <-timer.C:
	case <-h.ctx.Done():
	}
}

// remove ends an ear's hearing, and for the last of its channel lets it hear on until the returned channel is closed.
func (h *hub) remove(e *ear) (gone <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	signal := make(chan struct{})
	c := h.channels[e.name]
	if c == nil {
		close(signal)
		return signal
	}
	if delete(c.ears, e); len(c.ears) > 0 {
		close(signal)
		return signal
	}
	c.leaving = append(c.leaving, e)
	c.signals = append(c.signals, signal)
	_ = h.sub.Unsubscribe(h.ctx, e.name) // Without a connection nothing comes anyway.
	return signal
}

func (h *hub) run() {
	defer close(h.ended)
	var pause backoff
	for h.ctx.Err() == nil {
		got, err := h.sub.ReceiveTimeout(h.ctx, 0)
		if err == nil {
			pause.reset()
			h.dispatch(got)
			continue
		}
		if h.ctx.Err() == nil && pause.next == 0 {
			h.log.Warn("the connection to Redis broke; messages may be lost", "err", err)
		}
		h.lose()
		pause.wait(h.ctx)
	}
}

func (h *hub) dispatch(got any) {
	switch got := got.(type) {
	case *redis.Message:
		for _, e := range h.hearing(got.Channel) {
			e.hear(got.Payload)
		}
	case *redis.Subscription:
		h.confirm(got.Channel)
	}
}

func (h *hub) hearing(name string) []*ear {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.channels[name]
	if c == nil {
		return nil
	}
	return slices.AppendSeq(slices.Clone(c.leaving), maps.Keys(c.ears))
}

// confirm notes that Redis carried out the oldest subscription or its end that it has not confirmed.
func (h *hub) confirm(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.channels[name]
	if c == nil || len(c.signals) == 0 {
		return // Subscribed to again after the connection broke.
	}
	close(c.signals[0])
	c.signals = c.signals[1:]
	h.tidy(name, c)
}

// lose notes that the connection broke, on which nothing more is confirmed. What is listened to is subscribed to on the
// next connection.
func (h *hub) lose() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, c := range h.channels {
		var waits []chan struct{}
		for _, signal := range c.signals {
			if len(c.ears) > 0 && signal == c.ready {
				waits = append(waits, signal)
			} else {
				close(signal)
			}
		}
		c.signals = waits
		h.tidy(name, c)
	}
}

// tidy forgets a channel that nobody hears. The caller holds mu.
func (h *hub) tidy(name string, c *channel) {
	if len(c.signals) > 0 {
		return
	}
	c.leaving = nil
	if len(c.ears) == 0 {
		delete(h.channels, name)
	}
}

// close ends the connection. The hub's context has ended.
func (h *hub) close() {
	_ = h.sub.Close() // It fails only for a connection that is gone.
	h.mu.Lock()
	running := h.running
	h.running = true
	h.mu.Unlock()
	if running {
		<-h.ended
	}
}
