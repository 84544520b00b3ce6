// Package crew runs short work on goroutines that stay for more of it. A new
// goroutine begins with a small stack, and work that needs a large one pays for
// growing it each time.
package crew

import "sync"

// most bounds the goroutines of a crew that have nothing to do.
const most = 64

// Crew runs functions, each on a goroutine of its own while it runs. The zero value
// is ready. Goroutines that have nothing to do end with Wait.
type Crew struct {
	running sync.WaitGroup

	mu   sync.Mutex
	idle []chan func()
	over bool
}

// Go runs f. As with a WaitGroup, a Wait under way is only sure to wait for it when
// something else still runs.
func (c *Crew) Go(f func()) {
	c.running.Add(1)
	c.mu.Lock()
	n := len(c.idle)
	if n == 0 {
		c.mu.Unlock()
		go c.work(f)
		return
	}
	next := c.idle[n-1]
	c.idle = c.idle[:n-1]
	c.mu.Unlock()
	next <- f
}

// Wait returns when no function runs any more, and ends the goroutines that stayed.
// From its beginning none stays.
func (c *Crew) Wait() {
	c.mu.Lock()
	c.over = true
	for _, next := range c.idle {
		close(next)
	}
	c.idle = nil
	c.mu.Unlock()
	c.running.Wait()
}

// work runs f and what comes after it. When f ends its goroutine (runtime.Goexit),
// or panics, it counts as ended.
func (c *Crew) work(f func()) {
	next := make(chan func(), 1)
	for ok := true; ok; f, ok = c.stay(next) {
		c.run(f)
	}
}

func (c *Crew) run(f func()) {
	defer c.running.Done()
	f()
}

// stay waits for the next function, unless enough others do.
func (c *Crew) stay(next chan func()) (f func(), ok bool) {
	c.mu.Lock()
	if c.over || len(c.idle) >= most {
		c.mu.Unlock()
		return nil, false
	}
	c.idle = append(c.idle, next)
	c.mu.Unlock()
	f, ok = <-next
	return f, ok
}
