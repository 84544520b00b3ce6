package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"
	"unicode"

	"github.com/toolcrib/toolcrib/registry/stream"
)

// announceRequest answers a worker that announces itself or leaves.
func (r *Registry) announceRequest(ctx context.Context, m stream.Message) stream.Message {
	var a Announcement
	if err := decode(m.Payload, &a); err != nil {
		return admission(refusedBecause(err))
	}
	if m.Name == MessageLeave {
		return r.leaveRequest(ctx, &a)
	}
	return admission(r.announced(ctx, &a))
}

func admission(a Admission) stream.Message {
	payload, _ := json.Marshal(a) // texts and numbers always encode
	return stream.Message{Name: MessageAnnounce, Payload: payload}
}

func refusedBecause(err error) Admission {
	return Admission{Status: StatusRefused, Message: err.Error()}
}

// announced decides about a worker.
func (r *Registry) announced(ctx context.Context, a *Announcement) Admission {
	if err := a.check(); err != nil {
		return refusedBecause(err)
	}
	grant := Grant{}
	if r.opts.Admit != nil {
		var err error
		if grant, err = r.opts.Admit(ctx, a); err != nil {
			r.log.Warn("a worker was refused", "toolset", a.Toolset, "instance", a.Instance, "reason", err)
			return refusedBecause(err)
		}
	}
	ts, err := r.agree(ctx, a, grant)
	if err != nil {
		return refusedBecause(err)
	}
	if ts == nil {
		return standby("nobody has said yet what the toolset holds")
	}
	return r.join(ctx, ts, a)
}

func (a *Announcement) check() error {
	if err := CheckToolset(a.Toolset); err != nil {
		return err
	}
	if err := checkID("instance", a.Instance); err != nil {
		return err
	}
	if err := checkName("instance", InstanceSubject(a.Toolset, a.Instance)); err != nil {
		return err
	}
	if max(len(a.Version), len(a.Host)) > MaxIDBytes {
		return fmt.Errorf("%w: version and host have at most %d bytes", ErrInvalid, MaxIDBytes)
	}
	for _, text := range []string{a.Instance, a.Version, a.Host} {
		if strings.ContainsFunc(text, unicode.IsControl) {
			return fmt.Errorf("%w: instance, version and host hold no control characters", ErrInvalid)
		}
	}
	if a.Concurrency < 0 || a.Queue < 0 {
		return fmt.Errorf("%w: concurrency and queue may not be negative", ErrInvalid)
	}
	if a.Contract == nil {
		return nil
	}
	if a.Contract.Toolset != a.Toolset {
		return fmt.Errorf("%w: the contract is that of toolset %q, and the worker announces %q", ErrInvalid, a.Contract.Toolset, a.Toolset)
	}
	return a.Contract.Check()
}

// agree makes the toolset when it is new. It returns nil for one that nobody
// has described.
func (r *Registry) agree(ctx context.Context, a *Announcement, grant Grant) (*toolset, error) {
	r.mu.Lock()
	ts := r.toolsets[a.Toolset]
	r.mu.Unlock()
	if ts != nil {
		return ts, ts.regrant(ctx, grant)
	}
	if a.Contract == nil {
		return nil, nil
	}
	fp, err := a.Contract.Fingerprint()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	agreed := agreement{Contract: *a.Contract, Fingerprint: fp, Revision: 1, Grant: grant, Since: now, Founded: now}
	if err := r.keepToolset(ctx, a.Toolset, agreed); err != nil {
		return nil, err
	}
	r.mu.Lock()
	if other := r.toolsets[a.Toolset]; other != nil {
		ts = other
	} else {
		ts = r.newToolset(a.Toolset, agreed)
		r.toolsets[a.Toolset] = ts
	}
	r.mu.Unlock()
	r.changedTools()
	return ts, nil
}

// Regrant replaces what a toolset was granted, if there is such a toolset. What Admit
// grants a worker of it afterwards replaces that again.
func (r *Registry) Regrant(ctx context.Context, toolset string, g Grant) error {
	r.mu.Lock()
	ts := r.toolsets[toolset]
	r.mu.Unlock()
	if ts == nil {
		return nil
	}
	return ts.regrant(ctx, g)
}

// regrant takes over another grant, which the operator changed.
func (ts *toolset) regrant(ctx context.Context, g Grant) error {
	ts.mu.Lock()
	same := sameGrant(ts.agreed.Grant, g)
	ts.agreed.Grant = g
	kept := ts.agreed
	ts.mu.Unlock()
	if same {
		return nil
	}
	ts.reg.changedTools()
	return ts.reg.keepToolset(ctx, ts.name, kept)
}

func sameGrant(a, b Grant) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// Register says what a toolset holds, for workers that do not say it themselves:
// they join without a contract, or only serve the request stream, and are pinged
// there. A contract that differs from the one before takes its
// place at once.
func (r *Registry) Register(ctx context.Context, c Contract, grant Grant) error {
	if err := c.Check(); err != nil {
		return err
	}
	fp, err := c.Fingerprint()
	if err != nil {
		return err
	}
	ts, err := r.agree(ctx, &Announcement{Toolset: c.Toolset, Contract: &c}, grant)
	if err != nil {
		return err
	}
	ts.mu.Lock()
	same := ts.agreed.Fingerprint == fp && ts.agreed.Unnamed
	ts.agreed.Unnamed = true
	if ts.agreed.Fingerprint != fp {
		ts.agree(ts.agreed.replacedBy(c, fp))
	}
	kept := ts.agreed
	ts.mu.Unlock()
	if same {
		return nil
	}
	r.changedTools()
	return r.keepToolset(ctx, c.Toolset, kept)
}

// replacedBy returns the agreement in which c has taken the place of what was.
func (a agreement) replacedBy(c Contract, fingerprint string) agreement {
	retired := maps.Clone(a.Retired)
	if retired == nil {
		retired = map[string]bool{}
	}
	retired[a.Fingerprint] = true
	delete(retired, fingerprint)
	return agreement{Contract: c, Fingerprint: fingerprint, Revision: a.Revision + 1, Grant: a.Grant, Retired: retired, Since: time.Now(),
		Founded: a.founded(), Unnamed: a.Unnamed}
}

// join lets a worker of the contract of now serve, and begins the change to
// another contract.
func (r *Registry) join(ctx context.Context, ts *toolset, a *Announcement) Admission {
	fp := ""
	if a.Contract != nil {
		var err error
		if fp, err = a.Contract.Fingerprint(); err != nil {
			return refusedBecause(err)
		}
	}
	ts.mu.Lock()
	now := ts.agreed
	unheard := ts.lastPong.IsZero() && time.Since(r.started) < r.opts.StaleAfter // of, as workers may not be back yet
	switch {
	case fp == "" || fp == now.Fingerprint:
		ts.mu.Unlock()
		r.welcome(ctx, ts, a)
		return Admission{Status: StatusServe, Revision: now.Revision, Fingerprint: now.Fingerprint,
			SilenceMS: (r.opts.StaleAfter + r.opts.PingInterval).Milliseconds(), Token: r.workerToken(ts.name, a.Instance)}
	case ts.changing:
		ts.mu.Unlock()
		return ts.standbyInChange(a, "the toolset's contract is being changed")
	case now.Retired[fp] && ts.live() > 0:
		ts.mu.Unlock()
		return ts.standby(a, fmt.Sprintf("this contract was replaced by revision %d, whose workers are up", now.Revision))
	case now.Retired[fp] && time.Since(r.started) < r.opts.StaleAfter:
		ts.mu.Unlock()
		return ts.standby(a, fmt.Sprintf("this contract was replaced by revision %d, whose workers may still be up", now.Revision))
	}
	if a.Incomplete && (ts.live() > 0 || unheard) {
		ts.mu.Unlock()
		return ts.standby(a, "the worker's tools are not all there, and it takes the place of none that serve others")
	}
	ts.changing = true
	ts.mu.Unlock()
	r.background(func(context.Context) { r.change(ts, *a.Contract, fp) })
	return ts.standbyInChange(a, "the workers of the contract before end their calls")
}

// welcome makes a worker one of the toolset's. Its streams are there then, which the
// worker itself may not be permitted to make.
func (r *Registry) welcome(ctx context.Context, ts *toolset, a *Announcement) {
	opening, cancel := context.WithTimeout(ctx, addTime)
	defer cancel()
	if err := ts.openStreams(opening); err != nil {
		r.log.Error("the streams of a toolset cannot be made", "toolset", ts.name, "error", err)
	}
	if ts.enter(a) {
		r.log.Info("a worker is up", "toolset", ts.name, "instance", a.Instance, "version", a.Version)
		r.publishUp(ts.name, a.Instance, a.Version)
	}
	// Also of a worker that is known here: it may answer to a registry that has
	// just begun, and an announcement goes to one registry alone.
	r.spread(ctx, MessageAnnounce, &Announcement{Toolset: a.Toolset, Instance: a.Instance, Version: a.Version, Host: a.Host,
		Concurrency: a.Concurrency, Queue: a.Queue})
}

// maxWorkers bounds the workers of a toolset that are listed and pinged. Further ones
// serve all the same.
const maxWorkers = 4096

// enter puts the worker among the instances, and reports whether it was down or
// new. One for which there is no room is not among them.
func (ts *toolset) enter(a *Announcement) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	delete(ts.waiting, a.Instance)
	i := ts.instances[a.Instance]
	if i == nil && !ts.hasRoom() {
		ts.reg.crowded.warn(ts.reg.log, "a toolset has too many workers, and not all are listed", "toolset", ts.name, "listed", len(ts.instances))
		return false
	}
	if i == nil {
		i = &instance{id: a.Instance, since: time.Now()}
		ts.instances[a.Instance] = i
	}
	news := !i.up
	i.version, i.host, i.up, i.missed, i.lastPong = a.Version, a.Host, true, 0, time.Now()
	i.status.Concurrency, i.status.Queue = a.Concurrency, a.Queue
	ts.lastPong = i.lastPong
	ts.wake()
	return news
}

// hasRoom makes room for one more worker, where it takes one that is down. The caller
// holds the lock.
func (ts *toolset) hasRoom() bool {
	if len(ts.instances) < maxWorkers {
		return true
	}
	for id, i := range ts.instances {
		if !i.up {
			delete(ts.instances, id)
			return true
		}
	}
	return false
}

// hear takes over what another registry learned.
func (r *Registry) hear(m stream.Message) {
	n, err := r.unseal(m)
	if err != nil {
		r.forged.warn(r.log, "news of a worker do not come from a gateway of this store and are not heeded", "reason", err)
		return
	}
	if n.Process == r.process || n.check() != nil {
		return
	}
	r.background(func(ctx context.Context) {
		if m.Name == MessageLeave {
			r.leftElsewhere(&n.Announcement)
			return
		}
		ts, err := r.reread(ctx, n.Toolset)
		if err != nil {
			r.log.Warn("another gateway's toolset cannot be read", "toolset", n.Toolset, "error", err)
			return
		}
		ts.enter(&n.Announcement)
	})
}

// background runs f unless the registry is closed.
func (r *Registry) background(f func(ctx context.Context)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() == nil {
		r.running.Go(func() { f(r.ctx) })
	}
}

// leaveRequest takes a worker away that says that it ends, if it may say so.
func (r *Registry) leaveRequest(ctx context.Context, a *Announcement) stream.Message {
	a.Leaving = true
	err := a.check()
	if err == nil && r.opts.Admit != nil {
		_, err = r.opts.Admit(ctx, a)
	}
	if err != nil {
		r.log.Warn("a worker's goodbye was refused", "toolset", a.Toolset, "instance", a.Instance, "reason", err)
		return admission(refusedBecause(err))
	}
	r.leftElsewhere(a)
	r.spread(r.ctx, MessageLeave, &Announcement{Toolset: a.Toolset, Instance: a.Instance})
	return stream.Message{Name: MessageOK}
}

func (r *Registry) leftElsewhere(a *Announcement) {
	r.mu.Lock()
	ts := r.toolsets[a.Toolset]
	r.mu.Unlock()
	if ts == nil {
		return
	}
	ts.mu.Lock()
	i := ts.instances[a.Instance]
	delete(ts.instances, a.Instance)
	delete(ts.waiting, a.Instance)
	ts.wake()
	ts.mu.Unlock()
	if i == nil {
		return
	}
	r.log.Info("a worker left", "toolset", ts.name, "instance", a.Instance)
	if i.up {
		r.publishDown(ts.name, a.Instance, "it ended")
	}
	r.lost(ts, a.Instance)
	r.strand(ts)
}

// change puts a contract in the place of another: calls that come wait, those
// under way end, the old workers end, and then the new ones serve.
func (r *Registry) change(ts *toolset, c Contract, fp string) {
	ctx, cancel := context.WithTimeout(r.ctx, r.opts.DrainTimeout)
	defer cancel()
	r.drained(ctx, ts.name)
	r.retire(ctx, ts)
	if r.ctx.Err() != nil {
		return // The registry ends, and nobody waited for the workers.
	}
	ts.mu.Lock()
	ts.agree(ts.agreed.replacedBy(c, fp))
	ts.instances = map[string]*instance{}
	kept := ts.agreed
	ts.mu.Unlock()
	keeping, stop := context.WithTimeout(context.WithoutCancel(r.ctx), storeTime) // also when the registry is being closed
	defer stop()
	if err := r.keepToolset(keeping, ts.name, kept); err != nil {
		r.log.Warn("a changed toolset cannot be kept", "toolset", ts.name, "error", err)
	}
	r.log.Info("a toolset's contract changed", "toolset", ts.name, "revision", kept.Revision, "tools", len(c.Tools))
	r.changedTools()
	r.publishChanged(ts.name, kept.Revision, len(c.Tools))
	ts.open(r.ctx)
}

// open lets calls go on once a worker of the new contract is there, for which
// they wait a little.
func (ts *toolset) open(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*standbyPause)
	defer cancel()
	for {
		ts.mu.Lock()
		if ts.live() > 0 || ctx.Err() != nil {
			ts.changing = false
			ts.wake()
			ts.mu.Unlock()
			return
		}
		changed := ts.changed
		ts.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// retire asks the workers of a toolset to end, and waits for them.
func (r *Registry) retire(ctx context.Context, ts *toolset) {
	ts.mu.Lock()
	ids := make([]string, 0, len(ts.instances))
	for id, i := range ts.instances {
		if i.up {
			ids = append(ids, id)
		}
	}
	ts.mu.Unlock()
	done := make(chan struct{}, len(ids))
	for _, id := range ids {
		r.running.Go(func() {
			defer func() { done <- struct{}{} }()
			if err := r.askToRetire(ctx, ts.name, id); err != nil {
				r.log.Warn("a worker of a replaced contract did not end in time", "toolset", ts.name, "instance", id, "error", err)
			}
		})
	}
	for range ids {
		<-done
	}
}

func (r *Registry) askToRetire(ctx context.Context, toolset, id string) error {
	payload, err := json.Marshal(Retire{Token: r.workerToken(toolset, id)})
	if err != nil {
		return err
	}
	_, err = r.client.Request(ctx, InstanceSubject(toolset, id), stream.Message{Name: MessageRetire, Payload: payload})
	return err
}

// drained waits until the calls of a toolset that were sent have their results.
func (r *Registry) drained(ctx context.Context, toolset string) {
	for _, c := range r.open() {
		if c.toolset != toolset {
			continue
		}
		select {
		case <-c.done:
		case <-ctx.Done():
			return
		}
	}
}
