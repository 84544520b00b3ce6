package registry

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/internal/crew"
	"github.com/toolcrib/toolcrib/internal/loglimit"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/store"
)

// Options adjusts a Registry. Nil means the defaults.
type Options struct {
	// Namespace keeps installations that share a backend apart. Workers name
	// the same. Empty means DefaultNamespace.
	Namespace string
	// Admit decides which workers may serve which toolsets, and who sees them.
	// Nil admits every worker that reaches the backend, and shows its tools to
	// every caller of the catalog: the backend's credentials are the only lock.
	Admit Admit
	// Bus takes the events of this package. Nil publishes none.
	Bus events.EventBus
	// Logger is silent when nil.
	Logger *slog.Logger

	// Wait lets calls wait for a worker when none is up, until their deadline.
	Wait bool
	// SyncLater lets the first record of a call reach the disk some time after it
	// was written. It survives the end of the process. A loss of power may take
	// calls of the last moments, which nobody runs again but their own caller, who
	// may ask for one again and is not known. Without it a call is on the disk as
	// claimed before its worker runs it.
	SyncLater bool
	// RecordAll keeps a record of calls of harmless tools too.
	RecordAll bool
	// Retention is how long the record of a call is kept after its end, where somebody
	// can ask for the call again or nobody had its result. Others are removed then.
	Retention time.Duration
	// MaxCallTime is the deadline of a call whose context has none.
	MaxCallTime time.Duration
	// MaxOutstanding bounds the calls of one toolset that have no answer yet; a
	// further one is refused as overloaded.
	MaxOutstanding int

	// PingInterval is the time between pings of a worker, MissedPings how many
	// may stay without an answer in a row, and StaleAfter the age of the last
	// answer from which a worker counts as down in any case.
	PingInterval time.Duration
	MissedPings  int
	StaleAfter   time.Duration
	// DrainTimeout bounds how long a changed contract waits for the calls of
	// the one before it.
	DrainTimeout time.Duration
	// Ephemeral says that the store ends with this process, so that Close removes
	// the stream of results, which is the store's own.
	Ephemeral bool
	// Requests bounds the toolsets' request streams. Nil means the stream
	// package's defaults.
	Requests *stream.Options
}

func (o *Options) resolved() (Options, error) {
	var r Options
	if o != nil {
		r = *o
	}
	for name, d := range map[string]time.Duration{"Retention": r.Retention, "MaxCallTime": r.MaxCallTime, "PingInterval": r.PingInterval,
		"StaleAfter": r.StaleAfter, "DrainTimeout": r.DrainTimeout} {
		if d < 0 {
			return r, fmt.Errorf("%w: option %s is negative", ErrInvalid, name)
		}
	}
	if r.MissedPings < 0 || r.MaxOutstanding < 0 {
		return r, fmt.Errorf("%w: options MissedPings and MaxOutstanding may not be negative", ErrInvalid)
	}
	if _, err := r.Requests.Resolved(); err != nil {
		return r, fmt.Errorf("%w: option Requests: %w", ErrInvalid, err)
	}
	r.Namespace = cmp.Or(r.Namespace, DefaultNamespace)
	if err := CheckNamespace(r.Namespace); err != nil {
		return r, err
	}
	r.Retention = cmp.Or(r.Retention, DefaultRetention)
	r.MaxCallTime = cmp.Or(r.MaxCallTime, DefaultMaxCallTime)
	r.MaxOutstanding = cmp.Or(r.MaxOutstanding, DefaultMaxOutstanding)
	r.PingInterval = cmp.Or(r.PingInterval, DefaultPingInterval)
	r.MissedPings = cmp.Or(r.MissedPings, DefaultMissedPings)
	r.StaleAfter = cmp.Or(r.StaleAfter, max(DefaultStaleAfter, 4*min(r.PingInterval, MaxPingInterval)))
	if r.PingInterval < MinPingInterval || r.PingInterval > MaxPingInterval {
		return r, fmt.Errorf("%w: option PingInterval is %s; %s to %s are allowed", ErrInvalid, r.PingInterval, MinPingInterval, MaxPingInterval)
	}
	if r.StaleAfter <= r.PingInterval {
		return r, fmt.Errorf("%w: option StaleAfter is %s, and must be longer than PingInterval, which is %s", ErrInvalid, r.StaleAfter, r.PingInterval)
	}
	r.DrainTimeout = cmp.Or(r.DrainTimeout, DefaultDrainTimeout)
	r.Logger = loglimit.New(r.Logger)
	return r, nil
}

// Registry sends calls to workers. It is safe for concurrent use.
type Registry struct {
	client stream.Client
	ledger ledger
	opts   Options
	log    *slog.Logger

	process string // names this process among registries
	home    string // names the store
	secret  string // that the registries of the store share
	inbox   string
	started time.Time

	outOfRoom sparing
	forbidden sparing
	forged    sparing
	crowded   sparing

	subs    []stream.Subscription
	results stream.Sink
	// dropResults removes the stream of results, whose store ends with the process.
	dropResults func(context.Context) error
	keeper      keeper
	ctx         context.Context // of everything that goes on in the background
	stop        context.CancelFunc
	running     sync.WaitGroup
	sends       crew.Crew

	mu       sync.Mutex // guards what follows
	toolsets map[string]*toolset
	calls    map[string]*call
	absent   map[string]time.Time // since when nobody responds to a worker's subject
	pings    map[string]string    // toolsets by ids of pings on their request streams
	notify   []*Source
	waiting  int // callers
	closed   bool
	idle     chan struct{} // closed when closed and the last caller was answered
}

// New returns a registry that takes announcements and serves calls until it is
// closed. The toolsets that the store knows are there from the start. client
// and records stay the caller's, and are not closed. ErrNamespaceTaken says that
// a registry with another store is in the namespace.
func New(ctx context.Context, client stream.Client, records store.Records, opts *Options) (*Registry, error) {
	if client == nil || records == nil {
		return nil, fmt.Errorf("%w: a registry needs a stream client and a store", ErrInvalid)
	}
	o, err := opts.resolved()
	if err != nil {
		return nil, err
	}
	r := &Registry{client: client, ledger: ledger{records: records, retention: o.Retention, later: o.SyncLater}, opts: o, log: o.Logger,
		process: rand.Text(), started: time.Now(), toolsets: map[string]*toolset{}, calls: map[string]*call{}, absent: map[string]time.Time{}, pings: map[string]string{}, idle: make(chan struct{})}
	r.keeper.init()
	r.inbox = shared(o.Namespace, "process:"+r.process)
	r.ctx, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := r.begin(ctx); err != nil {
		return nil, errors.Join(err, r.release())
	}
	return r, nil
}

// begin opens what the registry listens to.
func (r *Registry) begin(ctx context.Context) error {
	if err := r.settleIn(ctx); err != nil {
		return err
	}
	if err := r.loadToolsets(ctx); err != nil {
		return err
	}
	if err := r.listen(ctx); err != nil {
		return err
	}
	if err := r.openResults(ctx); err != nil {
		return err
	}
	r.running.Go(r.pingForever)
	r.running.Go(r.tendForever)
	r.running.Go(r.readResults)
	r.running.Go(func() { r.keeper.run(r.ctx, &r.ledger) })
	r.running.Go(r.helloAgain)
	return r.hello(ctx)
}

func (r *Registry) listen(ctx context.Context) error {
	for _, l := range []struct {
		subject string
		answer  func(context.Context, stream.Message) stream.Message
	}{
		{r.inbox, r.settleRequest},
		{r.settleSubject(), r.settleRequest},
		{r.homeSubject(), r.homeRequest},
		{AnnounceSubject(r.opts.Namespace), r.announceRequest},
	} {
		sub, err := r.client.Respond(ctx, l.subject, l.answer)
		if err != nil {
			return fmt.Errorf("registry: respond to %s: %w", l.subject, err)
		}
		r.subs = append(r.subs, sub)
	}
	for subject, handle := range map[string]func(stream.Message){
		NotesSubject(r.inbox):            r.note,
		shared(r.opts.Namespace, "news"): r.hear,
		PongSubject(r.opts.Namespace):    r.hearPong,
	} {
		sub, err := r.client.Subscribe(ctx, subject, handle)
		if err != nil {
			return fmt.Errorf("registry: listen to %s: %w", subject, err)
		}
		r.subs = append(r.subs, sub)
	}
	return nil
}

// Close takes no more calls, waits until those under way have ended or ctx has,
// and releases what the registry holds. Workers go on; what is recorded stays.
// It may be called more than once.
func (r *Registry) Close(ctx context.Context) error {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		if r.waiting == 0 {
			close(r.idle)
		}
	}
	r.mu.Unlock()
	var left error
	select {
	case <-r.idle:
	case <-ctx.Done():
		left = fmt.Errorf("registry: calls were still under way: %w", ctx.Err())
	}
	return errors.Join(left, r.release())
}

// release ends what goes on in the background.
func (r *Registry) release() error {
	r.mu.Lock()
	r.stop() // with the lock, so that nothing begins in the background any more
	r.mu.Unlock()
	r.running.Wait()
	r.sends.Wait()
	r.mu.Lock()
	subs, results, drop := r.subs, r.results, r.dropResults
	r.subs, r.results, r.dropResults = nil, nil, nil
	r.mu.Unlock()
	var faults []error
	for _, s := range subs {
		faults = append(faults, s.Close())
	}
	if results != nil {
		faults = append(faults, results.Close())
	}
	if drop != nil {
		ctx, cancel := context.WithTimeout(context.Background(), dropTime)
		defer cancel()
		faults = append(faults, drop(ctx))
	}
	return errors.Join(faults...)
}

// dropTime bounds how long Close waits for the stream of results to be removed.
const dropTime = 2 * time.Second

// errClosed is what calls of a closed registry fail with.
var errClosed = errors.New("the registry of workers is closed")
