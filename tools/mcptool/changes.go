package mcptool

import (
	"sync"
	"time"
)

const (
	// settleTime is how long a list must have been left alone before its
	// change is told.
	settleTime = 100 * time.Millisecond
	// settleLimit bounds how long a list that changes all the time delays that.
	settleLimit = time.Second
	// shortestTTL bounds how often a list is read again because its time to
	// live ended.
	shortestTTL = 5 * time.Second
)

// changes tells the owner of a Server, once for a burst of them, that its list
// of tools may have changed. It is safe for concurrent use.
type changes struct {
	mu     sync.Mutex
	tell   func()
	stale  bool
	since  time.Time   // when it became stale
	timer  *time.Timer // tells; nil when nothing is due
	expiry *time.Timer // marks the list stale when its time to live ends
	closed bool
	calls  sync.WaitGroup
}

func (c *changes) onChange(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tell = f
}

// mark says that the list may have changed.
func (c *changes) mark() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	now := time.Now()
	if !c.stale {
		c.stale, c.since = true, now
	}
	stop(c.timer)
	due := min(settleTime, c.since.Add(settleLimit).Sub(now))
	c.timer = time.AfterFunc(max(due, 0), c.due)
}

// due tells of the change, unless the list has been read meanwhile.
func (c *changes) due() {
	c.mu.Lock()
	tell := c.tell
	if c.closed || !c.stale || tell == nil {
		c.mu.Unlock()
		return
	}
	c.stale = false
	c.calls.Add(1)
	c.mu.Unlock()
	defer c.calls.Done()
	tell()
}

// reading says that the list is being read now, which settles what was marked
// before.
func (c *changes) reading() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stale = false
	stop(c.timer)
	stop(c.expiry)
}

// expire has the list marked when the time to live that the server gave it
// ends. A list without one is never marked.
func (c *changes) expire(ttl time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stop(c.expiry)
	if ttl > 0 && !c.closed {
		c.expiry = time.AfterFunc(max(ttl, shortestTTL), c.mark)
	}
}

// close stops everything and waits for a call that is under way.
func (c *changes) close() {
	c.mu.Lock()
	c.closed = true
	stop(c.timer)
	stop(c.expiry)
	c.mu.Unlock()
	c.calls.Wait()
}

func stop(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}
