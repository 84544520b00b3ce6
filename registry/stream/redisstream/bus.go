package redisstream

import (
	"context"
	"sync"

	"github.com/toolcrib/toolcrib/registry/stream"
)

// Publish implements [stream.Bus].
func (c *Client) Publish(ctx context.Context, subject string, m stream.Message) error {
	if err := c.checkSubject(subject, m); err != nil {
		return err
	}
	_, err := c.publish(ctx, c.channels.subject(subject), frame{message: m})
	return err
}

// checkSubject returns an error for what must not be sent.
func (c *Client) checkSubject(subject string, m stream.Message) error {
	if err := stream.CheckName("subject", subject); err != nil {
		return err
	}
	return c.checkSend("message", m.Name, m.Payload)
}

// publish returns how many listen.
func (c *Client) publish(ctx context.Context, channel string, f frame) (int64, error) {
	if c.posts.down.Load() {
		return 0, stream.ErrUnavailable
	}
	value, err := c.posts.do(ctx, &command{args: []any{"PUBLISH", channel, f.encode()}})
	heard, _ := value.(int64)
	return heard, refusal(err)
}

// Subscribe implements [stream.Bus].
func (c *Client) Subscribe(ctx context.Context, subject string, handle func(stream.Message)) (stream.Subscription, error) {
	if err := stream.CheckName("subject", subject); err != nil {
		return nil, err
	}
	s := newSubscription(c, c.channels.subject(subject), func(f frame) { handle(f.message) })
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Respond implements [stream.Bus]. Whoever responds has a channel of their own, and whoever asks chooses one of them.
func (c *Client) Respond(ctx context.Context, subject string, answer func(context.Context, stream.Message) stream.Message) (stream.Subscription, error) {
	if err := stream.CheckName("subject", subject); err != nil {
		return nil, err
	}
	var running sync.WaitGroup
	places := make(chan struct{}, stream.MaxResponding)
	s := newSubscription(c, c.channels.responder(subject, newID()), func(f frame) {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			c.answer(f, answer(c.ctx, f.message))
		})
	})
	s.drains, s.last = true, running.Wait
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// answer sends an answer to whoever asked. One that cannot be sent is lost, as the bus may lose any message.
func (c *Client) answer(question frame, m stream.Message) {
	if len(m.Payload) > c.maxPayload {
		c.log.Warn("an answer is too large", "name", m.Name, "bytes", len(m.Payload))
		return
	}
	if _, err := c.publish(c.ctx, question.inbox, frame{number: question.number, message: m}); err != nil {
		c.log.Warn("an answer could not be sent", "name", m.Name, "err", err)
	}
}
