package provider

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolcrib/toolcrib/internal/crew"
	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/stream"
)

// Serve takes the calls of a toolset and has handler run them, until ctx ends.
// Then it takes no more, finishes those that run, gives back those that wait,
// and returns nil; or ErrDrain when that takes longer than Options.DrainTimeout.
//
// Before that it returns only an error that trying again would not mend:
// options or a contract that cannot be used, ErrRefused, ErrSuperseded,
// stream.ErrForbidden where the backend does not permit what a worker needs, or a
// closed client.
func Serve(ctx context.Context, client stream.Client, toolset string, handler Handler, opts Options) error {
	w, err := newWorker(client, toolset, handler, opts)
	if err != nil {
		return err
	}
	return w.serve(ctx)
}

// worker is one Serve.
type worker struct {
	client  stream.Client
	toolset string
	handler Handler
	opts    Options
	log     *slog.Logger

	instance, host string
	contract       *registry.Contract
	prints         map[string]string // of the contract's tools, by name

	sink  stream.Sink
	queue chan *job
	// work is what calls run on: it outlives the context of Serve by the drain.
	work    context.Context
	endWork context.CancelFunc
	tasks   crew.Crew // what goes on beside the pool
	pool    sync.WaitGroup

	retired  chan struct{} // closed when the contract was replaced
	retire   sync.Once
	drained  chan struct{} // closed when the worker has no call any more
	ending   sync.Once     // closes drained
	heard    chan struct{} // holds one: a ping came
	greeted  chan struct{} // holds one: a hello came
	pongs    chan struct{} // holds one for each call of Pong that has not returned
	renew    chan struct{} // holds one: announce again
	silence  atomic.Int64  // after how long without a ping to announce again
	draining atomic.Bool
	running  atomic.Int64
	jobs     atomic.Int64 // how many there were
	pace     atomic.Int64 // how long a call takes, smoothed, in nanoseconds
	served   atomic.Uint64
	failed   atomic.Uint64
	token    atomic.Pointer[string] // of the registry's admission
	asks     asks
	aside    aside
	lanes    lanes

	hindrances hindrances

	mu        sync.Mutex
	held      map[string]*job      // by keys of calls
	cancelled map[string]int64     // keys of calls whose callers went away, until when
	finished  map[string]int64     // keys of calls that ran and whose results were left on a stream, until when
	deaf      map[string]time.Time // inboxes of registries that did not answer, since when
}

func newWorker(client stream.Client, toolset string, handler Handler, opts Options) (*worker, error) {
	o, err := opts.resolved()
	if err != nil {
		return nil, err
	}
	if client == nil || handler == nil {
		return nil, fmt.Errorf("provider: %w: Serve needs a client and a handler", registry.ErrInvalid)
	}
	if err := registry.CheckToolset(toolset); err != nil {
		return nil, err
	}
	w := &worker{client: client, toolset: toolset, handler: handler, opts: o, log: o.Logger.With("toolset", toolset),
		queue: make(chan *job, o.MaxQueuedToolCalls), retired: make(chan struct{}), drained: make(chan struct{}),
		heard: make(chan struct{}, 1), pongs: make(chan struct{}, maxPongs), greeted: make(chan struct{}, 1), renew: make(chan struct{}, 1), held: map[string]*job{}, cancelled: map[string]int64{}, finished: map[string]int64{},
		deaf:  map[string]time.Time{},
		aside: aside{ready: make(chan *job, inFlight(&o)), silent: map[string]*silence{}}}
	w.instance, w.host = newInstance()
	return w, w.describe()
}

// describe finds out what is served.
func (w *worker) describe() error {
	w.contract = w.opts.Contract
	if c, ok := w.handler.(Contractor); ok && w.contract == nil {
		made, err := c.Contract(w.toolset)
		if err != nil {
			return err
		}
		w.contract = &made
	}
	if w.contract == nil {
		return nil
	}
	if err := w.contract.Check(); err != nil {
		return err
	}
	if _, err := registry.Encode(w.contract); err != nil {
		return fmt.Errorf("provider: the contract of %q holds text that is not UTF-8: %w", w.toolset, err)
	}
	if w.contract.Toolset != w.toolset {
		return fmt.Errorf("provider: %w: the contract is that of toolset %q, and %q is served", registry.ErrInvalid, w.contract.Toolset, w.toolset)
	}
	w.prints = make(map[string]string, len(w.contract.Tools))
	for i := range w.contract.Tools {
		t := &w.contract.Tools[i]
		fp, err := t.Fingerprint()
		if err != nil {
			return err
		}
		w.prints[t.Name] = fp
	}
	return nil
}

// serve is the life of a worker.
func (w *worker) serve(ctx context.Context) error {
	w.work, w.endWork = context.WithCancel(context.WithoutCancel(ctx))
	defer w.endWork()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if teller, ok := w.client.(stream.DenialTeller); ok {
		defer teller.OnDenied(w.denied)()
	}
	subs, err := w.listen(ctx)
	defer closeAll(subs) // which waits for what is still answered
	defer w.hasDrained() // which a registry may wait to hear
	if err == nil {
		if err = w.begin(ctx); !errors.Is(err, ErrRefused) {
			defer w.leave()
		}
	}
	if ctx.Err() != nil {
		err = nil
	}
	if ctx.Err() != nil || err != nil {
		return errors.Join(err, w.closeSink())
	}
	for range w.opts.MaxConcurrentToolCalls {
		w.pool.Go(w.runQueue)
	}
	var keeping sync.WaitGroup
	keeping.Go(func() { w.keepLeases(max(w.sink.Lease()/3, stream.MinLease/3)) })
	var refused error
	keeping.Go(func() {
		if refused = w.stayKnown(ctx); refused != nil {
			stop()
		}
	})
	if w.opts.Serving != nil {
		w.opts.Serving()
	}
	w.log.Info("the worker serves", "instance", w.instance)
	err = w.receive(ctx)
	stop()
	err = errors.Join(err, w.drain())
	keeping.Wait()
	return errors.Join(refused, err)
}

// closeSink closes the sink of a worker that has received nothing, if there is one.
func (w *worker) closeSink() error {
	if w.sink == nil {
		return nil
	}
	return w.sink.Close()
}

// hasDrained says that the worker has no call any more.
func (w *worker) hasDrained() { w.ending.Do(func() { close(w.drained) }) }

func closeAll(subs []stream.Subscription) {
	for _, s := range subs {
		_ = s.Close() // nothing is left to be done about it
	}
}

// begin announces the worker and opens its stream. It returns early when ctx ends.
func (w *worker) begin(ctx context.Context) error {
	for ctx.Err() == nil {
		admitted, err := w.enter(ctx)
		if err != nil || ctx.Err() != nil {
			return err
		}
		if err = w.open(ctx); admitted || !errors.Is(err, stream.ErrForbidden) {
			return err
		}
		w.awaitStream(ctx, err)
	}
	return nil
}

// open opens the request stream and its sink.
func (w *worker) open(ctx context.Context) error {
	s, err := w.client.Stream(ctx, registry.RequestStream(w.toolset), nil)
	if err != nil {
		return fmt.Errorf("provider: open the request stream of %q: %w", w.toolset, err)
	}
	w.sink, err = s.Sink(ctx, w.opts.SinkName, &stream.SinkOptions{Lease: w.opts.SinkAckGracePeriod, MaxDeliveries: w.opts.MaxDeliveries,
		InFlight: inFlight(&w.opts), Dead: w.dead})
	if err != nil {
		return fmt.Errorf("provider: open the sink %q of %q: %w", w.opts.SinkName, w.toolset, err)
	}
	return nil
}

// receive reads the stream until ctx ends or the worker is retired. It never
// waits for a tool.
func (w *worker) receive(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-w.retired:
			stop()
		case <-ctx.Done():
		}
	}()
	for {
		e, err := w.sink.Receive(ctx)
		if err == nil {
			w.take(e)
			continue
		}
		select {
		case <-w.retired:
			return ErrSuperseded
		default:
		}
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("provider: the request stream of %q: %w", w.toolset, err)
	}
}

// stopGrace is how long calls that were told to end have for it, beyond the
// drain. What they still hold then is left to the end of its lease.
const stopGrace = time.Second

// drain stops the intake, finishes what runs, and gives back what waits.
func (w *worker) drain() error {
	w.draining.Store(true)
	err := w.sink.Close()
	close(w.queue)
	w.giveBack()
	w.handBack()
	ended := make(chan struct{})
	go func() {
		w.pool.Wait()
		w.tasks.Wait()
		w.handBack() // what was claimed meanwhile
		w.tasks.Wait()
		close(ended)
	}()
	if !within(ended, w.opts.DrainTimeout) {
		err = errors.Join(err, ErrDrain)
		w.endWork()
		within(ended, stopGrace)
	}
	w.hasDrained()
	return err
}

// within reports whether done is closed before d is over.
func within(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// refusals is how many calls beyond the full queue the worker has in its hands to
// refuse them.
const refusals = 64

// inFlight is how many calls the worker has in its hands at most.
func inFlight(o *Options) int {
	return o.MaxConcurrentToolCalls + o.MaxQueuedToolCalls + refusals
}
