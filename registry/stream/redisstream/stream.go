package redisstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/toolcrib/toolcrib/registry/stream"
)

// queue is a [stream.Stream].
type queue struct {
	client *Client
	name   string
	keys   keys
	most   int // events, where Redis has no bound, because it lost it
	ttl    time.Duration
}

var _ stream.Stream = (*queue)(nil)

// Stream implements [stream.Client]. Redis makes a stream when something is put into it.
func (c *Client) Stream(ctx context.Context, name string, opts *stream.Options) (stream.Stream, error) {
	if err := stream.CheckName("stream", name); err != nil {
		return nil, err
	}
	bounds, err := opts.Resolved()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(c.isClosed(), ctx.Err()); err != nil {
		return nil, err
	}
	if bounds.TTL > 0 {
		bounds.MaxEvents = stream.DefaultMaxEvents
	}
	q := &queue{client: c, name: name, keys: keysOf(name), most: bounds.MaxEvents, ttl: bounds.TTL}
	if opts == nil || q.ttl > 0 {
		return q, nil
	}
	set := &command{args: []any{"HSET", q.keys.state, "events", bounds.MaxEvents}, waits: true, again: true}
	if _, err := c.commands.do(ctx, set); err != nil {
		return nil, refusal(err)
	}
	return q, nil
}

// Name implements [stream.Stream].
func (q *queue) Name() string { return q.name }

// run runs a script on the stream.
func (q *queue) run(ctx context.Context, s script, args ...any) (any, error) {
	return q.send(ctx, s.call(q.keys, args...))
}

// rerun is run for a script that does no harm when it is carried out twice.
func (q *queue) rerun(ctx context.Context, s script, args ...any) (any, error) {
	command := s.call(q.keys, args...)
	command.again = true
	return q.send(ctx, command)
}

func (q *queue) send(ctx context.Context, c *command) (any, error) {
	value, err := q.client.commands.do(ctx, c)
	return value, refusal(err)
}

// Add implements [stream.Stream].
func (q *queue) Add(ctx context.Context, event string, payload []byte) (string, error) {
	return q.AddNoted(ctx, event, payload, "")
}

// AddNoted implements [stream.Annotator].
func (q *queue) AddNoted(ctx context.Context, event string, payload []byte, note string) (string, error) {
	if err := q.client.checkSend("event", event, payload); err != nil {
		return "", err
	}
	if err := stream.CheckNote(note); err != nil {
		return "", err
	}
	value, err := q.run(ctx, q.client.scripts.add, event, payload, q.ttl.Milliseconds(), q.most, note)
	if outOfMemory(err) {
		return "", fmt.Errorf("%w: Redis has no memory left", stream.ErrNoRoom)
	}
	if err != nil {
		return "", err
	}
	switch value := value.(type) {
	case string:
		return value, nil
	case int64:
		return "", fmt.Errorf("%w: stream %q holds %d events", stream.ErrFull, q.name, value)
	}
	return "", fmt.Errorf("redisstream: stream %q: an answer of another kind: %T", q.name, value)
}

// RemoveSink implements [stream.Stream].
func (q *queue) RemoveSink(ctx context.Context, name string) error {
	if err := stream.CheckName("sink", name); err != nil {
		return err
	}
	if err := q.client.isClosed(); err != nil {
		return err
	}
	_, err := q.rerun(ctx, q.client.scripts.remove, escape(name))
	return err
}

// Size implements [stream.Stream].
func (q *queue) Size(ctx context.Context) (stream.Size, error) {
	if err := q.client.isClosed(); err != nil {
		return stream.Size{}, err
	}
	value, err := q.rerun(ctx, q.client.scripts.size)
	if err != nil {
		return stream.Size{}, err
	}
	all := count(value, 0)
	held := min(count(value, 1), all) // What vanished may still be noted as delivered.
	return stream.Size{Waiting: all - held, Held: held}, nil
}

// count is a number in an answer that is a list.
func count(value any, at int) int {
	list, _ := value.([]any)
	if at >= len(list) {
		return 0
	}
	n, _ := list[at].(int64)
	return int(n)
}

// Destroy implements [stream.Stream].
func (q *queue) Destroy(ctx context.Context) error {
	if err := q.client.isClosed(); err != nil {
		return err
	}
	_, err := q.send(ctx, &command{args: []any{"DEL", q.keys.stream, q.keys.state, q.keys.later}, waits: true, again: true})
	return err
}
