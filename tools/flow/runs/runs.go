// Package runs keeps what becomes of flows in a store, so that it outlives the
// process.
//
// Every step of a run is on the disk before the run goes on: which node starts,
// and what it gave. A process that dies leaves its runs as they were; whoever reads
// them next finds them interrupted, and [flow.Flow.Resume] goes on with them
// without repeating anything that may have had an effect.
//
// Several processes may share a store. Each holds a lease while it runs flows, and
// everything it writes is refused once that lease is lost, so that a process which
// was thought dead cannot go on beside the one that took over.
package runs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/tools/flow"
)

// Store is what the log needs of a store.
type Store interface {
	store.Records
	store.Leases
}

// The defaults of Options.
const (
	DefaultKeep  = 7 * 24 * time.Hour
	DefaultMost  = 1000
	DefaultLease = 10 * time.Second
)

// Options tune a log.
type Options struct {
	// Keep is how long runs are kept, and how long after its beginning one can be
	// resumed; DefaultKeep when it is 0.
	Keep time.Duration
	// Most is how many ended runs are kept of each user; DefaultMost when it is 0.
	Most int
	// Lease is how long after its death a process is thought alive; DefaultLease
	// when it is 0.
	Lease time.Duration
	// Logger gets what cannot be told to a caller; nil is silent.
	Logger *slog.Logger
}

// Log keeps runs in a store. It is safe for concurrent use.
type Log struct {
	st      Store
	keep    time.Duration
	most    int
	ttl     time.Duration
	log     *slog.Logger
	leasing sync.Mutex
	beating sync.WaitGroup
	stop    context.CancelFunc // of the heart, nil before the first run

	mu      sync.Mutex  // guards what follows
	lease   store.Lease // of this process; zero before the first run, and once it is lost
	live    map[string]*live
	begins  map[string]bool // runs that begin; true while the record may say so already
	dead    map[string]bool // processes that are known to have ended
	ended   int
	closing bool
}

// live is a run in this process.
type live struct {
	owner  store.Owner
	lease  store.Lease
	began  time.Time
	cancel func()
}

var _ flow.Runs = (*Log)(nil)

// New returns a log over a store. Nil options are the defaults. It must be closed.
func New(st Store, opts *Options) *Log {
	if opts == nil {
		opts = &Options{}
	}
	return &Log{
		st: st, keep: cmp.Or(opts.Keep, DefaultKeep), most: cmp.Or(opts.Most, DefaultMost), ttl: cmp.Or(opts.Lease, DefaultLease),
		log: cmp.Or(opts.Logger, slog.New(slog.DiscardHandler)), live: map[string]*live{}, begins: map[string]bool{}, dead: map[string]bool{},
	}
}

// The collections of the store.
const (
	runsIn    = "flow.runs"    // one record for each run
	nodesIn   = "flow.nodes"   // one for its inputs, and one for each node
	keepersIn = "flow.keepers" // leases of the processes that run flows
)

// kept is the record of a run.
type kept struct {
	ID      string         `json:"id"`
	Flow    string         `json:"flow"`
	Digest  string         `json:"digest"`
	Parent  string         `json:"parent,omitempty"`
	Session string         `json:"session,omitempty"`
	RunID   string         `json:"run_id,omitempty"`
	Began   time.Time      `json:"began"`
	Ended   time.Time      `json:"ended,omitzero"`
	Status  flow.RunStatus `json:"status"`
	Error   string         `json:"error,omitempty"`
	// Keeper is the process that runs it, or did.
	Keeper string `json:"keeper"`
	// Cancel asks the keeper to end it.
	Cancel bool `json:"cancel,omitempty"`
}

// keptNode is the record of a node.
type keptNode struct {
	flow.NodeRecord
	// Lost says that the value was too large to keep.
	Lost bool `json:"lost,omitempty"`
}

// ownerOf is whose a run is: its user's, and without an identity nobody's.
func ownerOf(id identity.Identity) store.Owner {
	switch {
	case id.TenantID == "" && id.UserID == "":
		return store.Global()
	case id.UserID == "":
		return store.Tenant(id)
	}
	return store.User(id)
}

func ownerOn(ctx context.Context) store.Owner {
	id, _ := identity.From(ctx)
	return ownerOf(id)
}

func runKey(who store.Owner, id string) store.Key {
	return store.Key{Collection: runsIn, Owner: who, Name: id}
}

// inputsName is the name of the inputs among the nodes of a run, whose names are
// longer.
const inputsName = "in"

func nodeKey(who store.Owner, id, name string) store.Key {
	return store.Key{Collection: nodesIn, Owner: who, Name: id + "/" + name}
}

// nodeName is the name of a node's record: of one length whatever the node is
// called.
func nodeName(node string) string {
	sum := sha256.Sum256([]byte(node))
	return hex.EncodeToString(sum[:])
}

func notFound(id string) error { return fmt.Errorf("%w: %q", flow.ErrRunNotFound, id) }

// Begin implements flow.Recorder.
func (l *Log) Begin(ctx context.Context, r flow.Run) error {
	lease, err := l.held(ctx)
	if err != nil {
		return err
	}
	if !l.beginning(r.ID) {
		return fmt.Errorf("runs: %w", goesOn(r.ID))
	}
	defer l.began(r.ID)
	who := ownerOf(r.Identity.Identity)
	began := r.Began
	err = store.Retry(ctx, func() error {
		l.writing(r.ID, false)
		old, revision, err := l.read(ctx, who, r.ID)
		if err != nil && !errors.Is(err, flow.ErrRunNotFound) {
			return err
		}
		if err == nil {
			if err := l.free(ctx, old); err != nil {
				return err
			}
			if revision != store.Revision(r.Version) {
				return fmt.Errorf("%w: %q went on in the meantime", flow.ErrNotResumable, r.ID)
			}
			began = old.Began
		}
		l.writing(r.ID, true)
		return l.write(ctx, who, lease, began, revision, kept{ID: r.ID, Flow: r.Flow, Digest: r.Digest, Parent: r.Parent,
			Session: r.Identity.SessionID, RunID: r.Identity.RunID, Began: began, Status: flow.RunRunning, Keeper: lease.Holder}, r.Inputs)
	})
	if err != nil {
		return fmt.Errorf("runs: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.live[r.ID] = &live{owner: who, lease: lease, began: began, cancel: r.Cancel}
	return nil
}

// beginning reports whether a run may begin in this process: nobody else here begins
// it. Until began, whoever reads its record finds it running, also before it is live.
func (l *Log) beginning(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, other := l.begins[id]; other {
		return false
	}
	l.begins[id] = false
	return true
}

func (l *Log) writing(id string, now bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begins[id] = now
}

func (l *Log) began(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.begins, id)
}

func goesOn(id string) error { return fmt.Errorf("%w: %q goes on already", flow.ErrNotResumable, id) }

// write puts the record of a run that begins, and its inputs.
func (l *Log) write(ctx context.Context, who store.Owner, lease store.Lease, began time.Time, revision store.Revision, k kept, inputs json.RawMessage) error {
	value, err := json.Marshal(k)
	if err != nil {
		return err
	}
	_, err = l.st.Apply(ctx, store.Batch{Holding: []store.Lease{lease}, Writes: []store.Write{
		{Key: runKey(who, k.ID), Value: value, If: revision, Expires: l.until(began)},
		{Key: nodeKey(who, k.ID, inputsName), Value: inputs, Expires: l.until(began).Add(l.keep)},
	}})
	return err
}

// until is when a run is forgotten. What its nodes gave is kept for longer, so that
// no run is resumed of which a part is missing.
func (l *Log) until(began time.Time) time.Time { return began.Add(l.keep) }

// free returns ErrNotResumable unless a run can be taken over.
func (l *Log) free(ctx context.Context, k kept) error {
	status, err := l.status(ctx, k)
	switch {
	case err != nil:
		return err
	case status == flow.RunRunning:
		return goesOn(k.ID)
	case status == flow.RunDone:
		return fmt.Errorf("%w: %q came to its end", flow.ErrNotResumable, k.ID)
	}
	return nil
}

// read returns the record of a run, and ErrRunNotFound with the revision Absent.
func (l *Log) read(ctx context.Context, who store.Owner, id string) (k kept, revision store.Revision, err error) {
	if id == "" || len(id) > maxID {
		return k, store.Absent, notFound(id[:min(len(id), maxID)])
	}
	record, err := l.st.Get(ctx, runKey(who, id))
	if errors.Is(err, store.ErrNotFound) {
		return k, store.Absent, notFound(id)
	}
	if err != nil {
		return k, store.Absent, err
	}
	if err := json.Unmarshal(record.Value, &k); err != nil {
		return k, store.Absent, fmt.Errorf("runs: the record of %q cannot be read: %w", id, err)
	}
	return k, record.Revision, nil
}

// maxID bounds the id of a run, in bytes.
const maxID = 128

// Node implements flow.Recorder.
func (l *Log) Node(ctx context.Context, runID string, n flow.NodeRecord) error {
	l.mu.Lock()
	run := l.live[runID]
	l.mu.Unlock()
	if run == nil {
		return notFound(runID)
	}
	record := keptNode{NodeRecord: n}
	value, err := json.Marshal(record)
	if len(value) > store.MaxValueBytes {
		record.Value, record.Lost = nil, true
		value, err = json.Marshal(record)
	}
	if err != nil {
		return err
	}
	_, err = l.st.Apply(ctx, store.Batch{Holding: []store.Lease{run.lease}, Writes: []store.Write{
		{Key: nodeKey(run.owner, runID, nodeName(n.Node)), Value: value, Expires: l.until(run.began).Add(l.keep)},
	}})
	return err
}

// End implements flow.Recorder.
func (l *Log) End(ctx context.Context, runID string, ended error) error {
	l.mu.Lock()
	run := l.live[runID]
	status := flow.StatusOf(ended)
	if l.closing && status == flow.RunCanceled && !errors.Is(ended, flow.ErrCanceled) {
		status = flow.RunInterrupted
	}
	l.ended++
	trim := l.ended%trimEvery == 0
	l.mu.Unlock()
	if run == nil {
		return notFound(runID)
	}
	defer l.over(runID, run) // not before its record says so, as it could be resumed in between
	err := l.change(ctx, run.owner, runID, []store.Lease{run.lease}, func(k *kept) bool {
		k.Status, k.Ended = status, time.Now()
		if ended != nil {
			k.Error = shorten(ended.Error())
		}
		return k.Keeper == run.lease.Holder
	})
	if trim {
		l.trim(ctx, run.owner)
	}
	return err
}

// over forgets a run that ended, but not one that was resumed since.
func (l *Log) over(id string, run *live) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.live[id] == run {
		delete(l.live, id)
	}
}

// maxError bounds what is kept of an error, in bytes.
const maxError = 16 << 10

func shorten(s string) string {
	if len(s) <= maxError {
		return s
	}
	return s[:maxError] + "…"
}

// change rewrites the record of a run, as long as f says that there is something to
// change.
func (l *Log) change(ctx context.Context, who store.Owner, id string, holding []store.Lease, f func(*kept) bool) error {
	return store.Retry(ctx, func() error {
		k, revision, err := l.read(ctx, who, id)
		if err != nil || !f(&k) {
			return err
		}
		value, err := json.Marshal(k)
		if err != nil {
			return err
		}
		_, err = l.st.Apply(ctx, store.Batch{Holding: holding, Writes: []store.Write{
			{Key: runKey(who, id), Value: value, If: revision, Expires: l.until(k.Began)}}})
		return err
	})
}

// Load implements flow.Loader.
func (l *Log) Load(ctx context.Context, runID string) (run flow.Run, records []flow.NodeRecord, err error) {
	err = store.Retry(ctx, func() error {
		run, records, err = l.load(ctx, ownerOn(ctx), runID)
		return err
	})
	return run, records, err
}

// load returns a run and its nodes as they are together, or store.ErrConflict when
// the run went on meanwhile.
func (l *Log) load(ctx context.Context, who store.Owner, runID string) (flow.Run, []flow.NodeRecord, error) {
	k, revision, err := l.read(ctx, who, runID)
	if err != nil {
		return flow.Run{}, nil, err
	}
	if err := l.free(ctx, k); err != nil {
		return flow.Run{}, nil, err
	}
	inputs, nodes, err := l.nodes(ctx, who, runID)
	if err != nil {
		return flow.Run{}, nil, err
	}
	if _, now, err := l.read(ctx, who, runID); err != nil || now != revision {
		return flow.Run{}, nil, cmp.Or(err, store.ErrConflict)
	}
	records := make([]flow.NodeRecord, len(nodes))
	for i, n := range nodes {
		if n.Lost && n.Status == flow.Done {
			return flow.Run{}, nil, fmt.Errorf("%w: what node %q gave was too large to keep", flow.ErrNotResumable, n.Node)
		}
		records[i] = n.NodeRecord
	}
	run := k.run(who)
	run.Inputs, run.Version = inputs, int64(revision)
	return run, records, nil
}

// nodes returns the inputs of a run and what became of its nodes, in the order in
// which that was.
func (l *Log) nodes(ctx context.Context, who store.Owner, id string) (inputs json.RawMessage, nodes []keptNode, err error) {
	err = l.each(ctx, nodesIn, who, id+"/", func(record store.Record) error {
		if record.Key.Name == id+"/"+inputsName {
			inputs = record.Value
			return nil
		}
		var n keptNode
		if err := json.Unmarshal(record.Value, &n); err != nil {
			return fmt.Errorf("runs: the record of a node of %q cannot be read: %w", id, err)
		}
		nodes = append(nodes, n)
		return nil
	})
	slices.SortFunc(nodes, func(a, b keptNode) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Node, b.Node)) })
	return inputs, nodes, err
}

// each calls f with all records of an owner whose names begin with prefix.
func (l *Log) each(ctx context.Context, collection string, who store.Owner, prefix string, f func(store.Record) error) error {
	for r := (store.Range{Collection: collection, Owner: who, Prefix: prefix}); ; {
		page, err := l.st.List(ctx, r)
		if err != nil {
			return err
		}
		for _, record := range page.Records {
			if err := f(record); err != nil {
				return err
			}
			r.After = record.Key.Name
		}
		if !page.More {
			return nil
		}
	}
}

func (k *kept) run(who store.Owner) flow.Run {
	id := who.Identity()
	id.SessionID = k.Session
	return flow.Run{ID: k.ID, Flow: k.Flow, Digest: k.Digest, Parent: k.Parent, Began: k.Began,
		Identity: identity.Quadruple{Identity: id, RunID: k.RunID}}
}
