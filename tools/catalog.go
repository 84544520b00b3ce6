package tools

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/identity"
)

// CatalogOption configures a catalog when it is made.
type CatalogOption func(*catalogConfig)

type catalogConfig struct {
	search     ToolSearchCache
	bus        events.EventBus
	stages     Stages
	middleware []Middleware
	identity   bool
	strict     bool
	logger     *slog.Logger
	amend      func(*Tool)
	resources  map[string]json.RawMessage
}

// WithSearchCache attaches a search index. Without one Search finds nothing.
func WithSearchCache(sc ToolSearchCache) CatalogOption {
	return func(c *catalogConfig) { c.search = sc }
}

// WithEvents publishes the events of every tool on bus.
func WithEvents(bus events.EventBus) CatalogOption { return func(c *catalogConfig) { c.bus = bus } }

// WithStages sets the operator's parts of the road.
func WithStages(s Stages) CatalogOption { return func(c *catalogConfig) { c.stages = s } }

// WithMiddleware adds middleware around every call, the first outermost. It
// runs before the arguments are checked, so that what it changes is checked.
func WithMiddleware(m ...Middleware) CatalogOption {
	return func(c *catalogConfig) { c.middleware = append(c.middleware, m...) }
}

// WithRequiredIdentity refuses calls whose context carries no full identity.
func WithRequiredIdentity() CatalogOption { return func(c *catalogConfig) { c.identity = true } }

// WithStrictNames refuses names that StrictNames refuses.
func WithStrictNames() CatalogOption { return func(c *catalogConfig) { c.strict = true } }

// WithLogger sets where panics of tools are reported, with their stacks.
// Without it they go to slog's default logger.
func WithLogger(l *slog.Logger) CatalogOption { return func(c *catalogConfig) { c.logger = l } }

// WithAmend sets a function that adjusts each tool's metadata before it is
// bound, such as an operator's settings. It cannot change a tool's name.
func WithAmend(f func(*Tool)) CatalogOption { return func(c *catalogConfig) { c.amend = f } }

// WithSchemaResources sets the documents that a tool's schemas may refer to, by
// absolute URL. Nothing is ever loaded from a network or a file system.
func WithSchemaResources(byURL map[string]json.RawMessage) CatalogOption {
	return func(c *catalogConfig) { c.resources = byURL }
}

// catalog is the in-memory LiveCatalog. Readers use an immutable snapshot;
// writers take a lock.
type catalog struct {
	bus        events.EventBus
	middleware []Middleware
	identity   bool
	strict     bool
	logger     *slog.Logger
	search     ToolSearchCache
	schemas    *compiled

	stages atomic.Pointer[Stages]
	// current is the snapshot, or nil after a change that no reader has seen.
	current atomic.Pointer[Snapshot]

	mu         sync.Mutex // guards the fields below
	tools      map[string]*binding
	generation uint64
	order      uint64
	amend      func(*Tool)
	watchers   map[chan uint64]struct{}

	searchMu sync.Mutex // guards synced and calls of search.Sync
	synced   uint64

	late lateness
	slow sloth
}

// NewCatalog returns an empty catalog. What it returns is a LiveCatalog and is
// safe for concurrent use.
func NewCatalog(opts ...CatalogOption) ToolCatalog {
	var cfg catalogConfig
	for _, o := range opts {
		if o != nil {
			o(&cfg)
		}
	}
	if cfg.logger == nil {
		cfg.logger = slog.Default()
	}
	c := &catalog{bus: cfg.bus, middleware: cfg.middleware, identity: cfg.identity, strict: cfg.strict,
		logger: cfg.logger, search: cfg.search, schemas: newCompiled(cfg.resources), amend: cfg.amend,
		tools: map[string]*binding{}, watchers: map[chan uint64]struct{}{}}
	c.stages.Store(&cfg.stages)
	c.current.Store(newSnapshot(0, map[string]*binding{}))
	return c
}

// newCallID returns an id that no other call of any process has, and that tells
// nothing of other calls.
func newCallID() string {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(b[8:], rand.Uint64())
	var id [2 * len(b)]byte
	hex.Encode(id[:], b[:])
	return string(id[:])
}

// Register implements ToolCatalog.
func (c *catalog) Register(d ToolDescriptor) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.add(d); err != nil {
		return err
	}
	c.changed(nil, d.Tool.Source, counts{added: 1})
	return nil
}

func (c *catalog) add(d ToolDescriptor) error {
	if _, ok := c.tools[d.Tool.Name]; ok {
		return duplicate(d.Tool.Name)
	}
	b, err := c.bind(d, nil)
	if err != nil {
		return err
	}
	c.tools[d.Tool.Name] = b
	return nil
}

// RegisterAll implements BatchRegistrar.
func (c *catalog) RegisterAll(list []ToolDescriptor) error {
	if len(list) == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	found := make([]candidate, len(list))
	next := make(map[string]*binding, len(list))
	for i, d := range list {
		_, again := next[d.Tool.Name]
		if again || c.tools[d.Tool.Name] != nil {
			return duplicate(d.Tool.Name)
		}
		next[d.Tool.Name] = nil
		found[i].d = d
	}
	c.bindAll(found)
	for _, f := range found {
		if f.err != nil {
			return f.err
		}
		next[f.d.Tool.Name] = f.b
	}
	c.install(next, counts{added: len(list)}, list[0].Tool.Source)
	return nil
}

func duplicate(name string) *Error {
	return &Error{Tool: name, Code: ErrToolDuplicateName, Class: ErrClassPermanent, Delivery: NotDelivered}
}

// Replace implements CatalogReplacer.
func (c *catalog) Replace(wrapped []ToolDescriptor) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := make(map[string]*binding, len(wrapped))
	for _, d := range wrapped {
		old := c.tools[d.Tool.Name]
		if old == nil {
			return notFound(d.Tool.Name)
		}
		if next[d.Tool.Name] != nil {
			return duplicate(d.Tool.Name)
		}
		b, err := c.bind(d, old)
		if err != nil {
			return err
		}
		b.below = old.above()
		if d.isBound() {
			b.below = d.bound.below
		}
		next[d.Tool.Name] = b
	}
	c.install(next, counts{updated: len(next)}, "")
	return nil
}

// install puts bindings in place in one step.
func (c *catalog) install(next map[string]*binding, n counts, source ToolSourceID) {
	if len(next) == 0 {
		return
	}
	maps.Copy(c.tools, next)
	c.changed(c.rebuild(), source, n)
}

// Deregister implements Deregisterer.
func (c *catalog) Deregister(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.tools[name]
	if b == nil {
		return notFound(name)
	}
	delete(c.tools, name)
	c.changed(nil, b.tool.Source, counts{removed: 1})
	return nil
}

// Quarantine implements Quarantiner.
func (c *catalog) Quarantine(name string, hidden bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.tools[name]
	if old == nil {
		return notFound(name)
	}
	if old.hidden == hidden {
		return nil
	}
	b, err := c.bind(old.registered(), old)
	if err != nil {
		return err
	}
	b.hidden, b.below = hidden, old.below
	c.install(map[string]*binding{name: b}, counts{updated: 1}, b.tool.Source)
	return nil
}

// Amend implements Amender.
func (c *catalog) Amend(f func(*Tool)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.amend
	c.amend = f
	list := make([]candidate, 0, len(c.tools))
	for _, old := range c.tools {
		list = append(list, candidate{d: old.registered(), old: old})
	}
	c.bindAll(list)
	next := make(map[string]*binding, len(list))
	for _, f := range list {
		if f.err != nil {
			c.amend = before
			return f.err
		}
		f.b.below = f.old.below
		next[f.d.Tool.Name] = f.b
	}
	c.install(next, counts{updated: len(next)}, "")
	return nil
}

// SwapSource implements SourceSwapper.
func (c *catalog) SwapSource(id ToolSourceID, list []ToolDescriptor) Changes {
	c.mu.Lock()
	defer c.mu.Unlock()
	next, ch := c.accept(id, list)
	for name, b := range c.tools {
		if b.given.Source == id && next[name] == nil {
			delete(c.tools, name)
			ch.Removed = append(ch.Removed, name)
		}
	}
	slices.Sort(ch.Added)
	slices.Sort(ch.Updated)
	slices.Sort(ch.Removed)
	maps.Copy(c.tools, next)
	c.changed(c.rebuild(), id, counts{len(ch.Added), len(ch.Updated), len(ch.Removed)})
	return ch
}

// accept binds the tools of a source that can be registered.
func (c *catalog) accept(id ToolSourceID, list []ToolDescriptor) (map[string]*binding, Changes) {
	var ch Changes
	found := make([]candidate, 0, len(list))
	next := make(map[string]*binding, len(list))
	for _, d := range list {
		d.Tool.Source = id
		old := c.tools[d.Tool.Name]
		if _, again := next[d.Tool.Name]; again || old != nil && old.given.Source != id {
			ch.Refused = append(ch.Refused, Refusal{Name: d.Tool.Name, Err: duplicate(d.Tool.Name)})
			continue
		}
		next[d.Tool.Name] = nil
		found = append(found, candidate{d: d, old: old})
	}
	c.bindAll(found)
	for _, f := range found {
		name := f.d.Tool.Name
		next[name] = f.b
		switch {
		case f.err != nil:
			delete(next, name)
			ch.Refused = append(ch.Refused, Refusal{Name: name, Err: f.err})
		case f.old == nil:
			ch.Added = append(ch.Added, name)
		case f.old.tool.DefinitionDigest != f.b.tool.DefinitionDigest, !sameAudience(&f.old.tool, &f.b.tool):
			ch.Updated = append(ch.Updated, name)
		default:
			ch.Unchanged++
		}
	}
	return next, ch
}

// sameAudience reports whether the same callers see two tools, in the same lists.
func sameAudience(a, b *Tool) bool {
	return a.Loading == b.Loading && slices.Equal(a.Tenants, b.Tenants) && slices.Equal(a.AuthScopes, b.AuthScopes)
}

type counts struct{ added, updated, removed int }

// changed makes a change visible: the given snapshot, or the next one that a
// reader asks for. The caller holds the lock.
func (c *catalog) changed(s *Snapshot, source ToolSourceID, n counts) {
	if s == nil {
		c.generation++
		c.current.Store(nil)
	}
	if n == (counts{}) {
		return
	}
	for w := range c.watchers {
		offer(w, c.generation)
	}
	if c.bus != nil {
		c.tell(CatalogChangedPayload{Source: source, Generation: c.generation, Added: n.added, Updated: n.updated, Removed: n.removed})
	}
}

func (c *catalog) tell(p CatalogChangedPayload) {
	ctx := context.Background()
	defer c.survive(ctx, "", "event bus")
	_ = c.bus.Publish(ctx, events.Event{Type: EventTypeCatalogChanged, Time: time.Now(), Payload: p})
}

// offer leaves the newest value in a channel that holds one.
func offer(w chan uint64, v uint64) {
	select {
	case <-w:
	default:
	}
	select {
	case w <- v:
	default:
	}
}

// rebuild publishes a snapshot of the tools as they are now. The caller holds
// the lock.
func (c *catalog) rebuild() *Snapshot {
	c.generation++
	return c.publish()
}

func (c *catalog) publish() *Snapshot {
	c.schemas.trim(c.tools)
	s := newSnapshot(c.generation, maps.Clone(c.tools))
	c.current.Store(s)
	return s
}

// Snapshot implements Snapshotter. It takes no lock unless tools were
// registered one by one since the last read.
func (c *catalog) Snapshot() *Snapshot {
	if s := c.current.Load(); s != nil {
		return s
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.current.Load(); s != nil {
		return s
	}
	return c.publish()
}

// Resolve implements ToolCatalog.
func (c *catalog) Resolve(name string) (d ToolDescriptor, found bool) {
	b := c.Snapshot().byName[name]
	if b == nil {
		return d, false
	}
	b.descriptor(&d)
	return d, true
}

// List implements ToolCatalog.
func (c *catalog) List(filter CatalogFilter) []Tool {
	list := c.Snapshot().Visible(filter).list
	if filter.NameRegex != nil {
		list = slices.DeleteFunc(slices.Clone(list), func(b *binding) bool {
			return !filter.NameRegex.MatchString(b.tool.Name)
		})
	}
	return copyTools(list)
}

// Call implements Caller.
func (c *catalog) Call(ctx context.Context, name string, args json.RawMessage) (ToolResult, error) {
	if b := c.Snapshot().byName[name]; b != nil {
		return b.Invoke(ctx, args)
	}
	return c.unknown(ctx, name)
}

// SwapStages implements StageSwapper.
func (c *catalog) SwapStages(s Stages) { c.stages.Store(&s) }

// Watch implements Watcher.
func (c *catalog) Watch() (<-chan uint64, func()) {
	w := make(chan uint64, 1)
	c.mu.Lock()
	c.watchers[w] = struct{}{}
	c.mu.Unlock()
	var once sync.Once
	return w, func() {
		once.Do(func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.watchers, w)
			close(w)
		})
	}
}

// unknown answers a call of a tool that the caller cannot see, whether it
// exists or not.
func (c *catalog) unknown(ctx context.Context, name string) (ToolResult, error) {
	name = truncate(name, maxShownName)
	em := newEmitter(ctx, c, name, nil)
	if err := c.checkCaller(ctx, name); err != nil {
		em.failed(ctx, "", err)
		return ToolResult{}, err
	}
	if !em.silent() {
		em.emit(ctx, EventTypeToolUnknown, ToolUnknownPayload{Identity: em.who, ToolName: name}, time.Now())
	}
	return ToolResult{}, notFound(name)
}

// CheckCaller returns the error that every call on ctx would end with because of
// its caller, or nil. It is an *Error: ErrIdentityRequired where the catalog
// demands an identity and ctx carries none.
func (c *catalog) CheckCaller(ctx context.Context) error {
	if err := c.checkCaller(ctx, ""); err != nil {
		return err
	}
	return nil
}

// checkCaller is the first step of the road.
func (c *catalog) checkCaller(ctx context.Context, name string) *Error {
	if err := ctx.Err(); err != nil {
		return &Error{Tool: name, Class: ErrClassPermanent, Delivery: NotDelivered, Err: err}
	}
	if !c.identity {
		return nil
	}
	if id, _ := identity.From(ctx); !id.Complete() {
		return &Error{Tool: name, Code: ErrIdentityRequired, Class: ErrClassPermanent, Delivery: NotDelivered,
			Err: errors.New("set tenant, user and session on the context with identity.With")}
	}
	return nil
}
