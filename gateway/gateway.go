package gateway

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gocloud.dev/blob"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/artifacts"
	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/mcpserver"
	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/skill"
	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/store/sqlstore"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/auth"
	"github.com/toolcrib/toolcrib/tools/builtin"
	"github.com/toolcrib/toolcrib/tools/flow"
	"github.com/toolcrib/toolcrib/tools/flow/runs"
	"github.com/toolcrib/toolcrib/tools/mcptool"
	"github.com/toolcrib/toolcrib/tools/search"
	"github.com/toolcrib/toolcrib/turn"
	"github.com/toolcrib/toolcrib/view"
)

// Options is what a program adds to its configuration. The zero value and nil
// are the defaults.
type Options struct {
	// Logger gets what happens to sources and entrances; nil is silent.
	Logger *slog.Logger
	// DataDir, when not empty, takes the place of Config.DataDir.
	DataDir string
	// Session, when not empty, names the session of the client of ServeStdio, as
	// SessionHeader does that of others.
	Session string
	// Toolset, when not empty, is the toolset that the client of ServeStdio works
	// in. The error of Open is an *api.Error when the configuration has none of
	// that name.
	Toolset string
	// Register adds Go tools to the catalog, in order. The first error ends
	// Open.
	Register []func(tools.ToolCatalog) error
	// Version is what the gateway calls itself towards callers and sources.
	Version string

	// Adopts ends with a child of an MCP server also what it started and left
	// behind without a parent, on Linux. It makes this process the parent of all
	// its descendants that lose theirs, so it is for programs that start no
	// process in another session themselves.
	Adopts bool

	// Joins reaches workers over the stream server that another process of the
	// same data folder runs, and never runs one, for programs that make a few
	// calls and end.
	Joins bool

	// Attempted, when not nil, is told after each attempt at a source how that
	// source is. It is called by many goroutines, and must return soon.
	Attempted func(SourceState)

	broker   *auth.Broker     // of the tokens of sources; Open makes it
	instance string           // the gateway's name in handshakes; Open makes it
	nursery  *mcptool.Nursery // if the process adopts; Open makes it
	self     *Gateway         // that Open makes
	scratch  *mcptool.Scratch // for long answers of MCP servers; Open makes it
}

func (o *Options) resolved() Options {
	var out Options
	if o != nil {
		out = *o
	}
	if out.Logger == nil {
		out.Logger = slog.New(slog.DiscardHandler)
	}
	if out.Version == "" {
		out.Version = "dev"
	}
	return out
}

// Gateway is a running Toolcrib: a catalog, the sources that fill it, and the
// entrances to it. It is safe for concurrent use.
type Gateway struct {
	opts      Options
	log       *slog.Logger
	bus       *events.Bus
	cat       tools.LiveCatalog
	mcp       *mcpserver.Server
	store     store.Store     // nil without a data folder
	runs      flow.Runs       // of flows
	stored    *runs.Log       // where runs is that; nil without a data folder
	found     *view.Watched   // what callers have found
	discovery *view.Discovery // of MCP clients
	toolsets  toolsets
	index     *search.Index
	kept      *artifacts.Store // large results
	bucket    *blob.Bucket     // their content
	api       *api.Server
	calls     *gate
	waiting   *waiting
	workers   *workers      // nil when none are wanted
	timeout   time.Duration // of one attempt to reach a source

	life     context.Context // ends when sources that were replaced must
	end      context.CancelFunc
	retiring sync.WaitGroup
	sweeping sync.WaitGroup
	dropData func() error // without a data folder: removes what stood in for it

	opened  *Config                       // what the entrances were made from
	address atomic.Pointer[func() string] // where browsers reach the gateway

	reloading sync.Mutex // held by one Reload or Close at a time
	mu        sync.Mutex // guards what follows
	cfg       *Config
	sources   []*source
	closed    bool
	closeErr  error
}

// Open makes a gateway: the catalog, built-in and Go tools, and the sources,
// which connect in the background and are tried again while they are down. It
// returns ConfigErrors for a configuration that is wrong, refers to a secret
// that is not there, or needs a feature that this version does not have. ctx
// bounds Open alone; Close ends the gateway.
func Open(ctx context.Context, cfg *Config, opts *Options) (*Gateway, error) {
	if cfg == nil {
		cfg = &Config{}
	}
	g := &Gateway{opts: opts.resolved(), cfg: cfg, opened: cfg, calls: newGate()}
	g.log, g.timeout = g.opts.Logger, cfg.Limits.connectTimeout()
	g.opts.broker, g.opts.instance, g.opts.self = g.newBroker(), rand.Text(), g
	if g.opts.Adopts {
		g.opts.nursery = mcptool.NewNursery()
	}
	g.opts.scratch = g.cfg.Artifacts.scratch(g.dataDir())
	specs, err := prepare(cfg, &g.opts)
	if err != nil {
		return nil, err
	}
	g.life, g.end = context.WithCancel(context.Background())
	g.waiting = newWaiting(g.log)
	openData := func() error { return g.openData(ctx) }
	for _, step := range []func() error{ctx.Err, openData, g.openCatalog, g.registerTools, g.openWorkers} {
		if err := step(); err != nil {
			g.end()
			return nil, errors.Join(err, g.closeStore())
		}
	}
	if err := g.openToolsets(); err != nil {
		g.end()
		return nil, errors.Join(err, g.closeStore())
	}
	g.openEntrances()
	g.expect(cfg.Tools.Entries)
	g.startAll(append(specs, g.workers.specs()...))
	return g, nil
}

// startAll holds the lock until all are there, so that the first that is ready
// does not take itself for the last.
func (g *Gateway) startAll(specs []sourceSpec) {
	g.mu.Lock()
	for i := range specs {
		g.sources = append(g.sources, g.start(specs[i], nil))
	}
	g.mu.Unlock()
	g.noteEntries()
}

// prepare checks a configuration and resolves what it refers to. Everything
// that would keep it from starting is reported at once.
func prepare(cfg *Config, opts *Options) ([]sourceSpec, error) {
	if err := cfg.check().once().sorted(); err != nil {
		return nil, err
	}
	list, faults := cfg.sourceSpecs(opts.resolved())
	faults = slices.Concat(cfg.unavailable(), cfg.checkListen(), cfg.checkEmbeddings()).followedBy(faults)
	return list, faults.once().sorted()
}

// checkListen refuses an address that others can reach, as long as there is no
// authentication that would tell who they are.
func (c *Config) checkListen() ConfigErrors {
	if c.Listen == "" || loopback(c.Listen) {
		return nil
	}
	return ConfigErrors{c.faultAt("listen", "is an address that other machines reach, and this version has no authentication",
		"an address of this machine alone, such as "+DefaultListen)}
}

// openData makes the folder for state and opens the store in it. Without one,
// what would be kept there is kept in this process.
func (g *Gateway) openData(ctx context.Context) error {
	g.found, g.runs = view.Watch(view.NewMemory(nil)), flow.NewLog(nil)
	dir := g.dataDir()
	if dir == "" {
		return g.openArtifacts("")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("gateway: the data folder cannot be made: %w", err)
	}
	db, err := sqlstore.Open(ctx, filepath.Join(dir, storeFile), &sqlstore.Options{Logger: g.log})
	if err != nil {
		return fmt.Errorf("gateway: the store cannot be opened: %w", err)
	}
	g.store, g.found = db, view.Watch(storedMemory{db, foundTools})
	g.stored = runs.New(db, &runs.Options{Logger: g.log})
	g.runs = g.stored
	return g.openArtifacts(dir)
}

// storeFile is the store's file in the data folder.
const storeFile = "toolcrib.db"

// closeStore ends the use of the store, once nothing needs it any more.
func (g *Gateway) closeStore() error {
	err := errors.Join(g.closeArtifacts(), g.workers.close())
	if g.stored != nil {
		err = errors.Join(err, g.stored.Close(context.Background()))
	}
	if g.index != nil {
		err = errors.Join(err, g.index.Close())
	}
	if g.store != nil {
		err = errors.Join(err, g.store.Close())
	}
	return err
}

func (g *Gateway) openCatalog() error {
	known, err := events.NewRegistry(slices.Concat(tools.EventDefinitions(), turn.EventDefinitions(), skill.EventDefinitions(), flow.EventDefinitions(),
		registry.EventDefinitions())...)
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	g.bus = events.NewBus(known)
	g.index = g.newIndex()
	cat, ok := tools.NewCatalog(
		tools.WithEvents(g.bus),
		tools.WithSearchCache(g.index),
		tools.WithRequiredIdentity(),
		tools.WithLogger(g.log),
		tools.WithMiddleware(g.admit),
		tools.WithStages(stages(g.cfg.Tools.Entries)),
		tools.WithAmend(g.cfg.Tools.amender()),
	).(tools.LiveCatalog)
	if !ok {
		return errors.New("gateway: the catalog cannot change while it serves")
	}
	g.cat = cat
	return nil
}

func (g *Gateway) registerTools() error {
	if err := builtin.Register(g.cat, g.cfg.Tools.builtIns()...); err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	if err := g.registerMeta(); err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	if err := g.registerFetch(); err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	if err := g.registerSkillTools(g.cfg); err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	for _, register := range g.opts.Register {
		if err := register(g.cat); err != nil {
			return fmt.Errorf("gateway: register Go tools: %w", err)
		}
	}
	return nil
}

// admit counts the calls that are under way, and refuses new ones once the
// gateway drains.
func (g *Gateway) admit(next tools.Invoker) tools.Invoker {
	return func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
		if tools.CallFrom(ctx).Nested() {
			return next(ctx, args) // it is part of a call that is counted
		}
		if !g.calls.enter() {
			return tools.ToolResult{}, &tools.Error{Code: tools.ErrOverloaded, Class: tools.ErrClassTransient,
				Delivery: tools.NotDelivered, Retryable: true, Message: "the gateway is shutting down", Err: ErrClosed}
		}
		defer g.calls.leave()
		return next(events.With(ctx, g.bus), args)
	}
}

// start begins to supervise a source. The tools of before, which may be nil,
// serve until an attempt succeeds.
func (g *Gateway) start(spec sourceSpec, before *source) *source {
	s := &source{spec: spec, cat: g.cat, log: g.log, timeout: g.timeout, retire: g.retire, before: before}
	s.swapped = func() {
		g.attempted(s)
		if g.opts.Attempted != nil {
			g.opts.Attempted(s.status())
		}
	}
	s.begin()
	return s
}

// noteEntries says in the log which entries have no tool, once every source
// had the time to bring it.
func (g *Gateway) noteEntries() {
	for _, s := range g.running() {
		select {
		case <-s.first:
		default:
			return
		}
	}
	g.waiting.missing(g.cat)
}

func (g *Gateway) expect(entries []Entry) {
	g.waiting.expect(entries)
}

// PendingEntries returns the names of tools.entries that no tool has yet.
func (g *Gateway) PendingEntries() []string { return g.waiting.missing(g.cat) }

// unmatchedEntries are the pending entries whose tool cannot be one of a source
// that is not ready: those are most likely mistakes.
func (g *Gateway) unmatchedEntries() []string {
	var later []*source
	for _, s := range g.running() {
		if s.status().State != SourceReady {
			later = append(later, s)
		}
	}
	return slices.DeleteFunc(g.PendingEntries(), func(name string) bool {
		return slices.ContainsFunc(later, func(s *source) bool { return s.spec.canBring(name) })
	})
}

func (g *Gateway) config() *Config {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.cfg
}

func (g *Gateway) running() []*source {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.sources)
}

// Catalog returns the catalog, in which tools can be registered while it
// serves. Its calls need an identity on the context; see LocalContext.
func (g *Gateway) Catalog() tools.LiveCatalog { return g.cat }

// Bus returns the bus on which everything that happens is published.
func (g *Gateway) Bus() events.EventBus { return g.bus }

// Ready waits until every source had its first attempt, whether or not it
// succeeded. It returns the error of ctx when that ends first.
func (g *Gateway) Ready(ctx context.Context) error {
	for _, s := range g.running() {
		select {
		case <-s.first:
		case <-s.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// ReadyFor is Ready for the sources that could bring a tool of that name alone.
func (g *Gateway) ReadyFor(ctx context.Context, name string) error {
	for _, s := range g.running() {
		if !s.spec.canBring(name) {
			continue
		}
		select {
		case <-s.first:
		case <-s.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Sources returns how each source is doing, in the order of the configuration.
func (g *Gateway) Sources() []SourceState {
	out := []SourceState{}
	ctx := g.LocalContext(context.Background())
	for _, s := range g.running() {
		state := s.status()
		state.AuthorizationURL = s.authorizationURL(ctx)
		out = append(out, state)
	}
	return out
}

// LocalContext returns a context whose caller is the local one, who needs no
// authentication: tenant and user "local", with tools.granted_scopes.
func (g *Gateway) LocalContext(ctx context.Context) context.Context { return g.local(ctx, "local") }

// SessionContext is LocalContext for the session of that name, as SessionHeader
// names one; the empty name is LocalContext.
func (g *Gateway) SessionContext(ctx context.Context, name string) (context.Context, error) {
	session, err := namedSession(name, "local")
	if err != nil {
		return nil, err
	}
	return g.local(ctx, session), nil
}

func (g *Gateway) local(ctx context.Context, session string) context.Context {
	scopes := g.config().Tools.GrantedScopes
	id := identity.Identity{TenantID: localName, UserID: localName, SessionID: session}
	return events.With(identity.With(ctx, id, scopes...), g.bus)
}

const localName = "local"

// Close drains: new calls are refused, calls under way may end until ctx does,
// then sources and sessions are closed and children end. It returns an error
// that wraps that of ctx when calls had to be left behind. It may be called
// more than once; later calls return what the first did.
func (g *Gateway) Close(ctx context.Context) error {
	drained := g.calls.close()
	g.reloading.Lock()
	defer g.reloading.Unlock()
	if g.closed {
		return g.closeErr
	}
	var err error
	select {
	case <-drained:
		err = g.closeEntrances(ctx)
	case <-ctx.Done():
		if g.stored != nil {
			g.stored.Closing()
		}
		err = fmt.Errorf("gateway: calls were still running when it was closed: %w", ctx.Err())
		_ = g.closeEntrances(ctx) // cuts off the same calls, and says so again
	}
	g.end()
	err = errors.Join(err, closeSources(ctx, g.running()))
	g.retiring.Wait()
	err = errors.Join(err, g.closeStore())
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed, g.closeErr = true, err
	return err
}

// closeSources closes all at the same time, as each may take a while.
func closeSources(ctx context.Context, list []*source) error {
	faults := make([]error, len(list))
	var wg sync.WaitGroup
	for i, s := range list {
		wg.Go(func() {
			s.halt()
			if old := s.serving(); old != nil && old != s {
				faults[i] = old.close(ctx)
			}
			faults[i] = errors.Join(faults[i], s.close(ctx))
		})
	}
	wg.Wait()
	return errors.Join(faults...)
}

func (l Limits) connectTimeout() time.Duration { return millis(l.ConnectTimeoutMS, 60*time.Second) }

func (l Limits) drainTimeout() time.Duration { return millis(l.DrainTimeoutMS, 20*time.Second) }

func millis(n int, otherwise time.Duration) time.Duration {
	if n == 0 {
		return otherwise
	}
	return time.Duration(n) * time.Millisecond
}
