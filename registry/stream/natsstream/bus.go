package natsstream

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/toolcrib/toolcrib/internal/crew"
	"github.com/toolcrib/toolcrib/registry/stream"
)

// nameHeader holds the name of an answer. That of a message or question is in
// its subject.
const nameHeader = "Toolcrib-Name"

// bufferedBytes bounds the messages that wait for the handler of a subscription.
const bufferedBytes = 256 << 20

func (c *Client) busSubject(kind, subject, name string) string {
	return c.prefix + "." + kind + "." + subjectOf(subject) + "." + name
}

// Publish implements [stream.Bus].
func (c *Client) Publish(_ context.Context, subject string, m stream.Message) error {
	if err := c.checkMessage(subject, m); err != nil {
		return err
	}
	if !c.conn.IsConnected() {
		return stream.ErrUnavailable
	}
	return sendError(c.conn.Publish(c.busSubject("bus", subject, Token(m.Name)), m.Payload))
}

func (c *Client) checkMessage(subject string, m stream.Message) error {
	if err := stream.CheckName("subject", subject); err != nil {
		return err
	}
	return c.checkSend("message", m.Name, m.Payload)
}

// Request implements [stream.Bus].
func (c *Client) Request(ctx context.Context, subject string, m stream.Message) (stream.Message, error) {
	if err := c.checkMessage(subject, m); err != nil {
		return stream.Message{}, err
	}
	if err := c.connected(ctx); err != nil {
		return stream.Message{}, err
	}
	got, err := c.asks.ask(ctx, &nats.Msg{Subject: c.busSubject("ask", subject, Token(m.Name)), Data: m.Payload})
	if err != nil {
		return stream.Message{}, err
	}
	return stream.Message{Name: got.Header.Get(nameHeader), Payload: got.Data}, nil
}

// Subscribe implements [stream.Bus].
func (c *Client) Subscribe(ctx context.Context, subject string, handle func(stream.Message)) (stream.Subscription, error) {
	s := &subscription{client: c, handle: func(msg *nats.Msg) { handle(messageOf(msg)) }}
	return s, s.start(ctx, "bus", subject, "")
}

// Respond implements [stream.Bus].
func (c *Client) Respond(ctx context.Context, subject string, answer func(context.Context, stream.Message) stream.Message) (stream.Subscription, error) {
	s := &subscription{client: c}
	slots := make(chan struct{}, stream.MaxResponding)
	s.handle = func(msg *nats.Msg) {
		if !c.mayAnswer(msg.Reply) {
			c.log.Warn("a question is not answered, as its answer is to go to a subject that is no inbox", "subject", msg.Subject, "reply", msg.Reply)
			return
		}
		slots <- struct{}{}
		s.running.Go(func() {
			defer func() { <-slots }()
			c.reply(msg, answer(c.ctx, messageOf(msg)))
		})
	}
	return s, s.start(ctx, "ask", subject, "responders")
}

// mayAnswer reports whether an answer may go to a subject: not to one of the
// installation's or the server's own, on which whoever asks may have no right to
// publish what this client has.
func (c *Client) mayAnswer(subject string) bool {
	rest, own := strings.CutPrefix(subject, c.prefix+".")
	return subject != "" && subject[0] != '$' && (!own || strings.HasPrefix(rest, "inbox."))
}

// reply sends the answer to a question. Who asked learns of a failure when their
// context ends, but of an answer that is too large at once: by an empty answer
// without a name.
func (c *Client) reply(question *nats.Msg, m stream.Message) {
	msg := &nats.Msg{Subject: question.Reply, Data: m.Payload}
	if m.Name != "" {
		msg.Header = nats.Header{nameHeader: {m.Name}}
	}
	err := c.conn.PublishMsg(msg)
	if errors.Is(err, nats.ErrMaxPayload) {
		c.log.Warn("an answer is larger than the server takes", "bytes", len(m.Payload))
		err = c.conn.Publish(question.Reply, nil)
	}
	if err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		c.log.Warn("an answer could not be sent", "error", err)
	}
}

func messageOf(msg *nats.Msg) stream.Message {
	token := msg.Subject[strings.LastIndexByte(msg.Subject, '.')+1:]
	name, err := FromToken(token)
	if err != nil {
		name = token // Somebody else published it.
	}
	return stream.Message{Name: name, Payload: msg.Data}
}

// subscription is a [stream.Subscription].
type subscription struct {
	client  *Client
	handle  func(*nats.Msg)
	sub     *nats.Subscription
	running crew.Crew // answers that are made

	mu     sync.Mutex // held while handle runs
	closed bool
}

func (s *subscription) start(ctx context.Context, kind, subject, group string) error {
	if err := stream.CheckName("subject", subject); err != nil {
		return err
	}
	if err := s.client.connected(ctx); err != nil {
		return err
	}
	before := s.client.conn.LastError()
	sub, err := s.client.conn.QueueSubscribe(s.client.busSubject(kind, subject, "*"), group, s.receive)
	if err != nil {
		return sendError(err)
	}
	s.sub = sub
	if err := s.register(ctx, before); err != nil {
		sub.Unsubscribe() //nolint:errcheck // The server does not have it.
		return err
	}
	return nil
}

// register returns when the server knows of the subscription, or refused it after
// the connection's error of before.
func (s *subscription) register(ctx context.Context, before error) error {
	if err := s.sub.SetPendingLimits(stream.MaxBuffered, bufferedBytes); err != nil {
		return sendError(err)
	}
	if err := s.client.retry(ctx, func(ctx context.Context) error { return sendError(s.client.conn.FlushWithContext(ctx)) }); err != nil {
		return err
	}
	if err := deniedSince(s.client.conn, before, s.sub.Subject); err != nil {
		return err
	}
	return s.client.keep(s)
}

func (s *subscription) receive(msg *nats.Msg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.handle(msg)
	}
}

// Close implements [stream.Subscription].
func (s *subscription) Close() error {
	s.sub.Unsubscribe() //nolint:errcheck // It fails where there is nothing to end any more.
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.running.Wait()
	s.client.forget(s)
	return nil
}
