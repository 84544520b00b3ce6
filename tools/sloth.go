package tools

import (
	"sync"
	"time"
)

// grace is how long a call may take before it gets a timer of its own.
const grace = 5 * time.Millisecond

// sloth tells those who wait for a job when it takes longer than most do, so
// that they start a timer for the job's limit only then: to start and stop a
// timer takes longer than most of what the door does for a call. The zero sloth
// is ready for use, by many goroutines at once.
type sloth struct {
	mu               sync.Mutex // guards the fields below and the jobs' neighbours
	oldest, youngest *job
	armed            time.Time // when the timer that runs was started, or zero
}

// sloth returns that of the catalog, or nil outside of one.
func (s *shell) sloth() *sloth {
	if s.cat == nil {
		return nil
	}
	return &s.cat.slow
}

// add takes in a job whose attempt has just begun.
func (s *sloth) add(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.older = s.youngest; j.older == nil {
		s.oldest = j
	} else {
		j.older.younger = j
	}
	s.youngest = j
	// A timer that should have fired long ago, or was started in the future,
	// belongs to another clock, such as that of a test.
	if age := j.began.Sub(s.armed); age < 0 || age > 2*grace {
		s.arm(j.began)
	}
}

func (s *sloth) arm(now time.Time) {
	s.armed = now
	time.AfterFunc(grace, s.look)
}

// remove takes out a job, if it is still there. Its done is not sent false
// afterwards.
func (s *sloth) remove(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unlink(j)
}

// unlink takes a job out of the list. The caller holds the lock.
func (s *sloth) unlink(j *job) {
	switch {
	case j.older != nil:
		j.older.younger = j.younger
	case s.oldest == j:
		s.oldest = j.younger
	default:
		return // it is not in the list
	}
	if j.younger != nil {
		j.younger.older = j.older
	} else {
		s.youngest = j.older
	}
	j.older, j.younger = nil, nil
}

// look tells of the jobs that are slow, and looks again later while there are
// others.
func (s *sloth) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for j := s.oldest; j != nil && now.Sub(j.began) >= grace; j = s.oldest {
		s.unlink(j)
		j.done <- false
	}
	s.armed = time.Time{}
	if s.oldest != nil {
		s.arm(now)
	}
}
