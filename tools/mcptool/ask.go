package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

const (
	// maxRounds bounds how often one attempt answers a server that asks.
	maxRounds = 16
	// roundPause is how long a server is left alone that wants the same call
	// again and asks nothing.
	roundPause = 100 * time.Millisecond
	// maxQuestions bounds what is asked at once.
	maxQuestions = 64
)

// askable reports whether a server may ask a caller this.
func askable(method string) bool {
	return method == "sampling/createMessage" || method == "elicitation/create" || method == "roots/list"
}

// A flight is a call under way, and the context that its tool runs on.
type flight struct {
	ctx  context.Context
	call *tools.Call
}

// askCaller puts a request of the server to the caller of a call.
func (s *Server) askCaller(asked context.Context, f flight, q *mcpwire.ServerRequest) (json.RawMessage, error) {
	if !askable(q.Method) {
		return nil, mcpwire.Errorf(mcpwire.CodeMethodNotFound, "method not found: %s", bound(q.Method, 128))
	}
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	defer context.AfterFunc(asked, cancel)()
	answer, err := f.call.Ask(ctx, tools.Question{Method: q.Method, Params: q.Params})
	if err != nil {
		return nil, s.unanswered(q.Method, err)
	}
	return answer.Result, nil
}

// unanswered tells the server why its question is not answered.
func (s *Server) unanswered(method string, err error) error {
	var said *tools.AnswerError
	switch {
	case errors.As(err, &said):
		e := mcpwire.NewError(said.Code, said.Message, nil)
		e.Data = said.Data
		return e
	case errors.Is(err, tools.ErrAskUnsupported):
		return mcpwire.Errorf(mcpwire.CodeMethodNotFound, "%s: nobody is there who could answer", method)
	}
	s.log.Debug("a question of the server was not answered", "method", method, "error", err)
	return mcpwire.Errorf(mcpwire.CodeInternalError, "%s: no answer", method)
}

// askFor puts to the caller what a server wants to know before it answers, and
// returns the members of the params that tell it.
func (s *Server) askFor(ctx context.Context, t *remoteTool, raw json.RawMessage) ([]byte, error) {
	questions, state, err := readInputRequired(raw)
	if err != nil {
		return nil, s.answerFailure(t.name, err)
	}
	var answers []tools.Answer
	if len(questions) == 0 {
		err = pause(ctx, roundPause)
	} else {
		answers, err = tools.CallFrom(ctx).AskAll(ctx, questions)
	}
	if err != nil {
		return nil, s.askFailure(ctx, t.name, err)
	}
	var out []byte
	for i, q := range questions {
		if i == 0 {
			out = append(out, `,"inputResponses":{`...)
		} else {
			out = append(out, ',')
		}
		out = append(append(rawjson.AppendQuoted(out, q.Key), ':'), answers[i].Result...)
	}
	if len(questions) > 0 {
		out = append(out, '}')
	}
	if state != nil {
		out = append(append(out, `,"requestState":`...), state...)
	}
	return out, nil
}

// readInputRequired reads the questions of an input_required result.
func readInputRequired(raw json.RawMessage) (questions []tools.Question, state json.RawMessage, err error) {
	requests, _ := rawjson.Get(raw, "inputRequests")
	it := rawjson.Object(requests)
	for requests != nil && it.Next() {
		q := tools.Question{Key: it.Key()}
		method, _ := rawjson.Get(it.Value(), "method")
		q.Method, _ = rawjson.Unquote(method)
		q.Params, _ = rawjson.Get(it.Value(), "params")
		if !askable(q.Method) {
			return nil, nil, fmt.Errorf("the server asks %q, which is no question for a caller", bound(q.Method, 128))
		}
		if questions = append(questions, q); len(questions) > maxQuestions {
			return nil, nil, fmt.Errorf("the server asks more than %d questions at once", maxQuestions)
		}
	}
	state, _ = rawjson.Get(raw, "requestState")
	if len(questions) == 0 && state == nil {
		return nil, nil, errors.New("the server asks for input and does not say which")
	}
	return questions, notNull(state), nil
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// askFailure is for a question that the caller did not answer. The server has
// done its part, and asking again would bother a person twice.
func (s *Server) askFailure(ctx context.Context, tool string, err error) error {
	var given *tools.Error
	if errors.As(err, &given) || ctx.Err() != nil {
		return err
	}
	e := &tools.Error{Tool: tool, Class: tools.ErrClassPermanent, Delivery: tools.Answered,
		Message: s.message("a question of the server was not answered: " + err.Error()), Err: err}
	if errors.Is(err, tools.ErrAskUnsupported) {
		e.Code = tools.ErrAskUnsupported
	}
	return e
}

// carried is the ClientCapabilities object for the caller of a call: what it
// declares and can be asked through this module. It is nil for a caller that
// declares nothing. A server that believed in tasks would answer with one. told
// says that the server hears of changes of the caller's roots, where the caller
// tells of them.
func carried(call *tools.Call, told bool) json.RawMessage {
	c := call.Capabilities
	if !c.Any() && len(c.Declared) == 0 {
		return nil
	}
	out := []byte("{")
	member := func(key string, has bool, otherwise string) {
		if !has {
			return
		}
		v, ok := rawjson.Get(c.Declared, key)
		if !ok || rawjson.KindOf(v) != rawjson.KindObject {
			v = json.RawMessage(otherwise)
		}
		out = append(append(rawjson.AppendQuoted(comma(out), key), ':'), v...)
	}
	member("sampling", c.Sampling, "{}")
	member("elicitation", c.ElicitForm || c.ElicitURL, elicitation(c))
	if c.Roots {
		roots := `"roots":{}`
		if told && tellsOfRoots(c) {
			roots = `"roots":{"listChanged":true}`
		}
		out = append(comma(out), roots...)
	}
	if v, ok := rawjson.Get(c.Declared, "extensions"); ok && rawjson.KindOf(v) == rawjson.KindObject {
		if !call.Tasks {
			v = without(v, extensionTasks)
		}
		out = append(append(comma(out), `"extensions":`...), v...)
	}
	return append(out, '}')
}

// tellsOfRoots reports whether a caller says when its roots change.
func tellsOfRoots(c tools.Capabilities) bool {
	v, _ := rawjson.Get(c.Declared, "roots", "listChanged")
	return string(v) == "true"
}

// without returns an object without a member.
func without(obj json.RawMessage, key string) json.RawMessage {
	rest, err := rawjson.Delete(obj, key)
	if err != nil {
		return json.RawMessage("{}")
	}
	return rest
}

func elicitation(c tools.Capabilities) string {
	switch {
	case c.ElicitForm && c.ElicitURL:
		return `{"form":{},"url":{}}`
	case c.ElicitURL:
		return `{"url":{}}`
	}
	return `{"form":{}}`
}
