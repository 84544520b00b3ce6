package redisstream

import (
	"context"
	"sync"

	"github.com/toolcrib/toolcrib/registry/stream"
)

// subscription takes what its ear hears, and hands it on in a goroutine of its own.
type subscription struct {
	client *Client
	ear    *ear
	handle func(frame)
	last   func()           // waits for what handle left running
	drains bool             // handles what it heard before it was closed
	direct func(frame) bool // handles at once, if it can without waiting; may be nil

	mu      sync.Mutex
	waiting []frame
	lost    bool
	closing bool
	news    chan struct{}
	ended   chan struct{}
	once    sync.Once
}

func newSubscription(c *Client, channel string, handle func(frame)) *subscription {
	s := &subscription{client: c, handle: handle, last: func() {}, news: make(chan struct{}, 1), ended: make(chan struct{})}
	s.ear = &ear{name: channel, hear: s.hear}
	return s
}

// start returns when the subscription misses nothing from then on.
func (s *subscription) start(ctx context.Context) error {
	if err := s.client.keep(s); err != nil {
		return err
	}
	go s.run()
	if err := s.client.hub.listen(ctx, s.ear); err != nil {
		s.finish()
		return err
	}
	return nil
}

func (s *subscription) hear(text string) {
	f, err := decodeFrame(text)
	if err != nil {
		s.client.log.Warn("a message on the bus is none of ours", "channel", s.ear.name)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closing:
		return
	case len(s.waiting) >= stream.MaxBuffered:
		if !s.lost {
			s.client.log.Warn("messages are lost, because their handler is slow", "channel", s.ear.name)
		}
		s.lost = true
		return
	}
	s.lost = false
	if s.direct != nil && len(s.waiting) == 0 && s.direct(f) {
		return
	}
	s.waiting = append(s.waiting, f)
	s.tell()
}

// tell wakes run. The caller holds mu.
func (s *subscription) tell() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

func (s *subscription) run() {
	defer close(s.ended)
	for {
		f, ok, open := s.next()
		if ok {
			s.handle(f)
			continue
		}
		if !open {
			return
		}
		<-s.news
	}
}

func (s *subscription) next() (f frame, ok, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 || s.closing && !s.drains {
		return frame{}, false, !s.closing
	}
	f = s.waiting[0]
	s.waiting[0] = frame{}
	if s.waiting = s.waiting[1:]; len(s.waiting) == 0 {
		s.waiting = nil
	}
	return f, true, true
}

// Close implements [stream.Subscription].
func (s *subscription) Close() error {
	s.once.Do(func() {
		if s.drains {
			s.client.hub.unlisten(s.ear)
		} else {
			s.client.hub.remove(s.ear)
		}
		s.finish()
	})
	return nil
}

func (s *subscription) finish() {
	s.mu.Lock()
	s.closing = true
	s.tell()
	s.mu.Unlock()
	<-s.ended
	s.last()
	s.client.forget(s)
}
