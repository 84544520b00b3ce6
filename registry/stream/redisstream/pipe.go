package redisstream

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/toolcrib/toolcrib/registry/stream"
)

// Bounds of a pipe.
const (
	batchCommands = 256      // commands sent at once
	batchBytes    = 1 << 20  // and their bytes, unless a single command has more
	queueCommands = 8192     // commands that wait
	queueBytes    = 32 << 20 // and their bytes
)

// errWaited says that a command waited for a connection longer than it is of use.
var errWaited = errors.New("no connection in time")

// errNoAnswer says that nobody knows what became of a command.
var errNoAnswer = errors.New("neither an answer nor an error")

// command is one command on its way to Redis.
type command struct {
	args []any
	text string // of the script that args name by its hash, to send it where Redis lacks it
	size int

	// waits says that the command waits for a connection where there is none, until whoever wants its answer gives up.
	waits bool
	// again says that the command may be carried out twice, so that it is sent again when the connection broke.
	again bool
	// until bounds how long a command waits whose answer nobody wants.
	until time.Time
	// failed, when it is set, is called for a command that was not carried out, or did nothing. It must not block.
	failed func(err error)

	givenUp atomic.Bool
	done    chan struct{}
	value   any
	err     error
}

func (c *command) settle(value any, err error) {
	c.value, c.err = value, err
	close(c.done)
	if n, number := value.(int64); c.failed != nil && (err != nil || number && n == 0) {
		c.failed(err)
	}
}

// expired reports whether nobody wants the command carried out any more.
func (c *command) expired() bool {
	return c.givenUp.Load() || !c.until.IsZero() && time.Now().After(c.until)
}

func sizeOf(arg any) int {
	switch arg := arg.(type) {
	case string:
		return len(arg)
	case []byte:
		return len(arg)
	default:
		return 8
	}
}

// pipe sends commands in the order of their arrival over one connection at a time. What arrives while Redis answers
// goes out together, so that many callers share a round trip, and a sync of Redis to disk.
type pipe struct {
	client *redis.Client
	log    *slog.Logger
	denied func(args []any, err error) // hears of each error
	ctx    context.Context             // ends with the client, after what waits was sent
	down   atomic.Bool                 // the last try found no connection

	mu     sync.Mutex
	queue  []*command
	bytes  int
	closed bool
	news   chan struct{} // has room for one: the queue is no longer empty, or the pipe was closed
	room   chan struct{} // closed and made anew when the queue got shorter
	ended  chan struct{}
}

func newPipe(c *Client) *pipe {
	p := &pipe{client: c.redis, log: c.log, ctx: c.ctx, denied: c.tellDenied, news: make(chan struct{}, 1), room: make(chan struct{}), ended: make(chan struct{})}
	go p.run()
	return p
}

// do sends a command and waits for its answer.
func (p *pipe) do(ctx context.Context, c *command) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := p.post(ctx, c); err != nil {
		return nil, err
	}
	select {
	case <-c.done:
		return c.value, c.err
	case <-ctx.Done():
		c.givenUp.Store(true)
		if p.down.Load() {
			return nil, unavailable(ctx.Err())
		}
		return nil, ctx.Err()
	}
}

// post puts a command into the queue. Where the queue is full it waits for room.
func (p *pipe) post(ctx context.Context, c *command) error {
	c.done = make(chan struct{})
	for _, arg := range c.args {
		c.size += sizeOf(arg)
	}
	for {
		room, err := p.enqueue(c)
		if room == nil {
			return err
		}
		select {
		case <-room:
		case <-ctx.Done():
			return unavailable(ctx.Err())
		}
	}
}

// enqueue returns what to wait for when there is no room.
func (p *pipe) enqueue(c *command) (room <-chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return nil, stream.ErrClosed
	case p.down.Load() && !c.waits:
		return nil, stream.ErrUnavailable
	}
	if len(p.queue) > 0 && (len(p.queue) >= queueCommands || p.bytes+c.size > queueBytes) {
		return p.room, nil
	}
	p.queue = append(p.queue, c)
	p.bytes += c.size
	p.tell()
	return nil, nil
}

// tell wakes run. The caller holds mu.
func (p *pipe) tell() {
	select {
	case p.news <- struct{}{}:
	default:
	}
}

// close sends what waits, and returns when that is done or the pipe's context ended.
func (p *pipe) close() {
	p.mu.Lock()
	p.closed = true
	p.tell()
	p.mu.Unlock()
	<-p.ended
}

func (p *pipe) run() {
	defer close(p.ended)
	defer p.fail()
	for {
		if p.down.Load() && !p.reconnect() {
			return
		}
		batch, open := p.take()
		if len(batch) > 0 {
			p.send(batch)
			continue
		}
		if !open {
			return
		}
		select {
		case <-p.news:
		case <-p.ctx.Done():
			return
		}
	}
}

// reconnect returns true when Redis answers again, and false when the client's time is over.
func (p *pipe) reconnect() bool {
	p.refuse()
	var pause backoff
	for pause.wait(p.ctx) {
		if judge(p.client.Ping(p.ctx).Err()) == answered {
			p.down.Store(false)
			return true
		}
	}
	return false
}

// refuse settles what came before it was known that there is no connection, and does not wait for one.
func (p *pipe) refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := p.queue[:0]
	p.bytes = 0
	for _, c := range p.queue {
		if !c.waits {
			p.settle(c, nil, stream.ErrUnavailable)
			continue
		}
		kept = append(kept, c)
		p.bytes += c.size
	}
	clear(p.queue[len(kept):])
	p.queue = kept
	close(p.room)
	p.room = make(chan struct{})
}

// take removes from the queue what goes out next. open is false when the pipe is closed and nothing waits.
func (p *pipe) take() (batch []*command, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, bytes := 0, 0
	for n < len(p.queue) && n < batchCommands && (n == 0 || bytes+p.queue[n].size <= batchBytes) {
		bytes += p.queue[n].size
		n++
	}
	for _, c := range p.queue[:n] {
		if c.expired() {
			p.settle(c, nil, unavailable(errWaited))
			continue
		}
		batch = append(batch, c)
	}
	p.shorten(n, bytes)
	return batch, len(p.queue) > 0 || !p.closed
}

// shorten removes the first commands of the queue. The caller holds mu.
func (p *pipe) shorten(n, bytes int) {
	if n == 0 {
		return
	}
	clear(p.queue[:n])
	p.queue = p.queue[n:]
	p.bytes -= bytes
	close(p.room)
	p.room = make(chan struct{})
}

// putBack puts commands in front of the queue, to be sent again.
func (p *pipe) putBack(commands []*command) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range commands {
		p.bytes += c.size
	}
	p.queue = append(commands, p.queue...)
	p.tell()
}

// fail settles all that waits when the client's time is over.
func (p *pipe) fail() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.queue {
		c.settle(nil, stream.ErrClosed)
	}
	p.queue, p.bytes, p.closed = nil, 0, true
}

// send sends commands together and settles each that was answered.
func (p *pipe) send(batch []*command) {
	pipeline := p.client.Pipeline()
	answers := make([]*redis.Cmd, len(batch))
	for i, c := range batch {
		answers[i] = redis.NewCmd(p.ctx, c.args...)
		_ = pipeline.Process(p.ctx, answers[i]) // It only joins the pipeline.
	}
	_, whole := pipeline.Exec(p.ctx)

	var later []*command
	for i, c := range batch {
		value, err := answerOf(answers[i], whole)
		what := judge(err)
		if what == unsent || what == broken {
			p.down.Store(true)
			err = unavailable(err)
		}
		if c.goesAgain(what) {
			later = append(later, c)
			continue
		}
		p.settle(c, value, err)
	}
	if len(later) > 0 {
		p.putBack(later)
	}
}

// settle settles a command, and tells of what nobody waits for when it was not carried out.
func (p *pipe) settle(c *command, value any, err error) {
	err = denied(c.args, err)
	if err != nil && !c.until.IsZero() {
		p.log.Log(p.ctx, levelOf(err), "Redis did not carry out what nobody waits for", "command", c.args[0], "err", err)
	}
	if err != nil {
		p.denied(c.args, err)
	}
	c.settle(value, err)
}

// answerOf is what became of one command. Each has an error of its own, but those of a pipeline for which there was no
// connection, as the server still loads its data, may have none; the pipeline has it then.
func answerOf(answer *redis.Cmd, whole error) (any, error) {
	value, err := answer.Result()
	if value == nil && err == nil {
		return nil, cmp.Or(whole, errNoAnswer)
	}
	return value, err
}

// goesAgain decides whether a command is sent again that Redis may not have carried out, and prepares it for that.
func (c *command) goesAgain(what verdict) bool {
	switch what {
	case unloaded:
		c.args = slices.Concat([]any{"EVAL", c.text}, c.args[2:])
		return true
	case unsent:
		return c.waits
	case broken:
		return c.again
	default:
		return false
	}
}
