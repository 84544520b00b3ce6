package natsstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolcrib/toolcrib/registry/stream"
)

// queue is a [stream.Stream] on a JetStream stream of its own, or, when it is
// short-lived, on a part of the one that all such streams share.
type queue struct {
	client  *Client
	name    string
	token   string
	inside  string // the name of the JetStream stream
	subject string // of events, up to the event's name
	plain   string // the same with the name as one token, which the stream takes too
	opts    stream.Options
	keeps   bool         // a stream that is there stays as it is
	most    atomic.Int64 // events of the stream, where it must be made
}

// maxStreamToken is the part of a JetStream stream's name that names the stream;
// with the prefix it stays below what file systems allow.
const maxStreamToken = 180

// Stream implements [stream.Client].
func (c *Client) Stream(ctx context.Context, name string, opts *stream.Options) (stream.Stream, error) {
	if err := c.isClosed(); err != nil {
		return nil, err
	}
	if err := stream.CheckName("stream", name); err != nil {
		return nil, err
	}
	resolved, err := opts.Resolved()
	if err != nil {
		return nil, err
	}
	q := &queue{client: c, name: name, token: Token(name), opts: resolved}
	if q.isShort() {
		q.inside = c.prefix + "-short"
		q.subject = c.prefix + ".short." + q.token + "."
	} else {
		q.inside = c.prefix + "~" + shortened(q.token, maxStreamToken)
		q.subject = c.prefix + ".stream." + subjectOf(name) + "."
		q.plain = c.prefix + ".stream." + q.token + "."
	}
	q.keeps = opts == nil
	q.most.Store(int64(resolved.MaxEvents))
	if q.keeps || q.isShort() {
		err = ctx.Err() // What is missing is made when it is needed.
	} else {
		err = c.retryOn(ctx, q.inside, q.open)
	}
	if err != nil {
		return nil, err
	}
	return q, nil
}

func (q *queue) isShort() bool { return q.opts.TTL > 0 }

// Name implements [stream.Stream].
func (q *queue) Name() string { return q.name }

// open makes the stream, or sets the bounds of one that is there. Where those are
// kept it learns them, to make the stream with them should it vanish.
func (q *queue) open(ctx context.Context) error {
	return q.ensure(ctx, func(config *jetstream.StreamConfig) bool {
		if q.keeps {
			q.most.Store(config.MaxMsgs)
		}
		most := q.most.Load()
		differs := config.MaxMsgs != most
		config.MaxMsgs = most
		return differs
	})
}

// remake makes the stream when it is not there.
func (q *queue) remake(ctx context.Context) error { return q.ensure(ctx, nil) }

// ensure makes the stream when it is not there. One that is there, also because
// another client made it at the same time, it changes as set says, and to take
// events on all subjects that it should have.
func (q *queue) ensure(ctx context.Context, set func(*jetstream.StreamConfig) (differs bool)) error {
	for {
		found, err := q.client.js.Stream(ctx, q.inside)
		if err == nil {
			return q.adjust(ctx, found.CachedInfo().Config, set)
		}
		if !errors.Is(err, jetstream.ErrStreamNotFound) {
			return q.client.refused(err)
		}
		if made, err := q.create(ctx); made || err != nil {
			return err
		}
	}
}

// adjust changes a stream that is there.
func (q *queue) adjust(ctx context.Context, config jetstream.StreamConfig, set func(*jetstream.StreamConfig) bool) error {
	if q.isShort() {
		return nil
	}
	differs := set != nil && set(&config)
	for _, subject := range q.subjects() {
		if !slices.Contains(config.Subjects, subject) {
			config.Subjects, differs = append(config.Subjects, subject), true
		}
	}
	if !differs {
		return nil
	}
	_, err := q.client.js.UpdateStream(ctx, config)
	return q.client.refused(err)
}

// subjects are those of the events of a stream of its own.
func (q *queue) subjects() []string {
	if q.plain == q.subject {
		return []string{q.subject + "*"}
	}
	return []string{q.subject + "*", q.plain + "*"}
}

// create makes the stream. It returns false when another client just made it.
func (q *queue) create(ctx context.Context) (made bool, err error) {
	config := jetstream.StreamConfig{
		Name: q.inside, Subjects: q.subjects(), Storage: jetstream.FileStorage, Replicas: q.client.copies(),
		Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardNew, MaxMsgs: q.most.Load(),
		Metadata: map[string]string{"toolcrib.stream": q.name},
	}
	if q.isShort() {
		config.Subjects = []string{q.client.prefix + ".short.*.*"}
		config.AllowMsgTTL = true
		config.MaxMsgs, config.MaxMsgsPerSubject, config.DiscardNewPerSubject = -1, stream.DefaultMaxEvents, true
		config.Metadata = nil
	}
	_, err = q.client.js.CreateStream(ctx, config)
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return false, nil
	}
	if err != nil {
		return false, q.client.refused(err)
	}
	return true, q.client.keeper.Persist(ctx, q.inside)
}

// copies is how many servers keep a stream.
func (c *Client) copies() int {
	switch {
	case c.replicas > 0:
		return c.replicas
	case c.conn.ConnectedClusterName() != "":
		return 3
	}
	return 1
}

// refused translates an error of the JetStream API.
func (c *Client) refused(err error) error {
	var api *jetstream.APIError
	if errors.As(err, &api) && isFullCode(api.ErrorCode) {
		return fmt.Errorf("%w: %s", stream.ErrNoRoom, api.Description)
	}
	return err
}

// Add implements [stream.Stream].
func (q *queue) Add(ctx context.Context, event string, payload []byte) (string, error) {
	if err := q.client.checkSend("event", event, payload); err != nil {
		return "", err
	}
	return q.publish(ctx, &nats.Msg{Subject: q.subject + Token(event), Data: payload})
}

// publish adds an event that is ready but for how long it lives.
func (q *queue) publish(ctx context.Context, msg *nats.Msg) (string, error) {
	if q.isShort() {
		if msg.Header == nil {
			msg.Header = nats.Header{}
		}
		msg.Header.Set("Nats-TTL", ttlSeconds(q.opts.TTL))
	}
	for wait := retryFirst; ; wait = min(2*wait, retryMost) {
		id, err := q.add(ctx, msg)
		if !errors.Is(err, stream.ErrNoResponder) {
			return id, err
		}
		// The stream is gone, or a cluster elects who keeps it.
		if err := q.client.retryOn(ctx, q.inside, q.remake); err != nil {
			return "", err
		}
		if stop := q.client.pause(ctx, wait); stop != nil {
			return "", fmt.Errorf("%w: no server keeps the stream %q: %w", stream.ErrUnavailable, q.name, stop)
		}
	}
}

// add publishes an event once. ErrNoResponder says that no server took it.
func (q *queue) add(ctx context.Context, msg *nats.Msg) (string, error) {
	if err := q.client.connected(ctx); err != nil {
		return "", err
	}
	if err := q.client.keeper.Room(); err != nil {
		return "", err
	}
	once, cancel := within(ctx, tryTimeout+time.Duration(len(msg.Data))*time.Second/slowest)
	defer cancel()
	got, err := q.client.asks.ask(once, msg)
	if err != nil {
		return "", err
	}
	id, err := q.stored(got.Data)
	if err == nil {
		err = q.client.keeper.Persist(ctx, q.inside)
	}
	return id, err
}

// within is context.WithTimeout that costs nothing where ctx ends before.
func within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= limit {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, limit)
}

// sequenceOf reads the answer to an event that the server has stored, in the form
// that the server gives it.
func sequenceOf(data []byte) (string, bool) {
	_, rest, found := bytes.Cut(data, []byte(`","seq":`))
	if !found || !bytes.HasPrefix(data, []byte(`{"stream":"`)) || bytes.Contains(data, []byte(`"error"`)) {
		return "", false
	}
	digits := 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		digits++
	}
	return string(rest[:digits]), digits > 0
}

// stored reads the server's answer to an event.
func (q *queue) stored(data []byte) (string, error) {
	if sequence, ok := sequenceOf(data); ok {
		return sequence, nil
	}
	var ack struct {
		Sequence uint64              `json:"seq"`
		Error    *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(data, &ack); err != nil {
		return "", fmt.Errorf("%w: its answer cannot be read", stream.ErrUnavailable)
	}
	if ack.Error == nil {
		return strconv.FormatUint(ack.Sequence, 10), nil
	}
	said := ack.Error.Description
	switch code := ack.Error.ErrorCode; {
	case isFullCode(code):
		return "", fmt.Errorf("%w: %s", stream.ErrNoRoom, said)
	case code == codeStoreFailed && strings.HasPrefix(said, "maximum "):
		return "", fmt.Errorf("%w: %q: %s", stream.ErrFull, q.name, said)
	case code == codeMessageTooLarge:
		return "", fmt.Errorf("%w: %s", stream.ErrTooLarge, said)
	}
	return "", fmt.Errorf("%w: it did not store the event: %s", stream.ErrUnavailable, said)
}

// ttlSeconds writes a duration in whole seconds, at least one, as the server
// wants it.
func ttlSeconds(ttl time.Duration) string {
	seconds := max(1, (ttl+time.Second-1)/time.Second)
	return strconv.Itoa(int(seconds)) + "s"
}

// Size implements [stream.Stream].
func (q *queue) Size(ctx context.Context) (stream.Size, error) {
	var size stream.Size
	err := q.client.retryOn(ctx, q.inside, func(ctx context.Context) error {
		events, err := q.events(ctx)
		if err != nil {
			return err
		}
		held := 0
		for info := range q.consumers(ctx, &err) {
			held += info.NumAckPending
		}
		size = stream.Size{Waiting: max(0, events-held), Held: held}
		return err
	})
	return size, err
}

// events counts the events that are stored.
func (q *queue) events(ctx context.Context) (int, error) {
	found, err := q.client.js.Stream(ctx, q.inside)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, q.client.refused(err)
	}
	if !q.isShort() {
		return int(found.CachedInfo().State.Msgs), nil
	}
	info, err := found.Info(ctx, jetstream.WithSubjectFilter(q.subject+"*"))
	if err != nil {
		return 0, q.client.refused(err)
	}
	total := 0
	for _, count := range info.State.Subjects {
		total += int(count)
	}
	return total, nil
}

// consumers yields what the server knows of the stream's sinks, and sets err
// when it cannot.
func (q *queue) consumers(ctx context.Context, err *error) func(yield func(*jetstream.ConsumerInfo) bool) {
	return func(yield func(*jetstream.ConsumerInfo) bool) {
		found, openErr := q.client.js.Stream(ctx, q.inside)
		if errors.Is(openErr, jetstream.ErrStreamNotFound) {
			return
		}
		if *err = openErr; openErr != nil {
			return
		}
		list := found.ListConsumers(ctx)
		for info := range list.Info() {
			mine := !q.isShort() || info.Config.FilterSubject == q.subject+"*"
			if mine && !yield(info) {
				break
			}
		}
		*err = list.Err()
	}
}

// sweep removes the events up to a sequence up to which all are acknowledged. There
// are some where the server kept an acknowledgement and failed to remove its event.
func (q *queue) sweep(ctx context.Context, floor uint64) error {
	if q.isShort() || floor == 0 {
		return nil
	}
	found, err := q.client.js.Stream(ctx, q.inside)
	if err != nil {
		return ignoreMissing(err)
	}
	if state := found.CachedInfo().State; state.Msgs == 0 || state.FirstSeq > floor {
		return nil
	}
	return ignoreMissing(found.Purge(ctx, jetstream.WithPurgeSequence(floor+1)))
}

// RemoveSink implements [stream.Stream].
func (q *queue) RemoveSink(ctx context.Context, name string) error {
	if err := stream.CheckName("sink", name); err != nil {
		return err
	}
	return q.client.retryOn(ctx, q.inside, func(ctx context.Context) error {
		return ignoreMissing(q.client.js.DeleteConsumer(ctx, q.inside, q.consumerName(name)))
	})
}

// Destroy implements [stream.Stream].
func (q *queue) Destroy(ctx context.Context) error {
	return q.client.retryOn(ctx, q.inside, func(ctx context.Context) error {
		if !q.isShort() {
			return ignoreMissing(q.client.js.DeleteStream(ctx, q.inside))
		}
		var err error
		for info := range q.consumers(ctx, &err) {
			if err := ignoreMissing(q.client.js.DeleteConsumer(ctx, q.inside, info.Name)); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
		found, err := q.client.js.Stream(ctx, q.inside)
		if err != nil {
			return ignoreMissing(err)
		}
		return found.Purge(ctx, jetstream.WithPurgeSubject(q.subject+"*"))
	})
}

func ignoreMissing(err error) error {
	if errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil
	}
	return err
}

// consumerName is the name of the consumer of a sink.
func (q *queue) consumerName(sink string) string {
	name := shortened(Token(sink), 100)
	if q.isShort() {
		return shortened(q.token, 100) + "=" + name
	}
	return name
}
