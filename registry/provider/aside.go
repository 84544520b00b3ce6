package provider

import (
	"sync"
	"time"
)

const (
	// claimGrace is how long a place waits for the answer to a claim. After that it
	// runs other calls.
	claimGrace = 300 * time.Millisecond
	// asideFor is how long calls go back to the stream for which there is no room
	// beside the places.
	asideFor = 15 * time.Second
)

// aside keeps the calls of processes that do not answer claims out of the places.
// While claims are without an answer, the other calls of their process wait here
// and are not claimed: a call that a worker has claimed and not run has an unknown
// outcome when the worker dies.
type aside struct {
	// ready are the calls that may have a place now. There is room in it for all
	// that the worker can have.
	ready chan *job

	mu      sync.Mutex
	silent  map[string]*silence // by inboxes
	waiting int                 // calls in all of them
}

// silence is a process that does not answer.
type silence struct {
	asking int // claims that left their places and have not ended
	jobs   []*job
}

// claiming is a claim under way, guarded by aside.
type claiming struct {
	job        *job
	done       chan struct{} // closed when it has ended
	over, mine bool
	left       *silence // not nil when its place runs other calls
}

// park keeps a call whose process is silent. full says that there is no room for it.
func (a *aside) park(j *job, most int) (parked, full bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.silent[j.msg.Route.Inbox]
	if s == nil || a.waiting >= most {
		return false, s != nil
	}
	s.jobs = append(s.jobs, j)
	a.waiting++
	return true, false
}

// leave notes that the claim's place waits no longer, unless the claim has ended.
func (a *aside) leave(c *claiming) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c.over {
		return false
	}
	inbox := c.job.msg.Route.Inbox
	s := a.silent[inbox]
	if s == nil {
		s = &silence{}
		a.silent[inbox] = s
	}
	s.asking++
	c.left = s
	return true
}

// end notes that a claim has ended, and reports whether its place had left it. The
// other calls of its process may have places when somebody answered, and when no
// claim is left by which to find out whether somebody does.
func (a *aside) end(c *claiming, mine, heard bool) (left bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c.over, c.mine = true, mine
	if c.left != nil {
		c.left.asking--
	}
	inbox := c.job.msg.Route.Inbox
	if s := a.silent[inbox]; s != nil && (heard || s.asking == 0) {
		delete(a.silent, inbox)
		a.waiting -= len(s.jobs)
		for _, j := range s.jobs {
			a.ready <- j
		}
	}
	return c.left != nil
}

// empty takes out all calls.
func (a *aside) empty() (jobs []*job) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for inbox, s := range a.silent {
		jobs = append(jobs, s.jobs...)
		delete(a.silent, inbox)
	}
	a.waiting = 0
	for {
		select {
		case j := <-a.ready:
			jobs = append(jobs, j)
		default:
			return jobs
		}
	}
}

// count returns how many calls wait.
func (a *aside) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.waiting + len(a.ready)
}

// isClaimed reports whether the place of a call may run it now: because the call
// needs no claim, or has one. Otherwise the call is seen to elsewhere.
func (w *worker) isClaimed(j *job) bool {
	if r := j.msg.Route; r == nil || !r.Claim && !r.Again || j.claimed {
		return true
	}
	parked, full := w.aside.park(j, max(refusals, w.opts.MaxQueuedToolCalls)/2)
	if full {
		w.release(j, asideFor)
	}
	if parked || full {
		return false
	}
	c := &claiming{job: j, done: make(chan struct{})}
	w.startClaim(c)
	timer := time.NewTimer(claimGrace)
	defer timer.Stop()
	select {
	case <-c.done:
		return c.mine
	case <-timer.C:
		return !w.aside.leave(c) && c.mine
	}
}

// startClaim has a claim made.
func (w *worker) startClaim(c *claiming) {
	payload, err := w.encodeClaim(c.job, false)
	if err != nil { // alone says so
		w.tasks.Go(func() { w.alone(&question{job: c.job, claim: c}) })
		return
	}
	w.hand(&question{job: c.job, claim: c, payload: payload})
}

// claimed ends a claim, and has the call wait for another place when it has lost
// its own meanwhile.
func (w *worker) claimed(c *claiming, mine, heard bool) {
	c.job.claimed = mine
	left := w.aside.end(c, mine, heard)
	close(c.done)
	if left && mine {
		w.aside.ready <- c.job
	}
}

// handBack gives back to the stream what waits for a place beside the queue, and
// first to its registry what is claimed.
func (w *worker) handBack() {
	for _, j := range w.aside.empty() {
		if j.claimed {
			w.tasks.Go(func() { w.unclaim(j, 0) })
			continue
		}
		w.release(j, 0)
	}
}
