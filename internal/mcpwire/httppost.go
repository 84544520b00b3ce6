package mcpwire

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
)

// post serves a POST: one message, or a batch.
func (x *exchange) post() {
	if mediaType(x.r.Header) != contentJSON {
		refuse(x.w, &Refusal{Status: http.StatusUnsupportedMediaType, Message: "Content-Type must be application/json"})
		return
	}
	if json, stream := accepts(x.r.Header); !json || !stream {
		refuse(x.w, &Refusal{Status: http.StatusNotAcceptable, Message: "Accept must contain both application/json and text/event-stream"})
		return
	}
	if body, ok := x.readBody(); ok {
		x.admitted(func() { x.postBody(body) })
	}
}

func (x *exchange) postBody(body []byte) {
	if messages, batch, err := SplitBatch(body); batch {
		x.postBatch(messages, err)
		return
	}
	f, err := scanIncoming(body)
	if err != nil {
		x.refuseMessage(f.ID, err)
		return
	}
	meta := scanRequestMeta(f.Params)
	if x.isStateless(f, &meta) {
		x.postStateless(f, &meta)
		return
	}
	x.postStateful(f, &meta)
}

// isStateless routes a message by its protocol version, whichever way it is
// given. server/discover exists in the stateless era only.
func (x *exchange) isStateless(f Frame, meta *requestMeta) bool {
	if EraOf(x.r.Header.Get(HeaderVersion)) == EraStateless {
		return true
	}
	return f.Kind == KindRequest && (f.Method == MethodDiscover || meta.versionSet)
}

func (x *exchange) postStateful(f Frame, meta *requestMeta) {
	if !x.knownVersion() {
		return
	}
	if f.Method == MethodInitialize && f.Kind == KindRequest {
		x.initialize(f)
		return
	}
	sess := x.session()
	if sess == nil {
		return
	}
	sess.use.begin()
	defer sess.use.end()
	if f.Kind == KindRequest {
		x.request(sess, f, meta)
		return
	}
	x.deliver(sess, f)
	x.w.WriteHeader(http.StatusAccepted)
}

// deliver takes in a message that has no answer.
func (x *exchange) deliver(sess *Session, f Frame) {
	switch f.Kind {
	case KindResult, KindError:
		sess.receiveAnswer(f)
	case KindNotification:
		x.server.notified(x.ctx, &Request{
			Method: f.Method, Params: f.Params, Notification: true, Session: sess, HTTP: x.r,
		})
	}
}

// initialize opens a session.
func (x *exchange) initialize(f Frame) {
	s := x.server
	if x.r.Header.Get(HeaderSession) != "" {
		if x.session() != nil {
			x.refuseMessage(f.ID, errDuplicateInitialize)
		}
		return
	}
	sess := &Session{server: s, id: newSessionID(), principal: x.principal, log: newEventLog(s.opts.ReplayBytes)}
	sess.out = standalone{sess.log}
	if err := sess.readInitialize(f.Params); err != nil {
		writeError(x.w, http.StatusOK, f.ID, asError(err))
		return
	}
	sess.open()
	d, err := s.handler.Describe(x.ctx, sess)
	if err == nil {
		err = s.addSession(sess)
	}
	if err != nil {
		sess.Close()
		writeError(x.w, http.StatusOK, f.ID, asError(err))
		return
	}
	sess.use.start(s.opts.SessionIdle, sess.Close)
	x.w.Header()[HeaderSession] = []string{sess.id}
	writeJSON(x.w, http.StatusOK, AppendResult(nil, f.ID, s.initializeResult(d, sess.version)))
}

// request serves a request of a session.
func (x *exchange) request(sess *Session, f Frame, meta *requestMeta) {
	p := &postStream{server: x.server, w: x.w, session: sess}
	var a *answer
	defer func() { p.finishEnded(&f, a) }()
	a = x.answer(sess, f, meta, p)
	p.finish(http.StatusOK, a)
}

// answer runs a request of a session and returns its answer.
func (x *exchange) answer(sess *Session, f Frame, meta *requestMeta, p *postStream) *answer {
	// A client that lost the connection can ask for the rest of an event
	// stream, so that a lost connection ends the request only where nothing
	// could be resumed.
	ctx, cancel, err := sess.requests.begin(context.WithoutCancel(x.ctx), f.ID)
	if err != nil {
		return newAnswer(f.ID, nil, err)
	}
	defer sess.requests.end(f.ID, cancel)
	defer context.AfterFunc(sess.ctx, func() { cancel(ErrClosed) })()
	defer context.AfterFunc(x.r.Context(), func() { p.disconnected(cancel) })()
	result, err := x.server.dispatch(ctx, &Request{
		Method: f.Method, Params: f.Params, ID: f.ID, Session: sess,
		ProgressToken: meta.progressToken, HTTP: x.r, out: p,
	})
	if errors.Is(context.Cause(ctx), errCancelled) { // HTTP wants an answer all the same
		err = errCancelled
	}
	return newAnswer(f.ID, result, err)
}

// postBatch serves the messages of a batch at the same time, in the one
// revision that has batches.
func (x *exchange) postBatch(messages []json.RawMessage, err error) {
	if err != nil {
		x.refuseMessage("", err)
		return
	}
	if v := x.r.Header.Get(HeaderVersion); v != "" && v != Version20250326 {
		x.refuseMessage("", notAMessage([]byte("[]")))
		return
	}
	sess := x.session()
	if sess == nil {
		return
	}
	if sess.version != Version20250326 {
		x.refuseMessage("", notAMessage([]byte("[]")))
		return
	}
	if limit := x.server.opts.MaxInFlight; len(messages) > limit {
		x.refuseMessage("", Errorf(CodeInvalidRequest, "invalid request: a batch may have %d messages", limit))
		return
	}
	sess.use.begin()
	defer sess.use.end()
	p := &postStream{server: x.server, w: x.w, session: sess, batch: true}
	answers := x.runBatch(sess, messages, p)
	if len(answers) == 0 {
		x.w.WriteHeader(http.StatusAccepted)
		return
	}
	p.finish(http.StatusOK, answers...)
}

func (x *exchange) runBatch(sess *Session, messages []json.RawMessage, p *postStream) []*answer {
	answers := make([]*answer, len(messages))
	var work sync.WaitGroup
	for i, m := range messages {
		f, err := scanIncoming(m)
		switch {
		case err != nil:
			answers[i] = newAnswer(f.ID, nil, err)
		case f.Kind != KindRequest:
			x.deliver(sess, f)
		default:
			work.Go(func() {
				defer x.server.orEnded(&f, &answers[i])
				meta := scanRequestMeta(f.Params)
				answers[i] = x.answer(sess, f, &meta, p)
			})
		}
	}
	work.Wait()
	out := answers[:0]
	for _, a := range answers {
		if a != nil {
			out = append(out, a)
		}
	}
	return out
}
