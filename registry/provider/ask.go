package provider

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/tools"
)

// Ask puts questions to the caller, from within HandleToolCall, and returns its
// answers in their order. The time of the call stands still meanwhile. The error
// is tools.ErrAskUnsupported for what the caller cannot be asked, and for a call
// of which nobody waits for the answer any more.
func Ask(ctx context.Context, list ...tools.Question) ([]tools.Answer, error) {
	e, ok := ctx.Value(emitterKey{}).(*emitter)
	if !ok {
		return nil, ErrNoCall
	}
	return peer{out: e}.AskAll(ctx, list)
}

// Ask implements tools.Peer.
func (p peer) Ask(ctx context.Context, q tools.Question) (tools.Answer, error) {
	answers, err := p.AskAll(ctx, []tools.Question{q})
	if err != nil {
		return tools.Answer{}, err
	}
	return answers[0], nil
}

// AskAll implements tools.BatchPeer.
func (p peer) AskAll(ctx context.Context, list []tools.Question) ([]tools.Answer, error) {
	if len(list) == 0 {
		return nil, nil
	}
	j := p.out.job
	if j.msg.Asks == nil || j.msg.Route == nil {
		return nil, unasked(tools.ErrAskUnsupported, list, "the caller of this call cannot be asked")
	}
	ask := registry.Ask{ToolUseID: j.msg.ToolUseID, AskID: rand.Text(), Instance: p.out.worker.instance, Token: j.msg.Route.Token}
	for _, q := range list {
		ask.Questions = append(ask.Questions, registry.AskQuestion{Method: q.Method, Params: q.Params, Key: q.Key})
	}
	j.clock.stop()
	answer, err := p.out.worker.askCaller(ctx, j, &ask)
	switch {
	case err == nil:
		j.clock.start(answer.Deadline)
	case ctx.Err() != nil:
		j.clock.start(time.Time{})
		return nil, ctx.Err()
	default:
		j.clock.start(time.Time{})
		return nil, unasked(codeOf(err), list, err.Error())
	}
	return answersOf(list, answer)
}

// codeOf is what an error means to a tool that asks.
func codeOf(err error) error {
	if errors.Is(err, errNobody) {
		return tools.ErrAskUnsupported
	}
	return nil
}

// unasked is the error of questions that have no answer. None is worth another
// attempt, which might ask a person again.
func unasked(code error, list []tools.Question, why string) *tools.Error {
	return &tools.Error{Code: code, Class: tools.ErrClassPermanent, Delivery: tools.Answered, Message: list[0].Method + ": " + why}
}

// answersOf reads an answer.
func answersOf(list []tools.Question, answer *registry.AskAnswer) ([]tools.Answer, error) {
	if e := answer.Error; e != nil {
		out := unasked(nil, list, "")
		out.Message = e.Message
		if e.Unsupported {
			out.Code = tools.ErrAskUnsupported
		}
		if e.Said != nil {
			out.Err = &tools.AnswerError{Code: e.Said.Code, Message: e.Said.Message, Data: e.Said.Data}
		}
		return nil, out
	}
	if len(answer.Results) != len(list) {
		return nil, unasked(nil, list, fmt.Sprintf("%d questions have %d answers", len(list), len(answer.Results)))
	}
	out := make([]tools.Answer, len(list))
	for i, result := range answer.Results {
		out[i].Result = result
	}
	return out, nil
}

const (
	// askEvery is how often a worker asks for an answer that it may have missed.
	askEvery = 5 * time.Second
	// askTries is how often in a row no registry may be heard meanwhile.
	askTries = 6
)

// errNobody says that the process is gone in which somebody waited for the call.
var errNobody = errors.New("nobody waits for the answer of this call any more")

// askCaller asks until there is an answer, the context ends, or nobody waits for
// the call.
func (w *worker) askCaller(ctx context.Context, j *job, ask *registry.Ask) (*registry.AskAnswer, error) {
	payload, err := registry.Encode(ask)
	if err != nil {
		return nil, err
	}
	if len(payload) > w.client.MaxPayload() {
		return nil, fmt.Errorf("the question takes %d bytes, and the stream takes at most %d", len(payload), w.client.MaxPayload())
	}
	heard := w.asks.begin(ask.AskID)
	defer w.asks.end(ask.AskID)
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for unheard := 0; ; {
		answer, err := w.askOnce(ctx, j, payload)
		switch {
		case errors.Is(err, errNobody):
			return nil, err
		case answer != nil:
			return answer, nil
		case err == nil:
			unheard = 0
		case ctx.Err() == nil:
			if unheard++; unheard >= askTries {
				return nil, fmt.Errorf("%w: %w", errNobody, err)
			}
		}
		select {
		case a := <-heard:
			return a, nil
		case <-tick.C:
		case <-ctx.Done():
			w.withdraw(j, ask)
			return nil, ctx.Err()
		}
	}
}

// askOnce puts an ask to the process that waits for the call. It returns nil while
// there is no answer yet.
func (w *worker) askOnce(ctx context.Context, j *job, payload []byte) (*registry.AskAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, busTime)
	defer cancel()
	m, err := w.client.Request(ctx, j.msg.Route.Inbox, stream.Message{Name: registry.MessageAsk, Payload: payload})
	if err != nil {
		return nil, err
	}
	switch m.Name {
	case registry.MessageAnswer:
		a, err := registry.DecodeAnswer(m.Payload)
		if err != nil {
			return nil, err
		}
		return &a, nil
	case registry.MessageOK:
		return nil, nil
	}
	return nil, errNobody
}

// withdraw tells the caller's side that nobody wants the answer any more.
func (w *worker) withdraw(j *job, ask *registry.Ask) {
	gone := *ask
	gone.Questions, gone.Withdraw = nil, true
	payload, err := registry.Encode(gone)
	if err == nil {
		ctx, cancel := w.brief()
		defer cancel()
		_, err = w.client.Request(ctx, j.msg.Route.Inbox, stream.Message{Name: registry.MessageAsk, Payload: payload})
	}
	if err != nil {
		w.log.Debug("a question cannot be withdrawn", "call", j.msg.ToolUseID, "error", err)
	}
}

// asks are the questions of a worker that have no answer yet.
type asks struct {
	mu   sync.Mutex
	open map[string]chan *registry.AskAnswer
}

func (a *asks) begin(id string) <-chan *registry.AskAnswer {
	heard := make(chan *registry.AskAnswer, 1)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open == nil {
		a.open = map[string]chan *registry.AskAnswer{}
	}
	a.open[id] = heard
	return heard
}

func (a *asks) end(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, id)
}

// hear takes an answer that comes to the worker's own subject.
func (a *asks) hear(payload json.RawMessage) stream.Message {
	answer, err := registry.DecodeAnswer(payload)
	if err != nil {
		return stream.Message{Name: registry.MessageRetry}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case a.open[answer.AskID] <- &answer:
	default: // it is known, or nobody wants it
	}
	return stream.Message{Name: registry.MessageOK}
}

// clock ends a call at its deadline, and stands still while the caller is asked.
// The zero value never ends one.
type clock struct {
	end func() // ends the call

	mu    sync.Mutex
	due   time.Time
	timer *time.Timer
	asks  int
	since time.Time // when the first of them began
}

// set starts the clock of a new call.
func (c *clock) set(due time.Time, end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.due, c.end = due, end
	c.timer = time.AfterFunc(time.Until(due), c.ring)
}

func (c *clock) ring() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asks == 0 && !time.Now().Before(c.due) {
		c.end()
	}
}

// stop holds the clock while one more question waits.
func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asks++; c.asks == 1 && c.timer != nil {
		c.since = time.Now()
		c.timer.Stop()
	}
}

// start lets the clock go on when no question waits any more, until due, or for as
// long as was left.
func (c *clock) start(due time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asks--; c.asks > 0 || c.timer == nil {
		return
	}
	if due.IsZero() {
		due = c.due.Add(time.Since(c.since))
	}
	c.due = due
	c.timer.Reset(time.Until(due))
}

// over stops the clock of a call that has ended.
func (c *clock) over() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
	}
}
