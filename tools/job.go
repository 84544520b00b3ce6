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
	done    chan struct{}
	state   atomic.Int32

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
		close(j.done)
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
	<-j.done
	return false
}

// await waits for the result, and reports false when the attempt ended first.
func (j *job) await() bool {
	a := j.attempt
	outer := a.Context.Done()
	if !a.limit {
		select {
		case <-j.done:
			return true
		case <-outer:
			return false
		}
	}
	timer := time.NewTimer(j.shell.policy.timeout())
	defer timer.Stop()
	var kicked <-chan struct{}
	for {
		select {
		case <-j.done:
			return true
		case <-outer:
			return false
		case <-kicked:
		case <-timer.C:
		}
		var left time.Duration
		var running bool
		if left, running, kicked = a.remaining(); !running {
			timer.Stop()
			continue
		}
		if left <= 0 {
			return false
		}
		timer.Reset(left)
	}
}
