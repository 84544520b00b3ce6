package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/tools"
)

// toolset is what the registry knows of one toolset.
type toolset struct {
	name string
	reg  *Registry

	mu        sync.Mutex // guards what follows
	agreed    agreement
	prints    map[string]string // fingerprints of its tools, by name
	instances map[string]*instance
	waiting   map[string]StandbyState // workers on standby, by their ids
	changing  bool                    // calls wait: a contract takes the place of another
	lastPong  time.Time
	changed   chan struct{} // closed and replaced when calls may go on, or must not wait longer
	requests  stream.Stream

	hasDead atomic.Bool // the stream of dead letters was made
}

// agreement is what is served under a toolset's name. The store keeps it.
type agreement struct {
	Contract    Contract        `json:"contract"`
	Fingerprint string          `json:"fingerprint"`
	Revision    int             `json:"revision"`
	Grant       Grant           `json:"grant"`
	Retired     map[string]bool `json:"retired,omitempty"` // fingerprints that were replaced
	Since       time.Time       `json:"since"`
	// Founded is when the toolset was announced first. Of two toolsets with a tool
	// of one name, the older one has it.
	Founded time.Time `json:"founded,omitzero"`
	// Unnamed says that workers serve it which do not announce themselves.
	Unnamed bool `json:"unnamed,omitempty"`
}

func (a *agreement) founded() time.Time {
	if a.Founded.IsZero() {
		return a.Since
	}
	return a.Founded
}

// instance is one worker of a toolset.
type instance struct {
	id, version, host string
	since             time.Time
	lastPong          time.Time
	missed            int
	up                bool
	status            Status
	ahead             time.Duration // of its clock; see apart
}

func toolsetKey(name string) store.Key {
	return store.Key{Collection: toolsetCollection, Owner: store.Global(), Name: name}
}

func (r *Registry) newToolset(name string, a agreement) *toolset {
	ts := &toolset{name: name, reg: r, instances: map[string]*instance{}, waiting: map[string]StandbyState{}, changed: make(chan struct{})}
	ts.agree(a)
	return ts
}

// loadToolsets reads the toolsets that were known before this process began.
func (r *Registry) loadToolsets(ctx context.Context) error {
	after := ""
	for {
		page, err := r.ledger.records.List(ctx, store.Range{Collection: toolsetCollection, Owner: store.Global(), After: after})
		if err != nil {
			return fmt.Errorf("registry: the toolsets cannot be read: %w", err)
		}
		for _, rec := range page.Records {
			after = rec.Key.Name
			var a agreement
			if err := json.Unmarshal(rec.Value, &a); err != nil || a.Contract.Check() != nil {
				r.log.Warn("what is kept of a toolset cannot be read; its workers will say it again", "toolset", rec.Key.Name)
				continue
			}
			r.toolsets[rec.Key.Name] = r.newToolset(rec.Key.Name, a)
		}
		if !page.More {
			return nil
		}
	}
}

// reread takes over what another registry keeps of a toolset.
func (r *Registry) reread(ctx context.Context, name string) (*toolset, error) {
	rec, err := r.ledger.records.Get(ctx, toolsetKey(name))
	if err != nil {
		return nil, err
	}
	var a agreement
	if err := json.Unmarshal(rec.Value, &a); err != nil {
		return nil, fmt.Errorf("%w: what is kept of toolset %q cannot be read", ErrInvalid, name)
	}
	r.mu.Lock()
	ts := r.toolsets[name]
	made := ts == nil
	if made {
		ts = r.newToolset(name, a)
		r.toolsets[name] = ts
	}
	r.mu.Unlock()
	ts.mu.Lock()
	changed := ts.agreed.Fingerprint != a.Fingerprint || ts.agreed.Revision != a.Revision
	if changed {
		ts.instances = map[string]*instance{}
	}
	granted := !sameGrant(ts.agreed.Grant, a.Grant)
	if changed || granted || ts.agreed.Unnamed != a.Unnamed {
		ts.agree(a)
	}
	ts.mu.Unlock()
	if made || changed || granted {
		r.changedTools()
	}
	return ts, nil
}

// keepToolset writes what is agreed.
func (r *Registry) keepToolset(ctx context.Context, name string, a agreement) error {
	value, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("%w: toolset %q cannot be kept: %w", ErrInvalid, name, err)
	}
	if _, err := store.Put(ctx, r.ledger.records, toolsetKey(name), value, store.Any); err != nil {
		return fmt.Errorf("registry: toolset %q cannot be kept: %w", name, err)
	}
	return nil
}

// Forget removes a toolset and its tools. Workers that still serve it bring it
// back when they announce themselves again. It returns an error that wraps
// store.ErrNotFound when there is none of that name.
func (r *Registry) Forget(ctx context.Context, name string) error {
	r.mu.Lock()
	ts := r.toolsets[name]
	delete(r.toolsets, name)
	r.mu.Unlock()
	if ts == nil {
		return fmt.Errorf("registry: there is no toolset %q: %w", name, store.ErrNotFound)
	}
	ts.mu.Lock()
	ts.instances = map[string]*instance{}
	ts.wake()
	ts.mu.Unlock()
	r.changedTools()
	return store.Delete(ctx, r.ledger.records, toolsetKey(name), store.Any)
}

// wake lets those who wait look again. The caller holds the lock.
func (ts *toolset) wake() {
	close(ts.changed)
	ts.changed = make(chan struct{})
}

// live counts the workers that are up. The caller holds the lock.
func (ts *toolset) live() int {
	n := 0
	for _, i := range ts.instances {
		if i.up {
			n++
		}
	}
	return n
}

// errDown says that no worker is up.
type errDown struct {
	toolset string
	last    time.Time // zero when none was heard of since the registry began
}

func (e *errDown) Error() string {
	if e.last.IsZero() {
		return fmt.Sprintf("no worker serves toolset %q, and none has since this gateway started", e.toolset)
	}
	return fmt.Sprintf("no worker serves toolset %q: the last one answered %s ago", e.toolset, age(time.Since(e.last)))
}

// age rounds a duration for people.
func age(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(time.Second)
}

// ready waits until a call may be sent: at once when a worker is up, and while
// the contract changes. Without a worker it fails, or waits when the call does, for
// which another process may bring the answer meanwhile.
func (ts *toolset) ready(ctx context.Context, c *call) error {
	for {
		ts.mu.Lock()
		live, changing, changed, last := ts.live(), ts.changing, ts.changed, ts.lastPong
		ts.mu.Unlock()
		switch {
		case changing:
		case live > 0:
			return nil
		case !c.wait:
			return &errDown{toolset: ts.name, last: last}
		}
		select {
		case <-changed:
		case <-c.done:
			return errMet
		case <-c.refused:
			return errMet
		case <-ts.reg.ctx.Done():
			return errClosed
		case <-ctx.Done():
			if changing || live > 0 {
				return ctx.Err()
			}
			return errors.Join(ctx.Err(), &errDown{toolset: ts.name, last: last})
		}
	}
}

// isReady reports whether a call may be sent at once.
func (ts *toolset) isReady() bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return !ts.changing && ts.live() > 0
}

// agree takes over an agreement. The caller holds the lock, or is alone.
func (ts *toolset) agree(a agreement) {
	ts.agreed, ts.prints = a, make(map[string]string, len(a.Contract.Tools))
	for i := range a.Contract.Tools {
		t := &a.Contract.Tools[i]
		if fp, err := t.Fingerprint(); err == nil {
			ts.prints[t.Name] = fp
		}
	}
}

// stream opens the request stream once.
func (ts *toolset) stream(ctx context.Context) (stream.Stream, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.requests != nil {
		return ts.requests, nil
	}
	bounds := ts.reg.opts.Requests
	if bounds == nil {
		bounds = &stream.Options{} // and not nil, so that the stream is made now
	}
	s, err := ts.reg.client.Stream(ctx, RequestStream(ts.name), bounds)
	if err != nil {
		return nil, err
	}
	ts.requests = s
	return s, nil
}

// maxDead bounds the stream of dead letters. What no longer finds room there is in
// the log of its worker alone, and its caller is told all the same.
const maxDead = 1000

// openStreams makes the streams that the toolset's workers need.
func (ts *toolset) openStreams(ctx context.Context) error {
	if _, err := ts.stream(ctx); err != nil {
		return err
	}
	if ts.hasDead.Load() {
		return nil
	}
	_, err := ts.reg.client.Stream(ctx, DeadStream(ts.name), &stream.Options{MaxEvents: maxDead})
	ts.hasDead.Store(err == nil)
	return err
}

// ToolsetState is how a toolset is.
type ToolsetState struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Revision    int    `json:"revision"`
	Fingerprint string `json:"fingerprint"`
	// Tools are the canonical names.
	Tools []string `json:"tools"`
	// Refused are the tools that its workers announced and that nobody can call
	// there.
	Refused []RefusedTool `json:"refused,omitempty"`
	Tenants []string      `json:"tenants,omitempty"`
	// Up says that a worker answers.
	Up bool `json:"up"`
	// Changing says that a contract takes the place of another.
	Changing bool `json:"changing,omitempty"`
	// LastPong is when a worker last answered, or zero.
	LastPong time.Time `json:"last_pong,omitzero"`
	// Outstanding counts this gateway's calls that have no answer yet.
	Outstanding int           `json:"outstanding"`
	Workers     []WorkerState `json:"workers"`
	// Standby are the workers that were not let serve yet. They are listed until they
	// have not asked again for ten seconds.
	Standby []StandbyState `json:"standby,omitempty"`
}

// RefusedTool is a tool that is not in the catalog, and why.
type RefusedTool struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// WorkerState is how one worker is.
type WorkerState struct {
	Instance string `json:"instance"`
	Version  string `json:"version,omitempty"`
	Host     string `json:"host,omitempty"`
	Up       bool   `json:"up"`
	// Since is when it announced itself, and LastPong when it last answered.
	Since    time.Time `json:"since"`
	LastPong time.Time `json:"last_pong"`
	// Missed counts the pings since then that stayed without an answer.
	Missed      int    `json:"missed,omitempty"`
	Running     int    `json:"running"`
	Queued      int    `json:"queued"`
	Concurrency int    `json:"concurrency"`
	Queue       int    `json:"queue"`
	Served      uint64 `json:"served"`
	Failed      uint64 `json:"failed"`
	Draining    bool   `json:"draining,omitempty"`
	// ClockMS is how many milliseconds its clock is ahead of this gateway's, or,
	// negative, behind it, as far as the way of its answers does not explain that.
	ClockMS int64 `json:"clock_ms,omitempty"`
	// Hindered is what the worker says that keeps it from serving calls although it is
	// up, such as a right that it lacks at the backend. Empty is all well.
	Hindered string `json:"hindered,omitempty"`
}

// Toolsets returns how all toolsets are, sorted by name. Of the tools that have one
// name only that of the oldest toolset is not refused; what else a catalog refuses
// is not known here. It is for administrators: tenants see only their tools, through
// the catalog.
func (r *Registry) Toolsets() []ToolsetState {
	r.mu.Lock()
	list := slices.Collect(maps.Values(r.toolsets))
	open := map[string]int{}
	for _, c := range r.calls {
		open[c.toolset]++
	}
	r.mu.Unlock()
	out := make([]ToolsetState, 0, len(list))
	owners := map[string]string{} // toolsets by the names of their tools
	for _, ts := range byAge(list) {
		s := ts.state()
		s.Outstanding = open[ts.name]
		s.own(owners)
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b ToolsetState) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// own notes whose tools the toolset's are, and refuses those that another has.
func (s *ToolsetState) own(owners map[string]string) {
	s.Refuse(func(name string) string {
		owner, taken := owners[name]
		if !taken {
			owners[name] = s.Name
			return ""
		}
		return fmt.Sprintf("toolset %q, which is older, has a tool of this name; a prefix in workers.toolsets keeps them apart", owner)
	})
}

// Refuse takes those tools for refused for which why gives a reason.
func (s *ToolsetState) Refuse(why func(name string) string) {
	s.Tools = slices.DeleteFunc(s.Tools, func(name string) bool {
		reason := why(name)
		if reason != "" {
			s.Refused = append(s.Refused, RefusedTool{Name: name, Reason: reason})
		}
		return reason != ""
	})
}

func (ts *toolset) state() ToolsetState {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	a := &ts.agreed
	s := ToolsetState{Name: ts.name, Description: a.Contract.Description, Revision: a.Revision, Fingerprint: a.Fingerprint,
		Tenants: slices.Clone(a.Grant.Tenants), Up: ts.live() > 0, Changing: ts.changing, LastPong: ts.lastPong, Standby: ts.onStandby()}
	for _, t := range a.Contract.Tools {
		s.Tools = append(s.Tools, a.Grant.Prefix+t.Name)
	}
	slices.Sort(s.Tools)
	for _, i := range ts.instances {
		s.Workers = append(s.Workers, WorkerState{Instance: i.id, Version: i.version, Host: i.host, Up: i.up, Since: i.since,
			LastPong: i.lastPong, Missed: i.missed, Running: i.status.Running, Queued: i.status.Queued,
			Concurrency: i.status.Concurrency, Queue: i.status.Queue, Served: i.status.Served, Failed: i.status.Failed,
			Draining: i.status.Draining, ClockMS: i.ahead.Milliseconds(), Hindered: i.status.Hindered})
	}
	slices.SortFunc(s.Workers, func(a, b WorkerState) int { return strings.Compare(a.Instance, b.Instance) })
	return s
}

// Health returns nil when every toolset has a worker that is up, and an error
// that names those which have none.
func (r *Registry) Health() error {
	var down []error
	for _, s := range r.Toolsets() {
		if !s.Up {
			down = append(down, &errDown{toolset: s.Name, last: s.LastPong})
		}
	}
	return errors.Join(down...)
}

// descriptors returns the toolset's tools for a catalog.
func (ts *toolset) descriptors() []tools.ToolDescriptor {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	g := ts.agreed.Grant
	inline := tools.ResolveOptions(tools.WithInline())
	list := make([]tools.ToolDescriptor, 0, len(ts.agreed.Contract.Tools))
	for i := range ts.agreed.Contract.Tools {
		spec := &ts.agreed.Contract.Tools[i]
		t := spec.tool(ts.name)
		t.Name = g.Prefix + t.Name
		t.AuthScopes = slices.Compact(slices.Sorted(slices.Values(slices.Concat(t.AuthScopes, g.Scopes))))
		t.Tenants = granted(t.Tenants, g.Tenants)
		list = append(list, inline.Descriptor(t, ts.reg.invoker(ts, *spec)))
	}
	return list
}

// nobody is a tenant that no identity names.
const nobody = "\x00nobody"

// granted returns the tenants that see a tool: those that it declares, as far as
// the toolset is granted to them.
func granted(declared, grant []string) []string {
	switch {
	case len(grant) == 0:
		return declared
	case len(declared) == 0:
		return slices.Clone(grant)
	}
	both := slices.DeleteFunc(slices.Clone(declared), func(t string) bool { return !slices.Contains(grant, t) })
	if len(both) == 0 {
		return []string{nobody}
	}
	return both
}
