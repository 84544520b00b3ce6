package registry

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/toolcrib/toolcrib/registry/stream"
)

// pingForever pings every worker once in each interval.
func (r *Registry) pingForever() {
	tick := time.NewTicker(r.opts.PingInterval)
	defer tick.Stop()
	for last := time.Now(); ; last = time.Now() {
		select {
		case <-r.ctx.Done():
			return
		case <-tick.C:
		}
		stopped := time.Since(last) - r.opts.PingInterval
		for _, ts := range r.all() {
			if stopped > r.opts.PingInterval {
				ts.excuse(stopped)
			}
			ids := ts.ids()
			for _, id := range ids {
				r.background(func(ctx context.Context) { r.ping(ctx, ts, id) })
			}
			if len(ids) == 0 {
				r.background(func(ctx context.Context) { r.pingStream(ctx, ts) })
			}
		}
	}
}

// excuse takes the time in which this process itself was stopped for none in which
// workers were silent.
func (ts *toolset) excuse(stopped time.Duration) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	now := time.Now()
	for _, i := range ts.instances {
		if i.lastPong = i.lastPong.Add(stopped); i.lastPong.After(now) {
			i.lastPong = now
		}
	}
}

// ids names the workers that announced themselves.
func (ts *toolset) ids() []string {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ids := make([]string, 0, len(ts.instances))
	for id := range ts.instances {
		if id != unnamed {
			ids = append(ids, id)
		}
	}
	return ids
}

// unnamed stands for all workers of a toolset that do not announce themselves,
// and acknowledge pings that come with the calls.
const unnamed = ""

// pingStream pings those workers, of a toolset that was registered for them. No
// second ping is put on the stream before the first was taken from it.
func (r *Registry) pingStream(ctx context.Context, ts *toolset) {
	ts.mu.Lock()
	wanted, i := ts.agreed.Unnamed, ts.instances[unnamed]
	fell := i != nil && i.up && time.Since(i.lastPong) > r.opts.StaleAfter
	if fell {
		i.up = false
		ts.wake()
	}
	ts.mu.Unlock()
	if fell {
		r.publishDown(ts.name, unnamed, "it does not answer")
		r.strand(ts)
	}
	if !wanted {
		return
	}
	s, err := ts.stream(ctx)
	if err != nil {
		return // the backend is away
	}
	if size, err := s.Size(ctx); err != nil || size.Waiting > 0 {
		return
	}
	id := rand.Text()
	payload, err := json.Marshal(ToolCallMessage{Type: TypePing, PingID: id})
	if err != nil {
		return
	}
	r.mu.Lock()
	for old, name := range r.pings {
		if name == ts.name {
			delete(r.pings, old)
		}
	}
	r.pings[id] = ts.name
	r.mu.Unlock()
	if _, err := s.Add(ctx, TypePing, payload); err != nil {
		r.log.Warn("a toolset cannot be pinged", "toolset", ts.name, "error", err)
	}
}

// hearPong notes that a ping on a request stream was acknowledged.
func (r *Registry) hearPong(m stream.Message) {
	r.mu.Lock()
	ts := r.toolsets[r.pings[string(m.Payload)]]
	r.mu.Unlock()
	if ts == nil {
		return // a ping of a worker's own subject, or another registry's
	}
	if ts.enter(&Announcement{Toolset: ts.name, Instance: unnamed}) {
		r.publishUp(ts.name, unnamed, "")
	}
}

// all returns the toolsets of now.
func (r *Registry) all() []*toolset {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]*toolset, 0, len(r.toolsets))
	for _, ts := range r.toolsets {
		list = append(list, ts)
	}
	return list
}

// ping asks one worker how it is, and takes it for down when it has not
// answered for too long.
func (r *Registry) ping(ctx context.Context, ts *toolset, id string) {
	limit, cancel := context.WithTimeout(ctx, r.opts.PingInterval)
	defer cancel()
	began := time.Now()
	status, err := r.ask(limit, ts.name, id)
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		ahead := apart(began, status.Now)
		r.answered(ts, id, status)
		r.compareClocks(ts, id, ahead)
		return
	}
	if time.Since(began) > 2*r.opts.PingInterval {
		return // this process was stopped, and says nothing of the worker
	}
	r.missed(ts, id, r.away(ctx, ts, err))
}

// away reports whether a ping failed because of the backend, and not of the
// worker. A ping that nobody answered in time says neither, so that the backend
// is asked for something that it answers itself.
func (r *Registry) away(ctx context.Context, ts *toolset, err error) bool {
	if !timedOut(err) {
		return errors.Is(err, stream.ErrUnavailable)
	}
	ctx, cancel := context.WithTimeout(ctx, absence)
	defer cancel()
	s, err := ts.stream(ctx)
	if err == nil {
		_, err = s.Size(ctx)
	}
	return err != nil
}

// timedOut reports whether an error is that of a question which got no answer in
// its time, although it could be sent.
func timedOut(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

// ask pings a worker.
func (r *Registry) ask(ctx context.Context, toolset, id string) (Status, error) {
	payload, err := json.Marshal(ToolCallMessage{Type: TypePing, PingID: rand.Text()})
	if err != nil {
		return Status{}, err
	}
	answer, err := r.client.Request(ctx, InstanceSubject(toolset, id), stream.Message{Name: MessagePing, Payload: payload})
	if err != nil {
		return Status{}, err
	}
	if answer.Name != MessagePong {
		return Status{}, errNoPong
	}
	var s Status
	if err := decode(answer.Payload, &s); err != nil {
		return Status{}, err
	}
	s.Toolset, s.Instance, s.Version, s.PingID = toolset, id, "", "" // no longer texts than are known are kept
	s.Hindered = line(s.Hindered, MaxHinderedBytes)
	return s, nil
}

// errNoPong says that a worker is there and does not acknowledge the ping.
var errNoPong = errors.New("registry: the worker does not acknowledge the ping")

func (r *Registry) answered(ts *toolset, id string, s Status) {
	ts.mu.Lock()
	i := ts.instances[id]
	if i == nil {
		ts.mu.Unlock()
		return // it left meanwhile
	}
	back, before := !i.up, i.status.Hindered
	i.up, i.missed, i.lastPong, i.status = true, 0, time.Now(), s
	ts.lastPong = i.lastPong
	if back {
		ts.wake()
	}
	version := i.version
	ts.mu.Unlock()
	if back {
		r.log.Info("a worker is up again", "toolset", ts.name, "instance", id)
		r.publishUp(ts.name, id, version)
	}
	switch {
	case before == "" && s.Hindered != "":
		r.log.Warn("a worker is kept from serving calls", "toolset", ts.name, "instance", id, "reason", s.Hindered)
	case before != "" && s.Hindered == "":
		r.log.Info("a worker is kept from serving calls no more", "toolset", ts.name, "instance", id)
	}
}

// forgetAfter is after how many times StaleAfter a worker that is down is no
// longer listed.
const forgetAfter = 15

// missed counts a ping without an answer. When the backend itself was away,
// that says nothing of the worker, and only its age counts.
func (r *Registry) missed(ts *toolset, id string, away bool) {
	ts.mu.Lock()
	i := ts.instances[id]
	if i == nil {
		ts.mu.Unlock()
		return
	}
	if !away {
		i.missed++
	}
	silent := time.Since(i.lastPong)
	if silent > forgetAfter*r.opts.StaleAfter {
		delete(ts.instances, id)
	}
	fell := i.up && (i.missed >= r.opts.MissedPings || silent > r.opts.StaleAfter)
	// One that was too old while the backend was away is only known to be gone
	// once it missed its pings.
	gone := !away && (fell || !i.up && i.missed == r.opts.MissedPings)
	if fell {
		i.up = false
		ts.wake()
	}
	ts.mu.Unlock()
	if gone {
		r.lost(ts, id)
	}
	if !fell {
		return
	}
	r.log.Warn("a worker is down", "toolset", ts.name, "instance", id, "last_answer", age(silent))
	r.publishDown(ts.name, id, "it does not answer")
	r.strand(ts)
}

// lost answers the calls that a dead worker had claimed.
func (r *Registry) lost(ts *toolset, id string) {
	for _, c := range r.open() {
		if s, by, _ := c.view(); c.toolset == ts.name && s == stateClaimed && by == id {
			r.background(func(ctx context.Context) { r.unknown(ctx, c, id) })
		}
	}
}

// unknown ends a call whose worker is gone: nobody knows whether it had its
// effect.
func (r *Registry) unknown(ctx context.Context, c *call, instance string) {
	if err := c.finishLost(ctx, &r.ledger, instance, failed(c.id, &ToolError{Code: CodeOutcomeUnknown, OutcomeUnknown: true,
		Message: "the worker that ran the call is gone"})); err != nil {
		r.log.Error("the end of a call cannot be recorded", "toolset", c.toolset, "call", c.id, "error", err)
	}
	r.discard(c)
}

// strand answers the calls that no worker has, when none is up and their callers
// did not say that they wait.
func (r *Registry) strand(ts *toolset) {
	ts.mu.Lock()
	keep, last := ts.live() > 0 || ts.changing, ts.lastPong
	ts.mu.Unlock()
	if keep {
		return
	}
	why := (&errDown{toolset: ts.name, last: last}).Error()
	for _, c := range r.open() {
		if c.toolset != ts.name || c.wait {
			continue
		}
		r.background(func(ctx context.Context) {
			_, err := c.finishUnclaimed(ctx, &r.ledger, failed(c.id, &ToolError{Code: CodeUnavailable, NotDelivered: c.recorded, Message: why}))
			if err != nil {
				r.log.Error("the end of a call cannot be recorded", "toolset", c.toolset, "call", c.id, "error", err)
			}
			r.discard(c)
		})
	}
}

// absence is for how long nobody must respond for a worker until it counts as
// gone: it may be connecting again.
const absence = 2 * time.Second

// alive reports whether a worker may still answer. It is gone when it is known to
// be down, or when nobody responds for it twice, some time apart. One that is
// only slow is left to the pings.
func (r *Registry) alive(ctx context.Context, toolset, id string) bool {
	limit, cancel := context.WithTimeout(ctx, absence)
	defer cancel()
	_, err := r.ask(limit, toolset, id)
	subject := InstanceSubject(toolset, id)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !errors.Is(err, stream.ErrNoResponder) {
		delete(r.absent, subject)
		away := errors.Is(err, stream.ErrUnavailable) && !timedOut(err)
		return err == nil || errors.Is(err, errNoPong) || away || r.toolsets[toolset].isUp(id)
	}
	since, seen := r.absent[subject]
	if !seen {
		if len(r.absent) >= maxAbsent {
			clear(r.absent)
		}
		r.absent[subject] = time.Now()
		return true
	}
	return time.Since(since) < absence
}

const (
	// absentFor is how long it is remembered that nobody responds for a worker,
	// whose calls have all been ended by then.
	absentFor = 10 * time.Minute
	// maxAbsent bounds how many such workers are remembered. What is forgotten is
	// found out again, some time later.
	maxAbsent = 10_000
)

// forgetAbsent drops the workers that are remembered for long.
func (r *Registry) forgetAbsent() {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.absent, func(_ string, since time.Time) bool { return time.Since(since) > absentFor })
}

// isUp reports whether a worker answered its pings.
func (ts *toolset) isUp(id string) bool {
	if ts == nil {
		return false
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	i := ts.instances[id]
	return i != nil && i.up
}
