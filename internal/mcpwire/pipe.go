package mcpwire

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"
)

// ServeStdio serves one client over a pair of pipes, one message on each line,
// until in ends or ctx does. Requests that are then in progress have two seconds
// to finish, and their answers are still written; once ctx has ended, for as long
// at most. It returns nil at the end of in. A read that blocks when ctx ends is
// abandoned, unless in is an io.Closer, which is then closed; so is a write.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	if !s.gate.enter() {
		return ErrClosed
	}
	defer s.gate.leave()
	p := &pipe{server: s, lines: newLineConn(out)}
	p.session = &Session{server: s, pipe: true, id: "pipe-" + newSessionID(), out: p}
	p.session.open()
	defer p.session.Close()
	p.written, p.unread = make(chan struct{}), make(chan struct{})
	giveUp := sync.OnceFunc(p.giveUp)
	for _, end := range []context.Context{ctx, p.session.ctx} {
		defer context.AfterFunc(end, giveUp)()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.session.ctx, cancel)()
	p.ctx = ctx
	go func() {
		defer close(p.written)
		p.lines.run()
	}()
	err := p.serve(in)
	if err != nil || s.gate.open.Err() == nil { // a shutdown waits by itself
		defer time.AfterFunc(pipeGrace, cancel).Stop()
	}
	p.work.Wait()
	cancel()
	p.lines.close(ErrClosed)
	select {
	case <-p.written:
	case <-p.unread:
	}
	return err
}

// pipeGrace is how long requests in progress may go on after the client has
// closed its end, and how long a client has to read what is left.
const pipeGrace = 2 * time.Second

// giveUp stops writing to a client that does not read.
func (p *pipe) giveUp() {
	timer := time.NewTimer(pipeGrace)
	defer timer.Stop()
	select {
	case <-timer.C:
		p.lines.close(ErrClosed)
		close(p.unread)
	case <-p.written:
	}
}

// A pipe is the server's side of a pair of pipes.
type pipe struct {
	server  *Server
	lines   *lineConn
	session *Session // of the stateful era, which begins with initialize
	ctx     context.Context
	work    sync.WaitGroup
	begun   bool // initialize was answered

	written chan struct{} // closed when nothing more is written
	unread  chan struct{} // closed when the client is not waited for any more
}

func (p *pipe) send(ctx context.Context, msg []byte) error { return p.lines.send(ctx, msg) }

type readLine struct {
	data []byte
	err  error
}

// serve takes in lines until they end.
func (p *pipe) serve(in io.Reader) error {
	lines := make(chan readLine)
	go p.read(in, lines)
	for {
		select {
		case line := <-lines:
			if done, err := p.line(line); done {
				return err
			}
		case <-p.lines.stop:
			closeReader(in)
			return p.lines.err
		case <-p.ctx.Done():
			closeReader(in)
			return p.ctx.Err()
		case <-p.server.gate.open.Done():
			closeReader(in)
			return nil
		}
	}
}

func closeReader(in io.Reader) { _ = closeIfCloser(in) }

func (p *pipe) read(in io.Reader, lines chan<- readLine) {
	r := newLineReader(in, p.server.opts.MaxMessageBytes)
	for {
		data, err := r.next()
		select {
		case lines <- readLine{data, err}:
		case <-p.ctx.Done():
			return
		}
		var overlong *errOverlong
		if err != nil && !errors.As(err, &overlong) {
			return
		}
	}
}

// line takes in one line and reports whether it was the last.
func (p *pipe) line(l readLine) (done bool, err error) {
	var overlong *errOverlong
	switch {
	case errors.As(l.err, &overlong):
		p.overlong(overlong)
	case l.err == io.EOF:
		return true, nil
	case l.err != nil:
		return true, l.err
	case l.data[0] == '[' && p.session.version == Version20250326:
		p.batch(l.data)
	default:
		p.message(l.data, p.reply, func() {})
	}
	return false, nil
}

func (p *pipe) overlong(e *errOverlong) {
	if !e.identified || !e.method {
		return
	}
	p.reply(newAnswer(e.id, nil, Errorf(CodeInvalidRequest, "message exceeds %d bytes", p.server.opts.MaxMessageBytes)))
}

// reply writes an answer.
func (p *pipe) reply(a *answer) {
	if err := p.lines.send(context.WithoutCancel(p.ctx), a.bytes()); err != nil {
		p.server.opts.Logger.Debug("answer not written", "error", err)
	}
}

// batch answers a batch with one array.
func (p *pipe) batch(data []byte) {
	messages, _, err := SplitBatch(data)
	if err != nil {
		p.reply(newAnswer("", nil, err))
		return
	}
	p.runBatch(messages)
}

func (p *pipe) runBatch(messages []json.RawMessage) {
	var mu sync.Mutex
	var answers []*answer
	var pending sync.WaitGroup
	for _, m := range messages {
		pending.Add(1)
		p.message(m, func(a *answer) {
			mu.Lock()
			answers = append(answers, a)
			mu.Unlock()
		}, pending.Done)
	}
	p.work.Go(func() {
		pending.Wait()
		if len(answers) > 0 {
			p.reply(&answer{head: joinArray(answers)})
		}
	})
}

// message serves one message: notifications and answers here, in the order
// in which they come, requests each on a goroutine of its own. done is called
// when the message has been served.
func (p *pipe) message(data []byte, reply func(*answer), done func()) {
	f, err := scanIncoming(data)
	if err != nil {
		reply(newAnswer(f.ID, nil, err))
		done()
		return
	}
	if f.Kind == KindRequest {
		p.request(f, reply, done)
		return
	}
	defer done()
	if f.Kind == KindNotification {
		p.notification(f)
		return
	}
	p.session.receiveAnswer(f)
}

func (p *pipe) notification(f Frame) {
	if f.Method == NotifyCancelled || p.begun {
		p.server.notified(p.ctx, &Request{Method: f.Method, Params: f.Params, Notification: true, Session: p.session})
	}
}

func (p *pipe) request(f Frame, reply func(*answer), done func()) {
	meta := scanRequestMeta(f.Params)
	if here := p.answerHere(f, &meta); here != nil {
		reply(here)
		done()
		return
	}
	ctx, cancel, err := p.session.requests.begin(p.ctx, f.ID)
	if err != nil {
		reply(newAnswer(f.ID, nil, err))
		done()
		return
	}
	p.work.Go(func() {
		defer done()
		defer p.session.requests.end(f.ID, cancel)
		var a *answer
		defer func() {
			p.server.orEnded(&f, &a)
			if !errors.Is(context.Cause(ctx), errCancelled) { // which has no answer
				reply(a)
			}
		}()
		result, err := p.serveRequest(ctx, f, &meta)
		a = newAnswer(f.ID, result, err)
	})
}

// answerHere answers what needs no goroutine: what belongs to the beginning of
// a session.
func (p *pipe) answerHere(f Frame, meta *requestMeta) *answer {
	switch {
	case statelessOnPipe(f, meta):
		return nil
	case f.Method == MethodInitialize:
		result, err := p.initialize(f)
		return newAnswer(f.ID, result, err)
	case f.Method == MethodPing:
		return newAnswer(f.ID, nil, nil)
	case !p.begun:
		return newAnswer(f.ID, nil, Errorf(CodeInvalidRequest, "invalid request: %s before initialize", f.Method))
	}
	return nil
}

func statelessOnPipe(f Frame, meta *requestMeta) bool {
	return f.Method == MethodDiscover || meta.versionSet && EraOf(meta.version) == EraStateless
}

// serveRequest runs a request in the era that its _meta says.
func (p *pipe) serveRequest(ctx context.Context, f Frame, meta *requestMeta) (json.RawMessage, error) {
	r := &Request{
		Method: f.Method, Params: f.Params, ID: f.ID, Session: p.session,
		ProgressToken: meta.progressToken, out: p,
	}
	if statelessOnPipe(f, meta) {
		sess, err := p.server.newStatelessSession(meta)
		if err != nil {
			return nil, err
		}
		sess.pipe, r.Session, r.LogLevel = true, sess, meta.logLevel
	}
	return p.server.dispatch(ctx, r)
}

// initialize begins the session of the pipe.
func (p *pipe) initialize(f Frame) (json.RawMessage, error) {
	if p.begun {
		return nil, errDuplicateInitialize
	}
	if err := p.session.readInitialize(f.Params); err != nil {
		return nil, err
	}
	d, err := p.server.handler.Describe(p.ctx, p.session)
	if err == nil {
		err = p.server.addSession(p.session)
	}
	if err != nil {
		return nil, err
	}
	p.begun = true
	return p.server.initializeResult(d, p.session.version), nil
}
