package provider

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/stream"
)

// Handler executes the calls of a toolset.
type Handler interface {
	// HandleToolCall runs a call and returns its answer, whose ToolUseID may be
	// left empty. An error, like a panic, is answered as one. The context ends
	// at the call's deadline, when its caller goes away, and when a drain takes
	// too long. It is called by many goroutines at once.
	HandleToolCall(ctx context.Context, msg registry.ToolCallMessage) (registry.ToolResultMessage, error)
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(ctx context.Context, msg registry.ToolCallMessage) (registry.ToolResultMessage, error)

// HandleToolCall calls f.
func (f HandlerFunc) HandleToolCall(ctx context.Context, msg registry.ToolCallMessage) (registry.ToolResultMessage, error) {
	return f(ctx, msg)
}

// Contractor is a Handler that knows what it serves. Serve announces that, so
// that the tools enter the registry's catalog.
type Contractor interface {
	Handler
	// Contract returns what is served under the toolset's name.
	Contract(toolset string) (registry.Contract, error)
}

// The defaults of Options.
const (
	DefaultSinkName               = "provider"
	DefaultPongTimeout            = 2 * time.Second
	DefaultMaxConcurrentToolCalls = 4
	// DefaultQueueFactor times MaxConcurrentToolCalls is the default of
	// MaxQueuedToolCalls.
	DefaultQueueFactor   = 64
	DefaultDrainTimeout  = 30 * time.Second
	DefaultMaxDeliveries = 10
)

// The most that two fields of Options may be.
const (
	MostConcurrentToolCalls = 10_000
	MostQueuedToolCalls     = 1_000_000
)

// Options configure Serve. Pong is required; every other field has a default.
type Options struct {
	// SinkName names the sink that all workers of the toolset share. Empty
	// means "provider".
	SinkName string
	// ResultEventType is the name of the events that carry results. Empty means
	// registry.ResultEventKey.
	ResultEventType string
	// SinkAckGracePeriod is how long a call stays with this worker without a
	// sign of life, which Serve gives all the time that it has the call; so it
	// may be shorter than a tool runs. It is that of the sink, and must be the
	// same for all workers of the toolset. Zero leaves it to the sink.
	SinkAckGracePeriod time.Duration
	// Pong acknowledges a ping. While it fails, the registry takes the worker
	// for down; the loop goes on. Serve refuses a nil Pong.
	Pong func(ctx context.Context, pingID string) error
	// PongTimeout bounds Pong. Zero means two seconds.
	PongTimeout time.Duration
	// MaxConcurrentToolCalls bounds how many calls run at once. Zero means 4, and
	// MostConcurrentToolCalls is the most.
	MaxConcurrentToolCalls int
	// MaxQueuedToolCalls bounds how many more calls wait in this worker. One
	// that finds no room is answered as overloaded. Zero means 64 times
	// MaxConcurrentToolCalls, and MostQueuedToolCalls is the most.
	MaxQueuedToolCalls int
	// Logger is silent when nil.
	Logger *slog.Logger
	// Tracer makes a span of each call. Nil makes none.
	Tracer trace.Tracer

	// Contract is what the handler serves. Nil takes it from a Contractor;
	// another handler joins a toolset that the registry knows from elsewhere.
	Contract *registry.Contract
	// Incomplete, when set, is asked with each announcement whether some of what
	// the worker is to serve is not there now. While it is not, the worker stands
	// by as long as workers of another contract are up, and does not take their
	// place. It may be called from any goroutine.
	Incomplete func() bool
	// Namespace is that of the registry. Empty means registry.DefaultNamespace.
	Namespace string
	// Key is the toolset's key, where the registry demands one.
	Key []byte
	// Version is that of the worker's program, shown beside its health.
	Version string
	// DrainTimeout bounds how long Serve goes on, once its context ended, with
	// the calls that it runs. Zero means 30 seconds.
	DrainTimeout time.Duration
	// MaxDeliveries is how many workers may try a call before it is given up as
	// a dead letter, which answers its caller. Zero means 10.
	MaxDeliveries int
	// Serving, when set, is called once, as soon as the worker takes calls: a
	// registry has admitted it, and it is on standby no more, or none answers
	// yet.
	Serving func()
}

// Errors of Serve, beside those of the stream. Compare with errors.Is.
var (
	// ErrNoPong: Options.Pong is nil.
	ErrNoPong = errors.New("provider: Options.Pong is nil; workers are known to be alive by their pongs")
	// ErrRefused: no registry admits the worker.
	ErrRefused = errors.New("provider: the registry refuses this worker")
	// ErrSuperseded: another contract took the place of this worker's.
	ErrSuperseded = errors.New("provider: another contract took the place of this worker's")
	// ErrDrain: calls still ran when the time of the drain was over. Each was
	// told to end, and its outcome may not be known.
	ErrDrain = errors.New("provider: calls still ran when the drain's time was over")
)

func (o Options) resolved() (Options, error) {
	if o.Pong == nil {
		return o, ErrNoPong
	}
	if o.SinkAckGracePeriod < 0 || o.PongTimeout < 0 || o.DrainTimeout < 0 || o.MaxConcurrentToolCalls < 0 || o.MaxQueuedToolCalls < 0 || o.MaxDeliveries < 0 {
		return o, fmt.Errorf("provider: %w: no option may be negative", registry.ErrInvalid)
	}
	if o.MaxConcurrentToolCalls > MostConcurrentToolCalls || o.MaxQueuedToolCalls > MostQueuedToolCalls {
		return o, fmt.Errorf("provider: %w: MaxConcurrentToolCalls is at most %d, and MaxQueuedToolCalls %d", registry.ErrInvalid,
			MostConcurrentToolCalls, MostQueuedToolCalls)
	}
	if o.Namespace != "" {
		if err := registry.CheckNamespace(o.Namespace); err != nil {
			return o, fmt.Errorf("provider: %w", err)
		}
	}
	o.SinkName = cmp.Or(o.SinkName, DefaultSinkName)
	o.ResultEventType = cmp.Or(o.ResultEventType, registry.ResultEventKey)
	switch o.ResultEventType {
	case registry.MessageClaim, registry.MessageClaims, registry.MessageResults, registry.MessageHeld, registry.OutputDeltaEventKey, registry.ProgressEventKey, registry.LogEventKey:
		return o, fmt.Errorf("provider: %w: ResultEventType %q is the name of another message", registry.ErrInvalid, o.ResultEventType)
	}
	if err := stream.CheckName("ResultEventType", o.ResultEventType); err != nil {
		return o, fmt.Errorf("provider: %w: %w", registry.ErrInvalid, err)
	}
	o.PongTimeout = cmp.Or(o.PongTimeout, DefaultPongTimeout)
	o.MaxConcurrentToolCalls = cmp.Or(o.MaxConcurrentToolCalls, DefaultMaxConcurrentToolCalls)
	o.MaxQueuedToolCalls = cmp.Or(o.MaxQueuedToolCalls, DefaultQueueFactor*o.MaxConcurrentToolCalls)
	o.DrainTimeout = cmp.Or(o.DrainTimeout, DefaultDrainTimeout)
	o.MaxDeliveries = cmp.Or(o.MaxDeliveries, DefaultMaxDeliveries)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Tracer == nil {
		o.Tracer = noop.NewTracerProvider().Tracer("")
	}
	return o, nil
}

// Pong returns a Pong that tells the registries of a namespace of the ping.
// Empty means registry.DefaultNamespace.
func Pong(client stream.Client, namespace string) func(ctx context.Context, pingID string) error {
	subject := registry.PongSubject(namespace)
	return func(ctx context.Context, pingID string) error {
		return client.Publish(ctx, subject, stream.Message{Name: registry.MessagePong, Payload: []byte(pingID)})
	}
}

// newInstance returns an id that no other worker has, with the machine's name,
// by which people find it.
func newInstance() (id, host string) {
	host, _ = os.Hostname() // a worker without a name is one too
	return rand.Text()[:16], host
}
