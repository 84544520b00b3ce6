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
	fresh    bool          // the next answer is to the subscription to all channels at once on a new connection
	orders   []order       // for Redis, in the order in which it is to confirm them
	sent     []order       // of them, those that it has not answered
	news     chan struct{} // has room for one: there are orders
	broken   chan struct{} // closed and made anew when the connection broke or there is still none
	running  sync.WaitGroup
	runs     bool
}

// order subscribes to a channel or ends that.
type order struct {
	name      string
	subscribe bool
}

// channel is one that the client listens to.
type channel struct {
	ears    map[*ear]struct{}
	leaving []*ear        // hear on until Redis sends no more
	ready   chan struct{} // closed when Redis said that it sends what is published from now on
	waits   []wait        // for what Redis is to confirm, in that order
	lost    error         // says that Redis no longer permits it
	later   bool          // it is to be subscribed to again after a while
}

// wait is for Redis to confirm that it began or ended to send what is published on a channel.
type wait struct {
	done  chan struct{}
	begin bool
}

// relisten is after how long a channel is subscribed to again that Redis no longer permitted.
const relisten = 5 * time.Second

// ear hears what is published on a channel.
type ear struct {
	name   string
	hear   func(text string) // must not block
	denied error             // Redis does not permit it; the hub's mu guards it
}

func newHub(ctx context.Context, client *redis.Client, log *slog.Logger) *hub {
	return &hub{ctx: ctx, log: log, sub: client.Subscribe(ctx), channels: map[string]*channel{}, news: make(chan struct{}, 1), broken: make(chan struct{})}
}

// listen lets an ear hear, and returns when it misses nothing from then on.
func (h *hub) listen(ctx context.Context, e *ear) error { return h.listenUnless(ctx, e, nil) }

// listenNow is listen that does not wait for a connection where there is none.
func (h *hub) listenNow(ctx context.Context, e *ear) error {
	h.mu.Lock()
	broken := h.broken
	h.mu.Unlock()
	return h.listenUnless(ctx, e, broken)
}

func (h *hub) listenUnless(ctx context.Context, e *ear, broken <-chan struct{}) error {
	select {
	case <-h.add(e):
		return h.joined(e)
	case <-broken:
		h.remove(e)
		return stream.ErrUnavailable
	case <-ctx.Done():
		h.remove(e)
		return unavailable(ctx.Err())
	case <-h.ctx.Done():
		return stream.ErrClosed
	}
}

// joined returns why Redis does not let an ear hear that was to.
func (h *hub) joined(e *ear) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.channels[e.name]; e.denied == nil && c != nil && c.lost != nil {
		delete(c.ears, e)
		return c.lost
	}
	return e.denied
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
		c.waits = append(c.waits, wait{c.ready, true})
		h.order(order{e.name, true})
	}
	c.ears[e] = struct{}{}
	return c.ready
}

// order gives an order. The caller holds mu.
func (h *hub) order(o order) {
	h.orders = append(h.orders, o)
	select {
	case h.news <- struct{}{}:
	default:
	}
	if !h.runs && h.ctx.Err() == nil {
		h.runs = true
		h.running.Go(h.carryOut)
	}
}

// carryOut passes orders on to Redis. The first lets receive begin, since there is nothing to receive before.
func (h *hub) carryOut() {
	var pause backoff
	var unsent []string
	for first := true; ; {
		for _, o := range h.takeOrders() {
			if !h.send(o) && o.subscribe {
				unsent = append(unsent, o.name)
			}
			if first {
				first = false
				h.running.Go(h.receive)
			}
		}
		if len(unsent) > 0 {
			if !pause.wait(h.ctx) {
				return
			}
			h.again(unsent)
			unsent = nil
			continue
		}
		pause.reset()
		select {
		case <-h.news:
		case <-h.ctx.Done():
			return
		}
	}
}

// send sends an order, and reports whether it could. One that it could not send is carried out on the next connection,
// unless that one was there before the order was noted.
func (h *hub) send(o order) bool {
	h.mu.Lock()
	h.sent = append(h.sent, o)
	h.mu.Unlock()
	tell := h.sub.Unsubscribe
	if o.subscribe {
		tell = h.sub.Subscribe
	}
	if tell(h.ctx, o.name) != nil {
		h.lose()
		return false
	}
	return true
}

// again orders the subscriptions to channels that are waited for and were not confirmed.
func (h *hub) again(names []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range names {
		if c := h.channels[name]; c != nil && (c.begins() || c.lost != nil && len(c.ears) > 0) {
			h.order(order{name, true})
		}
	}
}

// begins reports whether the subscription that the channel's ears need is not confirmed.
func (c *channel) begins() bool {
	return len(c.ears) > 0 && slices.ContainsFunc(c.waits, func(w wait) bool { return w.done == c.ready })
}

func (h *hub) takeOrders() []order {
	h.mu.Lock()
	defer h.mu.Unlock()
	orders := h.orders
	h.orders = nil
	return orders
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
	done := make(chan struct{})
	c := h.channels[e.name]
	if c == nil {
		close(done)
		return done
	}
	if delete(c.ears, e); len(c.ears) > 0 {
		close(done)
		return done
	}
	c.leaving = append(c.leaving, e)
	c.waits = append(c.waits, wait{done, false})
	h.order(order{e.name, false})
	return done
}

// receive hands on what Redis sends, until the client's time is over.
func (h *hub) receive() {
	var pause backoff
	for h.ctx.Err() == nil {
		got, err := h.sub.ReceiveTimeout(h.ctx, 0)
		if err == nil {
			pause.reset()
			h.dispatch(got)
			continue
		}
		if _, plain := err.(redis.Error); plain { //nolint:errorlint // One that is wrapped refused the connection.
			h.refuse(err)
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
		h.confirm(order{got.Channel, got.Kind == "subscribe"})
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

// confirm notes that Redis carried out an order, and so has answered those that were sent before it.
func (h *hub) confirm(o order) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at := slices.Index(h.sent, o); at >= 0 {
		h.fresh, h.sent = false, h.sent[at+1:]
	}
	c := h.channels[o.name]
	if c == nil {
		return
	}
	if o.subscribe && c.lost != nil {
		c.lost = nil
		h.log.Info("Redis lets this process listen again", "channel", o.name)
	}
	if len(c.waits) == 0 || c.waits[0].begin != o.subscribe {
		if !o.subscribe && len(c.ears) > 0 && c.lost == nil && !c.begins() {
			h.order(order{o.name, true}) // It was permitted between a refusal and this.
		}
		return // Nobody waits for what a new connection or a refusal made necessary.
	}
	close(c.waits[0].done)
	c.waits = c.waits[1:]
	h.tidy(o.name, c)
}

// refuse takes it that Redis does not let the client listen to a channel: that of the oldest order that it has not answered.
// Where all channels were subscribed to at once on a new connection, it is asked for each alone.
func (h *hub) refuse(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fresh || len(h.sent) == 0 {
		h.fresh = false
		for name, c := range h.channels {
			if len(c.ears) > 0 {
				h.order(order{name, true})
			}
		}
		return
	}
	name := h.sent[0].name
	h.sent = h.sent[1:]
	err = denied([]any{"SUBSCRIBE", name}, err)
	h.order(order{name, false}) // or it would be subscribed to with all others on the next connection
	c := h.channels[name]
	switch {
	case c == nil:
	case c.begins():
		h.log.Error("Redis does not let this process listen", "channel", name, "err", err)
		h.deny(name, c, err)
	case len(c.ears) > 0:
		h.lack(name, c, err)
	}
}

// deny ends the ears of a channel that Redis does not permit. The caller holds mu.
func (h *hub) deny(name string, c *channel, err error) {
	for e := range c.ears {
		e.denied = err
	}
	for _, w := range c.waits {
		close(w.done)
	}
	delete(h.channels, name)
}

// lack keeps the ears of a channel that Redis no longer permits, which hear again once it does. The caller holds mu.
func (h *hub) lack(name string, c *channel, err error) {
	if c.lost == nil {
		h.log.Error("Redis no longer lets this process listen", "channel", name, "err", err)
	}
	c.lost = err
	if c.later {
		return
	}
	c.later = true
	time.AfterFunc(relisten, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		c.later = false
		if h.channels[name] == c && c.lost != nil && len(c.ears) > 0 {
			h.order(order{name, true})
		}
	})
}

// lose notes that the connection broke, on which nothing more is confirmed. What is listened to is subscribed to on the
// next connection.
func (h *hub) lose() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.broken)
	h.broken = make(chan struct{})
	h.sent, h.fresh = nil, true
	for name, c := range h.channels {
		begins := c.begins()
		for _, w := range c.waits {
			if !begins || w.done != c.ready {
				close(w.done)
			}
		}
		if c.waits = nil; begins {
			c.waits = []wait{{c.ready, true}}
		}
		h.tidy(name, c)
	}
}

// tidy forgets a channel that nobody hears. The caller holds mu.
func (h *hub) tidy(name string, c *channel) {
	if len(c.waits) > 0 {
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
	h.runs = true // so that an order begins nothing more
	h.mu.Unlock()
	h.running.Wait()
}
