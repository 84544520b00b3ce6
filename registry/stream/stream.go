package stream

import (
	"context"
	"time"
)

// Client is a connection to a backend.
type Client interface {
	// Stream opens a stream. With nil options a stream that is there stays as
	// it is, and one that is not is made with the defaults when it is first
	// used; otherwise it is there from now on with the bounds that are given.
	Stream(ctx context.Context, name string, opts *Options) (Stream, error)

	Bus

	// MaxPayload is the size in bytes of the largest payload that an event
	// or a message may have. A larger one is refused with [ErrTooLarge].
	MaxPayload() int

	// Close sends what waits to be sent, then ends the connection with all
	// sinks and subscriptions of the client. Leases that are held go on
	// until they end. A second Close does nothing and returns nil.
	Close() error
}

// Options are the bounds of a stream. A zero field is its default.
type Options struct {
	// MaxEvents is how many events the stream holds, those that workers hold
	// included. Default 10,000.
	MaxEvents int

	// TTL makes a short-lived stream when positive: an event vanishes that
	// long after it was added, and the stream costs nothing once it is
	// empty. It is for streams that nobody destroys, such as that of the
	// answers to one call. Whether a stream is short-lived cannot be changed:
	// whoever opens it, to write or to read, gives a TTL, and that of the
	// writer counts. A backend may round it up to whole seconds. MaxEvents
	// does not apply; a short-lived stream holds DefaultMaxEvents.
	TTL time.Duration
}

// DefaultMaxEvents is the default of MaxEvents of [Options].
const DefaultMaxEvents = 10_000

// Stream is a bounded queue of events, kept until a worker acknowledged them.
type Stream interface {
	// Name is the name the stream was opened with.
	Name() string

	// Add puts an event at the end, and returns its ID once the backend has
	// taken it as safely as it is configured to. It never waits for room:
	// it returns ErrFull when the stream is full, and ErrNoRoom, which is an
	// ErrFull, when the backend as a whole is.
	Add(ctx context.Context, event string, payload []byte) (id string, err error)

	// Sink opens the stream's sink under a name. All workers of one name
	// share the events. A stream has one sink: another name is refused with
	// ErrConflict until RemoveSink removed the first.
	Sink(ctx context.Context, name string, opts *SinkOptions) (Sink, error)

	// RemoveSink forgets a sink, its leases and its counts of deliveries,
	// and keeps the events for the next sink. A sink that is not there is
	// no error.
	RemoveSink(ctx context.Context, name string) error

	// Size tells how many events the stream holds.
	Size(ctx context.Context) (Size, error)

	// Destroy removes the stream with its sink and all its events. A client
	// that goes on to use it makes it anew, empty.
	Destroy(ctx context.Context) error
}

// Browser is a [Stream] whose events can be looked at by who does not work on them.
// The streams of this module are.
type Browser interface {
	// Browse returns the events that come after the one with an ID, or from the
	// first when it is empty, in their order and at most limit of them. Nobody has a
	// lease on them by that, and it counts as no delivery. A stream that is not there
	// is empty.
	Browse(ctx context.Context, after string, limit int) ([]Kept, error)
}

// Kept is an event as a stream keeps it.
type Kept struct {
	ID      string
	Name    string
	Payload []byte
	Added   time.Time // by the backend's clock
	// Note is what AddNoted of [Annotator] put beside the payload, or empty. One that
	// AddNoted would refuse, which another program wrote, is empty too.
	Note string
}

// Annotator is a [Stream] that keeps a note beside the payload of an event, for who
// looks at it with Browse; workers do not get it. The streams of this module are.
type Annotator interface {
	// AddNoted is Add with a note, which is as CheckNote demands, and does not count
	// for MaxPayload.
	AddNoted(ctx context.Context, event string, payload []byte, note string) (id string, err error)
}

// Size counts the events of a stream.
type Size struct {
	Waiting int // never delivered
	Held    int // delivered and not acknowledged: under a lease, or to be delivered again
}

// SinkOptions say how a sink hands out events. A zero field is its default.
type SinkOptions struct {
	// Lease is how long a worker has an event for itself before it must
	// extend. All workers of a sink have the same: zero takes what the sink
	// has, 30 seconds for a new one, and another value than the sink's is
	// refused with ErrConflict. At least 100 milliseconds.
	Lease time.Duration

	// InFlight is how many events this worker holds at most, handed out by
	// Receive or fetched ahead of it. Default 64.
	InFlight int

	// MaxDeliveries is how often an event is handed out by Receive at most;
	// after that Dead gets it. Zero is without end.
	MaxDeliveries int

	// Dead is called in a goroutine of the sink with an event that was
	// delivered MaxDeliveries times and never acknowledged. The event is
	// acknowledged when it returns nil, and comes to Dead again after a
	// lease when not. Dead does not settle the event itself. Its context
	// ends with the sink. Needed when MaxDeliveries is positive.
	Dead func(ctx context.Context, event Event) error
}

// DefaultLease and DefaultInFlight are defaults of [SinkOptions], and MinLease
// is the shortest lease.
const (
	DefaultLease    = 30 * time.Second
	DefaultInFlight = 64
	MinLease        = 100 * time.Millisecond
)

// Sink hands the events of a stream to one of its workers.
type Sink interface {
	// Receive waits for the next event. It returns the context's error, or
	// ErrClosed once the sink drains or is closed; nothing else ends it. It
	// never returns an event for which this sink has a lease that goes on:
	// where a backend delivers such an event again, as after its restart, the
	// lease goes on with that delivery.
	Receive(ctx context.Context) (Event, error)

	// Lease is the length of the leases of this sink.
	Lease() time.Duration

	// Drain ends the intake at once: Receive returns ErrClosed, and events
	// fetched ahead go back for other workers. It then waits until every
	// event that Receive returned is settled, and returns the context's
	// error when that ends first. Leases may be settled and extended all
	// that time, and after it until the client closes.
	Drain(ctx context.Context) error

	// Close ends the intake as Drain does, and waits for no lease. A second
	// Close does nothing and returns nil.
	Close() error
}

// Event is an event that a sink handed out, with the lease on it.
type Event struct {
	// ID names the event in its stream.
	ID string

	// Name says what the event is: "call", "ping", "result", "output_delta".
	Name string

	// Payload is the receiver's to keep.
	Payload []byte

	// Added is when the event came to the stream, by the backend's clock.
	Added time.Time

	// Deliveries counts how often the event was handed to a worker, this time
	// included: 1 is the first. It also counts the times when a worker had
	// fetched the event and gave it back unseen.
	Deliveries int

	Lease
}

// Lease is the right to work on an event. The first Ack or Nack settles it;
// after that every method returns ErrSettled.
type Lease interface {
	// Ack removes the event from its stream. It returns when the backend's
	// connection took the acknowledgement, and does not wait for an answer:
	// where the connection or the backend breaks in that moment, the event is
	// delivered again.
	Ack(ctx context.Context) error

	// Extend starts the lease anew from now. ErrLost says that the lease had
	// ended and the event may be with another worker, where the backend can
	// tell.
	Extend(ctx context.Context) error

	// Nack gives the event back, to be delivered again after delay at the
	// earliest, to any worker. It counts as a delivery.
	Nack(ctx context.Context, delay time.Duration) error
}
