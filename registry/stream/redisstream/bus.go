package redisstream

import (
	"context"
	"time"

	"github.com/toolcrib/toolcrib/internal/crew"
	"github.com/toolcrib/toolcrib/registry/stream"
)

// Publish implements [stream.Bus].
func (c *Client) Publish(ctx context.Context, subject string, m stream.Message) error {
	if err := c.checkSubject(subject, m); err != nil {
		return err
	}
	return c.publish(ctx, c.channels.subject(subject), frame{message: m})
}

// checkSubject returns an error for what must not be sent.
func (c *Client) checkSubject(subject string, m stream.Message) error {
	if err := stream.CheckName("subject", subject); err != nil {
		return err
	}
	return c.checkSend("message", m.Name, m.Payload)
}

// publish has a message sent, and does not wait for Redis to say so. One that cannot be sent is lost, as the bus may lose
// any message.
func (c *Client) publish(ctx context.Context, channel string, f frame) error {
	command := publication(channel, f)
	command.until = time.Now().Add(busTime)
	return c.posts.post(ctx, command)
}

// busTime bounds how long a message of the bus waits to be sent.
const busTime = 5 * time.Second

func publication(channel string, f frame) *command {
	return &command{args: []any{"PUBLISH", channel, f.encode()}}
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
	var running crew.Crew
	places := make(chan struct{}, stream.MaxResponding)
	begin := func(f frame) {
		running.Go(func() {
			defer func() { <-places }()
			c.answer(f, answer(c.ctx, f.message))
		})
	}
	s := newSubscription(c, c.channels.responder(subject, newID()), func(f frame) {
		if !c.mayAnswer(subject, f) {
			return
		}
		places <- struct{}{}
		begin(f)
	})
	s.direct = func(f frame) bool {
		if !c.mayAnswer(subject, f) {
			return true
		}
		select {
		case places <- struct{}{}:
			begin(f)
			return true
		default:
			return false
		}
	}
	s.drains, s.last = true, running.Wait
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// mayAnswer reports whether the answer to a question is to go to an inbox, and not to a channel on which whoever asks may
// have no right to publish what this client has.
func (c *Client) mayAnswer(subject string, question frame) bool {
	if c.channels.isInbox(question.inbox) {
		return true
	}
	c.log.Warn("a question is not answered, as its answer is to go to a channel that is no inbox", "subject", subject, "channel", question.inbox)
	return false
}

// answer sends an answer to whoever asked. One that cannot be sent is lost, as the bus may lose any message.
func (c *Client) answer(question frame, m stream.Message) {
	if len(m.Payload) > c.maxPayload {
		c.log.Warn("an answer is too large", "name", m.Name, "bytes", len(m.Payload))
		return
	}
	if err := c.publish(c.ctx, question.inbox, frame{number: question.number, message: m}); err != nil {
		c.log.Warn("an answer could not be sent", "name", m.Name, "err", err)
	}
}
