package provider

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/stream"
)

// Claims and results that a worker has for one process go there together: while two
// questions are under way, those that come meanwhile wait, and are then the next
// question. So the first ones never wait, and the more there are, the less each costs.
// Claims and results do not wait for each other, as claims may wait for a disk.
//
// A question gets here what nearly all get, and what is left to do then is done here
// too. Every other one, also one without an answer, goes its own way from the beginning.

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

// question is a claim or a result of a call for the process that sent it.
type question struct {
	job     *job
	claim   *claiming // nil when it is a result
	payload []byte
	came    time.Time
}

// stale reports whether the question waited for too long, or nobody needs its answer.
func (q *question) stale(now time.Time) bool {
	return now.Sub(q.came) > busTime || q.claim != nil && q.job.ctx.Err() != nil
}

// enter adds a question to a lane, and reports whether it goes at once. Then it is
// not in the lane, which must be followed up.
func (l *lanes) enter(at lane, q *question) (now bool) {
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
		return true
	}
	t.waiting = append(t.waiting, q)
	return false
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

// hand asks a question along with others of its kind, if it can.
func (w *worker) hand(q *question) {
	inbox := q.job.msg.Route.Inbox
	at := lane{inbox: inbox, kind: registry.MessageResults}
	if q.claim != nil {
		at.kind = registry.MessageClaims
	}
	if len(q.payload) > bytesTogether/2 || q.claim != nil && w.isDeaf(inbox) {
		w.tasks.Go(func() { w.alone(q) })
		return
	}
	q.came = time.Now()
	if w.lanes.enter(at, q) {
		w.tasks.Go(func() { w.follow(at, []*question{q}) })
	}
}

// follow asks questions, and then what waits in their lane until nothing does.
func (w *worker) follow(at lane, group []*question) {
	room := min(bytesTogether, w.client.MaxPayload())
	for ; group != nil; group = w.lanes.next(at, room) {
		w.askGroup(at, group)
		w.gather(at)
	}
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

// askGroup asks several questions at once, and sees to what each answer means.
func (w *worker) askGroup(at lane, group []*question) {
	now := time.Now()
	group = slices.DeleteFunc(group, func(q *question) bool {
		stale := q.stale(now)
		if stale {
			w.tasks.Go(func() { w.alone(q) })
		}
		return stale
	})
	if len(group) == 0 {
		return
	}
	verdicts, err := w.verdicts(at, group)
	if errors.Is(err, context.DeadlineExceeded) && at.kind == registry.MessageClaims {
		w.deafened(at.inbox)
	}
	arrived := make([]*job, 0, len(group))
	for i, q := range group {
		verdict := ""
		if i < len(verdicts) {
			verdict = verdicts[i]
		}
		switch {
		case q.claim != nil && verdict == string(registry.VerdictRun):
			w.claimed(q.claim, true, true)
		case q.claim == nil && verdict == registry.MessageOK:
			arrived = append(arrived, q.job)
		default:
			w.tasks.Go(func() { w.alone(q) })
		}
	}
	w.settle(arrived...)
}

// verdicts asks questions. It may return fewer verdicts than there are questions.
func (w *worker) verdicts(at lane, group []*question) ([]string, error) {
	if len(group) == 1 {
		m := stream.Message{Name: w.opts.ResultEventType, Payload: group[0].payload}
		if group[0].claim != nil {
			m.Name = registry.MessageClaim
		}
		answer, err := w.askWithin(w.work, busTime, at.inbox, m)
		return []string{answer.Name}, err
	}
	payloads := make([][]byte, len(group))
	for i, q := range group {
		payloads[i] = q.payload
	}
	answer, err := w.askWithin(w.work, busTime, at.inbox, stream.Message{Name: at.kind, Payload: registry.EncodeTogether(payloads)})
	if err != nil || answer.Name != registry.MessageVerdicts {
		return nil, err
	}
	return registry.DecodeVerdicts(answer.Payload), nil
}

// alone makes a claim, or brings a result to its place, in whatever way is left.
func (w *worker) alone(q *question) {
	if q.claim != nil {
		mine, heard := w.claim(q.job)
		w.claimed(q.claim, mine, heard)
		return
	}
	w.handIn(q.job, q.payload)
}
