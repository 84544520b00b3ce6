package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/tools"
)

// MessageAsk puts questions to the caller of a call; the payload is an Ask, which
// goes to the Inbox of the call's Route alone. It is answered with MessageOK while
// the caller thinks, with MessageAnswer and an AskAnswer once it has answered, and
// with VerdictOver when nobody waits who could. A worker says it again every few
// seconds, since the answer, which comes to its own subject as MessageAnswer, may
// get lost.
const (
	MessageAsk    = "ask"
	MessageAnswer = "answer"
)

// Asks says what the caller of a call can be asked.
type Asks struct {
	Sampling   bool `json:"sampling,omitzero"`
	ElicitForm bool `json:"elicit_form,omitzero"`
	ElicitURL  bool `json:"elicit_url,omitzero"`
	Roots      bool `json:"roots,omitzero"`
	// Declared is the caller's own ClientCapabilities object of MCP, or empty.
	Declared json.RawMessage `json:"declared,omitzero"`
	// Client tells callers apart: the same one answers for all calls of a Client
	// that is not empty.
	Client string `json:"client,omitzero"`
}

// Ask puts questions to a caller, all at once.
type Ask struct {
	ToolUseID string `json:"tool_use_id"`
	// AskID is the worker's own, which nobody can guess.
	AskID string `json:"ask_id"`
	// Instance is the worker, and Token that of the call's Route.
	Instance string `json:"instance"`
	Token    string `json:"token"`
	// Questions are absent from one that is withdrawn.
	Questions []AskQuestion `json:"questions,omitzero"`
	// Withdraw says that no answer is wanted any more.
	Withdraw bool `json:"withdraw,omitzero"`
}

// AskQuestion is one question, in the form that MCP gives it.
type AskQuestion struct {
	// Method is elicitation/create, sampling/createMessage or roots/list.
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitzero"`
	Key    string          `json:"key,omitzero"`
}

// AskAnswer is what the caller says to an Ask.
type AskAnswer struct {
	ToolUseID string `json:"tool_use_id"`
	AskID     string `json:"ask_id"`
	// Results are those of the questions' methods, in their order.
	Results []json.RawMessage `json:"results,omitzero"`
	// Error says why there are none.
	Error *AskError `json:"error,omitzero"`
	// Deadline is that of the call from now on: its time stood still meanwhile.
	Deadline time.Time `json:"deadline,omitzero"`
}

// AskError says why questions have no answers.
type AskError struct {
	Message string `json:"message"`
	// Unsupported says that the caller cannot be asked this.
	Unsupported bool `json:"unsupported,omitzero"`
	// Said is the caller's own answer, where that is an error.
	Said *AskRefusal `json:"said,omitzero"`
}

// AskRefusal is an error of JSON-RPC by which a caller answers.
type AskRefusal struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitzero"`
}

// The bounds of what one call asks.
const (
	maxAsks      = 64 // altogether
	maxQuestions = 64 // of one Ask
)

// DecodeAsk reads an Ask. The error is ErrInvalid and quotes no value.
func DecodeAsk(data []byte) (Ask, error) {
	var a Ask
	if err := decode(data, &a); err != nil {
		return a, err
	}
	for _, id := range []struct{ field, value string }{{"ask_id", a.AskID}, {"instance", a.Instance}} {
		if err := checkID(id.field, id.value); err != nil {
			return a, err
		}
	}
	if n := len(a.Questions); n > maxQuestions || n == 0 != a.Withdraw {
		return a, fmt.Errorf("%w: an ask has 1 to %d questions, or none when it is withdrawn", ErrInvalid, maxQuestions)
	}
	return a, checkToolUseID(a.ToolUseID)
}

// DecodeAnswer reads an AskAnswer. The error is ErrInvalid and quotes no value.
func DecodeAnswer(data []byte) (AskAnswer, error) {
	var a AskAnswer
	if err := decode(data, &a); err != nil {
		return a, err
	}
	return a, checkID("ask_id", a.AskID)
}

// asksOf says what the caller of a call can be asked, or nil. The client's own
// name stays here, because it may be what proves who it is.
func asksOf(in *tools.Call) *Asks {
	if in == nil || in.Peer() == nil || !in.Capabilities.Any() {
		return nil
	}
	c := in.Capabilities
	a := &Asks{Sampling: c.Sampling, ElicitForm: c.ElicitForm, ElicitURL: c.ElicitURL, Roots: c.Roots, Declared: c.Declared}
	if in.Client != "" {
		a.Client = hashed("client", in.Client)
	}
	return a
}

// questions are what workers ask of one call. They are nil for one whose caller
// cannot be asked.
type questions struct {
	// put takes what the caller is to be asked.
	put chan *asking

	mu   sync.Mutex
	asks map[string]*asking // by the worker's ids
}

// asking is an Ask that was taken.
type asking struct {
	Ask
	gone     context.Context // ends when it is withdrawn
	withdraw context.CancelFunc
	answer   *AskAnswer // once there is one; guarded by questions.mu
}

func newQuestions() *questions {
	return &questions{put: make(chan *asking, maxAsks), asks: map[string]*asking{}}
}

// next gives what the caller is to be asked, one after the other.
func (q *questions) next() <-chan *asking {
	if q == nil {
		return nil
	}
	return q.put
}

// open counts the asks without an answer. The caller holds the lock.
func (q *questions) open() int {
	n := 0
	for _, a := range q.asks {
		if a.answer == nil {
			n++
		}
	}
	return n
}

// asked answers a worker that asks the caller of a call.
func (r *Registry) asked(m stream.Message) stream.Message {
	over := stream.Message{Name: string(VerdictOver)}
	ask, err := DecodeAsk(m.Payload)
	if err != nil {
		r.log.Warn("a question of a worker cannot be read", "error", err)
		return over
	}
	c := r.known(ask.ToolUseID)
	if c == nil || c.over() || c.questions == nil || !c.has(&ask) {
		return over
	}
	return c.questions.take(ask, over)
}

// has reports whether the worker that asks is the one that runs the call.
func (c *call) has(ask *Ask) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rec.Token == ask.Token && (c.rec.State == stateAccepted || c.rec.State == stateClaimed && c.rec.Instance == ask.Instance)
}

// take takes an ask, or says what became of it.
func (q *questions) take(ask Ask, over stream.Message) stream.Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.asks[ask.AskID]
	switch {
	case a != nil && ask.Withdraw:
		a.withdraw()
		delete(q.asks, ask.AskID)
	case ask.Withdraw:
	case a != nil && a.answer != nil:
		if payload, err := Encode(a.answer); err == nil {
			return stream.Message{Name: MessageAnswer, Payload: payload}
		}
		return over
	case a == nil && !q.room(ask.Instance):
		return over
	case a == nil:
		a = &asking{Ask: ask}
		a.gone, a.withdraw = context.WithCancel(context.Background())
		q.asks[ask.AskID] = a
		q.put <- a
	}
	return stream.Message{Name: MessageOK}
}

// room reports whether a worker may ask more. What other workers asked that had
// the call before is withdrawn. The caller holds the lock.
func (q *questions) room(worker string) bool {
	for id, a := range q.asks {
		if a.Instance != worker {
			a.withdraw()
			delete(q.asks, id)
		}
	}
	return len(q.asks) < maxAsks && len(q.put) < cap(q.put)
}

// close withdraws what nobody answered.
func (q *questions) close() {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, a := range q.asks {
		a.withdraw()
	}
}

// put asks the caller and gives its answer to the worker. The time of the call
// stands still meanwhile.
func (r *Registry) put(ctx context.Context, c *call, in *tools.Call, a *asking) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.gone, cancel)()
	c.prolong(ctx, r, time.Now().Add(r.opts.MaxCallTime))
	list := make([]tools.Question, len(a.Questions))
	for i, q := range a.Questions {
		list[i] = tools.Question{Method: q.Method, Params: q.Params, Key: q.Key}
	}
	given, err := in.AskAll(ctx, list)
	answer := &AskAnswer{ToolUseID: c.id, AskID: a.AskID, Deadline: r.deadline(ctx)}
	if err != nil {
		answer.Error = askError(err)
	}
	for _, g := range given {
		answer.Results = append(answer.Results, g.Result)
	}
	if c.questions.answered(a, answer) == 0 {
		c.prolong(ctx, r, answer.Deadline)
	}
	if ctx.Err() == nil {
		r.answer(ctx, c, a, answer)
	}
}

// answered keeps an answer for a worker that asks again, and returns how many
// asks have none yet.
func (q *questions) answered(a *asking, answer *AskAnswer) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	a.answer = answer
	return q.open()
}

// answerTime bounds how long a worker may take to hear an answer, for which it
// asks again.
const answerTime = 5 * time.Second

func (r *Registry) answer(ctx context.Context, c *call, a *asking, answer *AskAnswer) {
	payload, err := Encode(answer)
	if err == nil && len(payload) > r.client.MaxPayload() {
		large := &AskAnswer{ToolUseID: c.id, AskID: a.AskID, Deadline: answer.Deadline,
			Error: &AskError{Message: fmt.Sprintf("the answer takes %d bytes, and the stream takes at most %d", len(payload), r.client.MaxPayload())}}
		c.questions.answered(a, large)
		payload, err = Encode(large)
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, answerTime)
		defer cancel()
		_, err = r.client.Request(ctx, InstanceSubject(c.toolset, a.Instance), stream.Message{Name: MessageAnswer, Payload: payload})
	}
	if err != nil && ctx.Err() == nil {
		r.log.Debug("a worker does not hear an answer of its caller and will ask again", "toolset", c.toolset, "call", c.id, "error", err)
	}
}

// askError says why a caller gives no answer.
func askError(err error) *AskError {
	out := &AskError{Message: err.Error(), Unsupported: errors.Is(err, tools.ErrAskUnsupported)}
	var te *tools.Error
	if errors.As(err, &te) {
		out.Message = te.SafeMessage()
	}
	var said *tools.AnswerError
	if errors.As(err, &said) {
		out.Said = &AskRefusal{Code: said.Code, Message: said.Message, Data: said.Data}
	}
	return out
}

// deadline is that of a call whose caller's context this is.
func (r *Registry) deadline(ctx context.Context) time.Time {
	deadline := time.Now().Add(r.opts.MaxCallTime)
	if end, ok := ctx.Deadline(); ok && end.Before(deadline) {
		return end
	}
	return deadline
}

// prolong moves the deadline of a call.
func (c *call) prolong(ctx context.Context, r *Registry, to time.Time) {
	err := c.step(ctx, &r.ledger, func(rec *record) bool {
		if rec.State == stateDone {
			return false
		}
		rec.Deadline = to
		return true
	})
	if err != nil {
		r.log.Error("the deadline of a call that waits for its caller cannot be recorded", "toolset", c.toolset, "call", c.id, "error", err)
	}
}
