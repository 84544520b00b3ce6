package mcpwire

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// A call is a request of ours that waits for its answer.
type call struct {
	id     int64
	method string
	params json.RawMessage
	opts   *CallOptions
	mail   *mailbox // nil: notifications are delivered where they are read

	done   chan struct{} // closed when answer, long or err is there
	answer Frame
	long   *spool // an answer that is too long for memory; guarded by calls.mu
	err    error

	abort func() // ends whatever still reads for this call; guarded by calls.mu

	mu   sync.Mutex // held while a notification is delivered
	over bool       // the caller has left

	forgotten bool // guarded by calls.mu
}

func (c *call) wireID() ID { return ID(strconv.FormatInt(c.id, 10)) }

// outcome is what the caller gets once done is closed.
func (c *call) outcome() (json.RawMessage, error) {
	if c.err != nil {
		return nil, c.err
	}
	if c.answer.Kind == KindError {
		return nil, ParseError(c.answer.Error)
	}
	return c.answer.Result, nil
}

func (c *call) finished() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// notify hands a notification to one of the call's functions.
func (c *call) notify(n notification) {
	if c.mail != nil {
		c.mail.put(n)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		n.deliver(n.method, n.params)
	}
}

// calls are the requests of one side of a connection that wait for answers.
type calls struct {
	mu     sync.Mutex
	last   int64
	open   map[int64]*call
	closed error

	dropped atomic.Int64 // answers to no open call
	long    atomic.Int64 // open calls that take long answers
}

// add opens a call under a new id, or says why the connection takes none.
func (t *calls) add(c *call) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed != nil {
		return t.closed
	}
	if t.open == nil {
		t.open = make(map[int64]*call)
	}
	t.last++
	c.id = t.last
	t.open[c.id] = c
	return nil
}

// forget takes a call out, whether it was answered or not. No notification is
// delivered to it afterwards.
func (t *calls) forget(c *call) {
	t.mu.Lock()
	delete(t.open, c.id)
	c.forgotten = true
	long := c.long
	t.mu.Unlock()
	long.close()
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
}

// find returns the open call with that id, as our own ids or tokens are
// spelled; some peers turn the number into a string.
func (t *calls) find(id ID) *call {
	n, err := strconv.ParseInt(strings.Trim(string(id), `"`), 10, 64)
	if err != nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open[n]
}

// finish hands an answer to its call. A second answer, and one to a call that
// was given up, is dropped and counted.
func (t *calls) finish(f Frame) {
	t.end(t.find(f.ID), func(c *call) { c.answer = f })
}

// finishOwn is finish for an answer that came on the call's own stream, which
// then need not be stopped.
func (t *calls) finishOwn(c *call, f Frame) {
	t.mu.Lock()
	c.abort = nil
	t.mu.Unlock()
	t.end(c, func(c *call) { c.answer = f })
}

// finishLong hands a call its answer on the disk, which it closes when it is
// forgotten. It is false for a call that is over already. own says that the
// answer came on the call's own stream.
func (t *calls) finishLong(c *call, p *spool, own bool) bool {
	t.mu.Lock()
	if c.forgotten || c.finished() {
		t.mu.Unlock()
		t.dropped.Add(1)
		return false
	}
	abort := c.abort
	if own {
		c.abort, abort = nil, nil
	}
	c.long = p
	close(c.done)
	t.mu.Unlock()
	if abort != nil {
		abort()
	}
	return true
}

// fail ends one call without an answer.
func (t *calls) fail(c *call, err error) {
	t.end(c, func(c *call) { c.err = err })
}

func (t *calls) end(c *call, set func(*call)) {
	if c == nil {
		t.dropped.Add(1)
		return
	}
	t.mu.Lock()
	if c.finished() {
		t.mu.Unlock()
		t.dropped.Add(1)
		return
	}
	set(c)
	close(c.done)
	abort := c.abort
	t.mu.Unlock()
	if abort != nil {
		abort()
	}
}

// onEnd has stop called when an answer comes by another way than the stream of
// the call itself, at once if it already has.
func (t *calls) onEnd(c *call, stop func()) {
	t.mu.Lock()
	ended := c.finished()
	if !ended {
		c.abort = stop
	}
	t.mu.Unlock()
	if ended {
		stop()
	}
}

// close refuses further calls. Those that are open learn it from their link.
func (t *calls) close(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed == nil {
		t.closed = err
	}
}
