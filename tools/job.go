package tools

import (
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"
)

// job is one attempt that runs on another goroutine. Whoever comes second, the
// tool with its result or the waiting caller at its limit, finds that the
// other was first.
type job struct {
	shell   *shell
	attempt *attempt
	args    json.RawMessage
	invoke  Invoker
	began   time.Time // if there is a time limit
	// done receives true when the tool returned, and before that false at most
	// once, from the catalog's sloth. Only who waits for the job reads it.
	done  chan bool
	state atomic.Int32
	// older and younger are its neighbours in the sloth.
	older, younger *job

	res ToolResult
	err error
}

const (
	jobRuns int32 = iota
	jobDone
	jobAbandoned
)

// errGoexit says that a tool ended its goroutine instead of returning.
var errGoexit = errors.New("tools: the tool ended its goroutine")

func (j *job) run() {
	growStack(0)
	late := j.shell.late
	finished := false
	var res ToolResult
	var err error
	defer func() {
		if !finished {
			if r := recover(); r != nil {
				res, err = ToolResult{}, j.shell.panicked(j.attempt, r)
			} else {
				res, err = ToolResult{}, &Error{Class: ErrClassPermanent, Delivery: Answered, Err: errGoexit}
			}
		}
		j.deliver(res, err, late)
	}()
	res, err = j.invoke(j.attempt, j.args)
	finished = true
}

// growStack makes the stack of a new goroutine as large as most tools need. It
// would get there anyway, but step by step, and at each step every frame in use
// is moved; here there are only a few. The runtime makes room for the whole
// frame of a function that is called, so nothing of it is touched.
//
//go:noinline
func growStack(use int) byte {
	if use == 0 {
		return 0
	}
	var room [stackRoom]byte
	room[use] = 1
	return room[use/2]
}

// stackRoom makes the runtime choose a stack of 16 KiB.
const stackRoom = 10 << 10

func (j *job) deliver(res ToolResult, err error, late *lateness) {
	j.res, j.err = res, err
	if j.state.CompareAndSwap(jobRuns, jobDone) {
		j.done <- true
		return
	}
	late.lingering.Add(-1)
	late.dropped.Add(1)
}

// abandon gives up on the tool. It reports false when the result came first.
func (j *job) abandon() bool {
	j.shell.late.lingering.Add(1)
	if j.state.CompareAndSwap(jobRuns, jobAbandoned) {
		return true
	}
	j.shell.late.lingering.Add(-1)
	for !<-j.done {
	}
	return false
}

// await waits for the result, and reports false when the attempt ended first.
func (j *job) await() bool {
	outer := j.attempt.Context.Done()
	if !j.attempt.limit {
		return j.awaitEnd(outer)
	}
	s := j.shell.sloth()
	if s == nil || j.shell.policy.timeout() <= 2*grace {
		return j.awaitLimit(outer)
	}
	s.add(j)
	done, over := j.either(outer)
	s.remove(j)
	if done || over {
		return done
	}
	return j.awaitLimit(outer)
}

// either waits until the tool returned, the context around the attempt ended, or
// the tool took longer than most do.
func (j *job) either(outer <-chan struct{}) (done, over bool) {
	if outer == nil {
		return <-j.done, false // which is cheaper than to select
	}
	select {
	case done = <-j.done:
		return done, false
	case <-outer:
		return false, true
	}
}

// awaitEnd is await without a time limit.
func (j *job) awaitEnd(outer <-chan struct{}) bool {
	select {
	case <-j.done:
		return true
	case <-outer:
		return false
	}
}

// awaitLimit is await with a timer of its own.
func (j *job) awaitLimit(outer <-chan struct{}) bool {
	left, running, kicked := j.attempt.remaining()
	timer := time.NewTimer(left)
	defer timer.Stop()
	for {
		switch {
		case !running:
			timer.Stop()
		case left <= 0:
			return false
		default:
			timer.Reset(left)
		}
		select {
		case done := <-j.done:
			if done {
				return true
			}
		case <-outer:
			return false
		case <-kicked:
		case <-timer.C:
		}
		left, running, kicked = j.attempt.remaining()
	}
}
