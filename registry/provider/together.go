package provider

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/stream"
)

// Claims and results that a worker has for one process go there together: while two
// questions are under way, those that come meanwhile wait, and are then the next
// question. So the first ones never wait, and the more there are, the less each costs.
// Claims and results do not wait for each other, as claims may wait for a disk.

const (
	// mostUnderWay is how many questions are under way at a time in a lane, so that
	// one is on its way while another is written.
	mostUnderWay = 2
	// mostTogether bounds how many are in one question.
	mostTogether = min(64, registry.MaxTogether)
	// bytesTogether bounds their bytes, where the backend takes as many. One that has
	// more goes alone.
	bytesTogether = 256 << 10
)

// lanes are those in which questions are under way.
type lanes struct {
	mu   sync.Mutex
	open map[lane]*traffic
}

// traffic is what there is in a lane.
type traffic struct {
	underWay int // questions that have no answer yet
	waiting  []*question
}

// lane is where questions of a kind to one process follow each other.
type lane struct{ inbox, kind string }

// question is a claim or a result that waits for those ahead of it.
type question struct {
	payload []byte
	answer  chan answered // holds one
}

// answered is what came of a question.
type answered struct {
	verdict string
	err     error
}

// enter returns nil to the first ones of a lane, who ask at once, and must have the
// lane followed up.
func (l *lanes) enter(at lane, payload []byte) *question {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.open[at]
	if t == nil {
		t = &traffic{}
		if l.open == nil {
			l.open = map[lane]*traffic{}
		}
		l.open[at] = t
	}
	if t.underWay < mostUnderWay {
		t.underWay++
		return nil
	}
	q := &question{payload: payload, answer: make(chan answered, 1)}
	t.waiting = append(t.waiting, q)
	return q
}

// leave takes a question back that nobody waits for any more, so that it is not
// asked later, when its call may have gone another way.
func (l *lanes) leave(at lane, q *question) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.open[at]
	if t == nil {
		return
	}
	if i := slices.Index(t.waiting, q); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	}
}

// next returns what of a lane goes together, as far as there is room, and nothing
// when the lane is closed.
func (l *lanes) next(at lane, room int) []*question {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.open[at]
	waiting := t.waiting
	n, bytes := 0, 2
	for n < len(waiting) && n < mostTogether && (n == 0 || bytes+len(waiting[n].payload)+1 <= room) {
		bytes += len(waiting[n].payload) + 1
		n++
	}
	if n == 0 {
		if t.underWay--; t.underWay == 0 {
			delete(l.open, at)
		}
		return nil
	}
	t.waiting = waiting[n:]
	return waiting[:n:n]
}

// waits is how many wait in a lane.
func (l *lanes) waits(at lane) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.open[at]; t != nil {
		return len(t.waiting)
	}
	return 0
}

// askTogether asks a process, along with what else it is asked meanwhile.
func (w *worker) askTogether(ctx context.Context, inbox string, m stream.Message) (stream.Message, error) {
	at := lane{inbox: inbox, kind: registry.MessageResults}
	switch {
	case m.Name == registry.MessageClaim:
		at.kind = registry.MessageClaims
	case m.Name != w.opts.ResultEventType || len(m.Payload) > bytesTogether/2:
		return w.askWithin(ctx, busTime, inbox, m)
	}
	ctx, cancel := context.WithTimeout(ctx, busTime)
	defer cancel()
	q := w.lanes.enter(at, m.Payload)
	if q == nil {
		defer w.follow(at)
		return w.client.Request(ctx, inbox, m)
	}
	select {
	case a := <-q.answer:
		if a.err == nil && a.verdict == registry.MessageAlone {
			return w.client.Request(ctx, inbox, m)
		}
		return stream.Message{Name: a.verdict}, a.err
	case <-ctx.Done():
		w.lanes.leave(at, q)
		return stream.Message{}, ctx.Err()
	}
}

// follow asks what waits in a lane, until nothing does, and closes it.
func (w *worker) follow(at lane) {
	room := min(bytesTogether, w.client.MaxPayload())
	group := w.lanes.next(at, room)
	if group == nil {
		return
	}
	w.tasks.Go(func() {
		for ; group != nil; group = w.lanes.next(at, room) {
			w.askGroup(at, group)
			w.gather(at)
		}
	})
}

// gather lets those go first who are about to ask too. Where the processor is idle
// that takes no time, and where it is busy a group becomes large.
func (w *worker) gather(at lane) {
	for before := -1; ; {
		now := w.lanes.waits(at)
		if now == before || now >= mostTogether {
			return
		}
		before = now
		runtime.Gosched()
	}
}

// askGroup asks several at once, and hands each its verdict. One for which there is
// none is asked alone.
func (w *worker) askGroup(at lane, group []*question) {
	payloads := make([][]byte, len(group))
	for i, q := range group {
		payloads[i] = q.payload
	}
	answer, err := w.askWithin(w.work, busTime, at.inbox, stream.Message{Name: at.kind, Payload: registry.EncodeTogether(payloads)})
	verdicts := registry.DecodeVerdicts(answer.Payload)
	for i, q := range group {
		a := answered{verdict: registry.MessageAlone, err: err}
		if i < len(verdicts) && answer.Name == registry.MessageVerdicts {
			a.verdict = verdicts[i]
		}
		q.answer <- a
	}
}
