package redisstream

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/toolcrib/toolcrib/registry/stream"
)

// knownFor is how long it is remembered who responds to a subject. Whoever is gone is noticed at once, and whoever is
// new gets questions after that time.
const knownFor = 5 * time.Second

// asks are the questions of a client that wait for their answers.
type asks struct {
	client *Client

	opening sync.Mutex
	inbox   *ear // nil until the first question

	mu      sync.Mutex
	turn    int // grows with each question, so that those who respond take turns
	waiting map[string]chan stream.Message
	known   map[string]*responders
	closed  chan struct{}
}

// responders are the channels of those who respond to a subject.
type responders struct {
	channels []string
	next     int
	until    time.Time
}

func newAsks(c *Client) *asks {
	return &asks{client: c, waiting: map[string]chan stream.Message{}, known: map[string]*responders{}, closed: make(chan struct{})}
}

// Request implements [stream.Bus].
func (c *Client) Request(ctx context.Context, subject string, m stream.Message) (stream.Message, error) {
	if err := c.checkSubject(subject, m); err != nil {
		return stream.Message{}, err
	}
	if err := c.asks.open(ctx); err != nil {
		return stream.Message{}, err
	}
	number, answer := c.asks.add()
	defer c.asks.remove(number)
	question := frame{inbox: c.asks.inbox.name, number: number, message: m}
	for {
		channel, err := c.asks.choose(ctx, subject)
		if err != nil {
			return stream.Message{}, err
		}
		got, heard, err := c.asks.ask(ctx, channel, question, answer)
		if heard || err != nil {
			return got, err
		}
		c.asks.strike(subject, channel)
	}
}

// ask sends a question to one who responds, and waits for the answer. heard is false when nobody listens there any more.
func (a *asks) ask(ctx context.Context, channel string, question frame, answer <-chan stream.Message) (got stream.Message, heard bool, err error) {
	posts := a.client.posts
	failed := make(chan error, 1)
	command := publication(channel, question)
	command.failed = func(err error) { failed <- err }
	if err := posts.post(ctx, command); err != nil {
		return got, false, err
	}
	select {
	case got = <-answer:
		return got, true, nil
	case err := <-failed:
		return got, false, refusal(err)
	case <-ctx.Done():
		command.givenUp.Store(true)
		if posts.down.Load() {
			return got, false, unavailable(ctx.Err())
		}
		return got, false, ctx.Err()
	case <-a.closed:
		return got, false, stream.ErrClosed
	}
}

// open listens for answers from the first question on.
func (a *asks) open(ctx context.Context) error {
	a.opening.Lock()
	defer a.opening.Unlock()
	if a.inbox != nil {
		return nil
	}
	// Where there is no connection this says so at once.
	if _, err := a.client.posts.do(ctx, &command{args: []any{"PING"}}); err != nil {
		return refusal(err)
	}
	inbox := &ear{name: a.client.inbox, hear: a.hear}
	if err := a.client.hub.listenNow(ctx, inbox); err != nil {
		return err
	}
	a.inbox = inbox
	return nil
}

func (a *asks) hear(text string) {
	f, err := decodeFrame(text)
	if err != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if answer, ok := a.waiting[f.number]; ok {
		answer <- f.message
		delete(a.waiting, f.number)
	}
}

func (a *asks) add() (number string, answer <-chan stream.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turn++
	number = rand.Text() // Nobody answers who did not get the question.
	waiting := make(chan stream.Message, 1)
	a.waiting[number] = waiting
	return number, waiting
}

func (a *asks) remove(number string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waiting, number)
}

// choose takes turns among those who respond.
func (a *asks) choose(ctx context.Context, subject string) (string, error) {
	if channel, ok := a.choice(subject); ok {
		return channel, nil
	}
	value, err := a.client.posts.do(ctx, &command{args: []any{"PUBSUB", "CHANNELS", a.client.channels.responders(subject)}})
	if err != nil {
		return "", refusal(err)
	}
	found := texts(value)
	if len(found) == 0 {
		return "", fmt.Errorf("%w to %q", stream.ErrNoResponder, subject)
	}
	slices.Sort(found)
	a.mu.Lock()
	a.known[subject] = &responders{channels: found, next: a.turn % len(found), until: time.Now().Add(knownFor)}
	a.mu.Unlock()
	channel, _ := a.choice(subject)
	return channel, nil
}

func (a *asks) choice(subject string) (string, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.known[subject]
	if r == nil || len(r.channels) == 0 || time.Now().After(r.until) {
		delete(a.known, subject)
		return "", false
	}
	r.next = (r.next + 1) % len(r.channels)
	return r.channels[r.next], true
}

func (a *asks) strike(subject, channel string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.known[subject]; r != nil {
		r.channels = slices.DeleteFunc(r.channels, func(c string) bool { return c == channel })
	}
}

// fail ends all questions, when the client is closed.
func (a *asks) fail() { close(a.closed) }

// texts are the elements of an answer that are text.
func texts(value any) []string {
	list, _ := value.([]any)
	found := make([]string, 0, len(list))
	for _, item := range list {
		if text, ok := item.(string); ok {
			found = append(found, text)
		}
	}
	return found
}
