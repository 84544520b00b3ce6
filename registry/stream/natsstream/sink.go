package natsstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolcrib/toolcrib/registry/stream"
)

// sink is a [stream.Sink] on a durable pull consumer. It asks the server for as
// many events as it may still hold, so that what waits on the server waits for
// all workers.
type sink struct {
	queue    *queue
	name     string
	consumer string
	opts     stream.SinkOptions
	lease    atomic.Int64 // a time.Duration, which a consumer that is made anew may have changed
	inbox    string       // events and statuses come to inbox.*
	next     string       // the subject of pulls
	sub      *nats.Subscription
	events   chan stream.Event // fetched and not received; holds InFlight

	ctx      context.Context // ends with Close, or after Drain
	cancel   context.CancelFunc
	stopping chan struct{} // closed when the intake ends
	stopped  chan struct{} // closed when no event can come any more
	broken   chan struct{} // wakes the keeper: the consumer may be gone
	idle     broadcast     // woken when holding becomes 0
	running  sync.WaitGroup

	mu      sync.Mutex
	stop    bool
	asked   int               // events that the server may still send
	holding int               // events here that are not settled
	held    map[uint64]*lease // the latest lease on each of them
	heard   time.Time         // of the server
}

// Sink implements [stream.Stream].
func (q *queue) Sink(ctx context.Context, name string, opts *stream.SinkOptions) (stream.Sink, error) {
	if err := q.client.isClosed(); err != nil {
		return nil, err
	}
	if err := stream.CheckName("sink", name); err != nil {
		return nil, err
	}
	resolved, err := opts.Resolved()
	if err != nil {
		return nil, err
	}
	s := &sink{queue: q, name: name, consumer: q.consumerName(name), opts: resolved, inbox: newInbox(q.client.conn),
		events: make(chan stream.Event, resolved.InFlight), stopping: make(chan struct{}), stopped: make(chan struct{}),
		broken: make(chan struct{}, 1), held: map[uint64]*lease{}, heard: time.Now()}
	s.next = "$JS.API.CONSUMER.MSG.NEXT." + q.inside + "." + s.consumer
	if q.keeps {
		if err := q.client.retryOn(ctx, q.inside, q.open); err != nil {
			return nil, err
		}
	}
	if err := q.client.retryOn(ctx, q.inside, s.open); err != nil {
		return nil, err
	}
	return s, s.start()
}

// open makes the consumer when it is not there, and takes over its lease.
func (s *sink) open(ctx context.Context) error {
	js := s.queue.client.js
	found, err := js.Consumer(ctx, s.queue.inside, s.consumer)
	if errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
		found, err = s.create(ctx)
	}
	if err != nil {
		return s.conflict(ctx, err)
	}
	lease := found.CachedInfo().Config.AckWait
	if s.opts.Lease != 0 && s.opts.Lease != lease {
		return fmt.Errorf("%w: the sink %q of %q has a lease of %v, not %v; give the same, or remove the sink first",
			stream.ErrConflict, s.name, s.queue.name, lease, s.opts.Lease)
	}
	s.lease.Store(int64(lease))
	return s.queue.sweep(ctx, found.CachedInfo().AckFloor.Stream)
}

func (s *sink) create(ctx context.Context) (jetstream.Consumer, error) {
	if err := s.queue.remake(ctx); err != nil {
		return nil, err
	}
	config := jetstream.ConsumerConfig{
		Durable: s.consumer, AckPolicy: jetstream.AckExplicitPolicy, AckWait: s.opts.Lease, MaxDeliver: -1,
		MaxAckPending: -1, MaxWaiting: maxPulls, Metadata: map[string]string{"toolcrib.sink": s.name},
	}
	if config.AckWait == 0 {
		config.AckWait = stream.DefaultLease
	}
	if s.queue.isShort() {
		config.FilterSubject = s.queue.subject + "*"
		config.InactiveThreshold = max(s.queue.opts.TTL, 2*beat)
	}
	return s.queue.client.js.CreateConsumer(ctx, s.queue.inside, config)
}

// Codes with which the server refuses a second consumer of a work queue.
const (
	codeNotFiltered = 10099
	codeNotUnique   = 10100
)

// conflict translates the error of a consumer that another stands in the way of.
func (s *sink) conflict(ctx context.Context, err error) error {
	var api *jetstream.APIError
	if !errors.As(err, &api) || api.ErrorCode != codeNotFiltered && api.ErrorCode != codeNotUnique {
		return s.queue.client.refused(err)
	}
	other := ""
	var listErr error
	for info := range s.queue.consumers(ctx, &listErr) {
		other = info.Config.Metadata["toolcrib.sink"]
	}
	return fmt.Errorf("%w: the stream %q has the sink %q, and %q would be a second one", stream.ErrConflict, s.queue.name, other, s.name)
}

// start begins the intake.
func (s *sink) start() error {
	client := s.queue.client
	s.ctx, s.cancel = context.WithCancel(client.ctx)
	sub, err := client.conn.Subscribe(s.inbox, s.receive)
	if err != nil {
		s.cancel()
		return sendError(err)
	}
	sub.SetClosedHandler(func(string) { close(s.stopped) })
	sub.SetPendingLimits(-1, -1) //nolint:errcheck // The server sends no more than was asked for.
	s.sub = sub
	s.running.Go(s.keep)
	if err := client.keep(s); err != nil {
		s.Close() //nolint:errcheck // The client is closed, and this with it.
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pull()
	return nil
}

// Lease implements [stream.Sink].
func (s *sink) Lease() time.Duration { return time.Duration(s.lease.Load()) }

// Receive implements [stream.Sink].
func (s *sink) Receive(ctx context.Context) (stream.Event, error) {
	select {
	case <-s.stopping:
		return stream.Event{}, stream.ErrClosed
	default:
	}
	select {
	case event := <-s.events:
		return event, nil
	case <-s.stopping:
		return stream.Event{}, stream.ErrClosed
	case <-ctx.Done():
		return stream.Event{}, ctx.Err()
	}
}

// receive takes what the server sends to the inbox. It is called for one message
// after the other.
func (s *sink) receive(msg *nats.Msg) {
	if status := statusOf(msg); status != "" && !strings.HasPrefix(msg.Reply, "$JS.ACK.") {
		s.told(status, msg)
		return
	}
	meta, err := msg.Metadata()
	if err != nil {
		s.queue.client.log.Warn("a message on the inbox of a sink is no event", "stream", s.queue.name, "error", err)
		return
	}
	l := &lease{sink: s, sequence: meta.Sequence.Stream, reply: msg.Reply, until: time.Now().Add(s.Lease())}
	event := stream.Event{ID: fmt.Sprint(meta.Sequence.Stream), Name: eventName(msg.Subject), Payload: msg.Data,
		Added: meta.Timestamp, Deliveries: int(meta.NumDelivered), Lease: l}
	if !s.admit(l) {
		return
	}
	if s.opts.MaxDeliveries > 0 && event.Deliveries > s.opts.MaxDeliveries {
		s.running.Go(func() { s.bury(event) })
		return
	}
	s.events <- event // There is room: admit counted it.
	s.handBack()
}

// admit counts an event in, and reports whether it is to be handed out. It is not
// when a lease on it goes on, when the intake ended, or when the sink is full.
func (s *sink) admit(l *lease) bool {
	s.mu.Lock()
	s.heard = time.Now()
	s.asked = max(0, s.asked-1)
	if before := s.held[l.sequence]; before != nil && before.renew(l.reply, s.heard) {
		s.pull()
		s.mu.Unlock()
		return false
	}
	full := s.holding >= s.opts.InFlight
	s.holding++
	s.held[l.sequence] = l
	refuse := full || s.stop
	s.mu.Unlock()
	if refuse {
		l.Nack(s.ctx, 0) //nolint:errcheck // Its lease ends in any case.
	}
	return !refuse
}

// release counts a settled event out.
func (s *sink) release(l *lease) {
	s.mu.Lock()
	s.holding--
	if s.held[l.sequence] == l {
		delete(s.held, l.sequence)
	}
	idle := s.holding == 0
	s.pull()
	s.mu.Unlock()
	if idle {
		s.idle.wake()
	}
}

// handBack gives back what nobody will receive once the intake ended.
func (s *sink) handBack() {
	s.mu.Lock()
	stop := s.stop
	s.mu.Unlock()
	for stop {
		select {
		case event := <-s.events:
			event.Nack(s.ctx, 0) //nolint:errcheck // Its lease ends in any case.
		default:
			return
		}
	}
}

// bury passes an event that reached the cap of deliveries to Dead.
func (s *sink) bury(event stream.Event) {
	if err := s.opts.Dead(s.ctx, event); err != nil {
		s.queue.client.log.Warn("an event that reached its last delivery stays on the stream",
			"stream", s.queue.name, "event", event.ID, "error", err)
		event.Nack(s.ctx, s.Lease()) //nolint:errcheck // Its lease ends in any case.
		return
	}
	event.Ack(s.ctx) //nolint:errcheck // It comes to Dead again.
}

// Drain implements [stream.Sink].
func (s *sink) Drain(ctx context.Context) error {
	s.endIntake()
	for _, wait := range []func() (<-chan struct{}, bool){s.intakeEnded, s.nothingHeld} {
		if err := s.await(ctx, wait); err != nil {
			return err
		}
	}
	s.finish()
	return nil
}

// await waits until done says so. Its channel tells when to ask again.
func (s *sink) await(ctx context.Context, done func() (<-chan struct{}, bool)) error {
	for {
		changed, ok := done()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-s.queue.client.ctx.Done():
			return stream.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *sink) intakeEnded() (<-chan struct{}, bool) {
	select {
	case <-s.stopped:
		return nil, true
	default:
		return s.stopped, false
	}
}

func (s *sink) nothingHeld() (<-chan struct{}, bool) {
	idle := s.idle.wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return idle, s.holding == 0
}

// Close implements [stream.Sink].
func (s *sink) Close() error {
	s.endIntake()
	if s.queue.client.conn.IsConnected() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		s.await(ctx, s.intakeEnded) //nolint:errcheck // Events that still come have leases that end.
	}
	s.finish()
	return nil
}

// endIntake asks for no more events, and gives back those nobody received.
func (s *sink) endIntake() {
	s.mu.Lock()
	first := !s.stop
	s.stop = true
	s.mu.Unlock()
	if !first {
		return
	}
	close(s.stopping)
	if err := s.sub.Drain(); err != nil {
		s.sub.Unsubscribe() //nolint:errcheck // The connection is gone, and the subscription with it.
	}
	s.handBack()
}

// finish ends what runs for the sink.
func (s *sink) finish() {
	s.cancel()
	s.running.Wait()
	s.queue.client.forget(s)
}
