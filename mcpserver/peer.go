package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// peer is the way from a tool back to the client that called it. Once the call
// is answered nothing passes any more.
type peer struct {
	capabilities tools.Capabilities
	session      *mcpwire.Session
	// task names the task that this is about, if it is about one.
	task *taskVoice

	mu       sync.Mutex       // held while a note is sent, so that none comes after the answer
	request  *mcpwire.Request // nil once it is answered
	progress float64          // of the last note
}

func newPeer(r *mcpwire.Request, c tools.Capabilities) *peer {
	return &peer{request: r, session: r.Session, capabilities: c, progress: math.Inf(-1)}
}

func (p *peer) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.request = nil
}

// Progress sends notifications/progress, if the client gave a token. The
// protocol wants progress to grow, so a note that does not, such as the first
// of another attempt, is dropped.
func (p *peer) Progress(ctx context.Context, n tools.ProgressNote) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.request == nil || p.request.ProgressToken == nil || !(n.Progress > p.progress) {
		return nil
	}
	params, err := progressParams(n)
	if err != nil {
		return err
	}
	p.progress = n.Progress
	return p.request.Progress(ctx, p.task.say(params))
}

// progressParams returns the params of a note without our token: those of an
// MCP server as they were sent, or new ones.
func progressParams(n tools.ProgressNote) (json.RawMessage, error) {
	if n.Raw != nil {
		return n.Raw, nil
	}
	return json.Marshal(struct {
		Progress float64 `json:"progress"`
		Total    float64 `json:"total,omitempty"`
		Message  string  `json:"message,omitempty"`
	}{n.Progress, n.Total, n.Message})
}

// Log sends notifications/message, if the client wants messages of that level.
func (p *peer) Log(ctx context.Context, l tools.LogNote) error {
	level, ok := levelOf(l.Level)
	if !ok {
		return fmt.Errorf("mcpserver: unknown log level %q: expected one of %s", shorten(l.Level, 32), strings.Join(levels(), ", "))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.request == nil || level < wantedLevel(p.request) {
		return nil
	}
	params, err := logParams(l)
	if err != nil {
		return err
	}
	return p.request.Notify(ctx, mcpwire.NotifyLog, p.task.say(params))
}

// logParams returns the params of a message: those of an MCP server as they were
// sent, or new ones.
func logParams(l tools.LogNote) (json.RawMessage, error) {
	if l.Raw != nil {
		return l.Raw, nil
	}
	data := l.Data
	if data == nil {
		data = json.RawMessage("null")
	}
	if !rawjson.Valid(data) {
		return nil, errors.New("mcpserver: the data of a log note is not JSON")
	}
	out := rawjson.AppendQuoted([]byte(`{"level":`), l.Level)
	if l.Logger != "" {
		out = rawjson.AppendQuoted(append(out, `,"logger":`...), l.Logger)
	}
	out = append(append(out, `,"data":`...), data...)
	return append(out, '}'), nil
}

// Notify sends a notification to the client of a session, on the stream of the
// call while that lasts. The stateless era has no place for it once the call is
// over.
func (p *peer) Notify(ctx context.Context, method string, params json.RawMessage) error {
	params = p.task.say(params)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.request != nil:
		return p.request.Notify(ctx, method, params)
	case p.session.Era() == mcpwire.EraStateful:
		return p.session.Notify(ctx, method, params)
	}
	return nil
}

// Ask puts a question to the client on the stream of the call. A client that
// did not say it can answer gives ErrAskUnsupported. No failure is worth another
// attempt: it would ask a person again who has just said no.
func (p *peer) Ask(ctx context.Context, q tools.Question) (tools.Answer, error) {
	if !answers(p.capabilities, q) {
		return tools.Answer{}, unaskable(q)
	}
	p.mu.Lock()
	request := p.request
	p.mu.Unlock()
	if request == nil {
		return tools.Answer{}, unanswered(tools.ErrAskUnsupported, q, "the call has been answered")
	}
	result, err := request.Call(ctx, q.Method, p.task.say(q.Params))
	var refusal *mcpwire.Error
	switch {
	case err == nil:
		return tools.Answer{Result: result}, nil
	case errors.As(err, &refusal):
		// The client's error is about the question, so it is not kept in the
		// chain as it is, where it would be taken for an upstream's error about
		// the call.
		e := unanswered(nil, q, "the client answered: "+refusal.Error())
		e.Err = &tools.AnswerError{Code: refusal.Code, Message: refusal.Message, Data: refusal.Data}
		return tools.Answer{}, e
	case ctx.Err() != nil:
		return tools.Answer{}, ctx.Err()
	}
	return tools.Answer{}, unanswered(nil, q, err.Error())
}

func unaskable(q tools.Question) *tools.Error {
	return unanswered(tools.ErrAskUnsupported, q, "the client does not declare that it can answer this")
}

func unanswered(code error, q tools.Question, why string) *tools.Error {
	return &tools.Error{Code: code, Class: tools.ErrClassPermanent, Delivery: tools.Answered, Message: q.Method + ": " + why}
}

func answers(c tools.Capabilities, q tools.Question) bool {
	switch q.Method {
	case "sampling/createMessage":
		return c.Sampling
	case "roots/list":
		return c.Roots
	case "elicitation/create":
		mode, _ := rawjson.Get(q.Params, "mode")
		if string(mode) == `"url"` {
			return c.ElicitURL
		}
		return c.ElicitForm
	}
	return false
}
