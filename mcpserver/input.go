package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// A runner runs what a request asks for. It is given a context that carries
// the entrance.
type runner func(ctx context.Context) (json.RawMessage, error)

// converse runs what a request asks for, with a way back to the client. In the
// stateful era a tool's question is a request to the client. In the stateless
// era it is the result of the client's request: the call is parked, and goes on
// when the client makes the request again with the answers.
func (s *Server) converse(ctx context.Context, r *mcpwire.Request, p *callParams, run runner) (json.RawMessage, error) {
	if p.state != "" && r.Session.Era() == mcpwire.EraStateless {
		e, err := s.parked.resume(ctx, r, p)
		if err != nil {
			return nil, err
		}
		return e.attend(ctx, r, p.responses)
	}
	takesTasks, err := s.takesTasks(r, p)
	if err != nil {
		return nil, err
	}
	peer := newPeer(r, s.capabilities(r))
	entrance := tools.Entrance{Peer: peer, Meta: p.meta, IdempotencyKey: p.key, Capabilities: peer.capabilities,
		Client: r.Session.ID(), ClientGone: r.Session.Done(), LogLevel: levelWord(r), Extra: p.extra, Tasks: takesTasks}
	if r.Method == methodCallTool {
		entrance.Sink, _ = s.opts.Bounder.(tools.Sink)
	}
	if entrance.Tasks {
		peer.task = &taskVoice{seal: s.tasks.seal, owner: taskOwnerOf(ctx, r), tool: s.meant(ctx, p)}
	}
	if r.Session.Era() == mcpwire.EraStateful || !peer.capabilities.Any() {
		defer peer.close()
		return run(tools.WithEntrance(ctx, entrance))
	}
	e := s.parked.begin(ctx, r, p, peer, entrance, run)
	return e.attend(ctx, r, p.responses)
}

// capabilities returns what the client of a request can be asked.
func (s *Server) capabilities(r *mcpwire.Request) tools.Capabilities {
	if c := clientOf(r.Session); c != nil {
		return c.capabilities
	}
	return capabilitiesOf(r.Session)
}

// An errand is a call of the stateless era whose client may be asked. It lasts
// longer than a request; at any time at most one request attends to it.
type errand struct {
	*peer
	parking *parking
	owner   owner
	cancel  context.CancelFunc
	asked   chan struct{} // holds one: there is something to ask
	done    chan struct{} // closed when result and err are there
	result  json.RawMessage
	err     error

	// What follows is guarded by peer.mu.
	pending map[string]*question
	order   []string                   // of the keys in pending
	given   map[string]json.RawMessage // answers that nobody has asked for yet
	named   int                        // questions that were given a name
}

// owner is whom an errand belongs to. Only the same caller, with the same
// request, comes back to it.
type owner struct {
	principal string
	identity  identity.Identity
	method    string
	name      string
}

func ownerOf(ctx context.Context, r *mcpwire.Request, p *callParams) owner {
	id, _ := identity.From(ctx)
	return owner{r.Session.Principal(), id, r.Method, p.name}
}

// A question waits for its answer, which is there once done is closed.
type question struct {
	tools.Question
	answer json.RawMessage
	done   chan struct{}
}

// attend lets a request wait for the result of an errand, or for its next
// questions, which are the result of the request then.
func (e *errand) attend(ctx context.Context, r *mcpwire.Request, responses json.RawMessage) (json.RawMessage, error) {
	e.accept(r, responses)
	for {
		select {
		case <-e.done:
			e.peer.close()
			return e.result, e.err
		case <-ctx.Done():
			e.cancel()
			return nil, mcpwire.Errorf(mcpwire.CodeRequestCancelled, "request cancelled")
		case <-e.asked:
			if answer, err := e.park(); answer != nil || err != nil {
				return answer, err
			}
		}
	}
}

// accept makes r the request that the errand talks on, and hands out the
// answers that it brings. What nobody asked is kept for this request: a client
// may answer ahead.
func (e *errand) accept(r *mcpwire.Request, responses json.RawMessage) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.request, e.progress, e.given = r, math.Inf(-1), nil
	if responses != nil {
		e.given = map[string]json.RawMessage{}
	}
	it := rawjson.Object(responses)
	for responses != nil && it.Next() {
		e.given[it.Key()] = it.Value()
	}
	left := e.order[:0]
	for _, key := range e.order {
		q := e.pending[key]
		if !e.take(key, q) {
			left = append(left, key)
			continue
		}
		delete(e.pending, key)
		close(q.done)
	}
	if e.order = left; len(left) > 0 {
		e.signal()
	}
}

// take looks for a question's answer among those that are given.
func (e *errand) take(key string, q *question) bool {
	answer, ok := e.given[key]
	if !ok || !fits(q.Method, answer) {
		return false
	}
	delete(e.given, key)
	q.answer = answer
	return true
}

// fits reports whether a value is an answer to such a question.
func fits(method string, answer json.RawMessage) bool {
	if rawjson.KindOf(answer) != rawjson.KindObject {
		return false
	}
	member := map[string]string{"elicitation/create": "action", "sampling/createMessage": "content", "roots/list": "roots"}[method]
	_, ok := rawjson.Get(answer, member)
	return ok
}

func (e *errand) signal() {
	select {
	case e.asked <- struct{}{}:
	default:
	}
}

// Ask implements [tools.Peer].
func (e *errand) Ask(ctx context.Context, q tools.Question) (tools.Answer, error) {
	answers, err := e.AskAll(ctx, []tools.Question{q})
	if err != nil {
		return tools.Answer{}, err
	}
	return answers[0], nil
}

// AskAll implements [tools.BatchPeer].
func (e *errand) AskAll(ctx context.Context, list []tools.Question) ([]tools.Answer, error) {
	for _, q := range list {
		if !answers(e.capabilities, q) {
			return nil, unaskable(q)
		}
	}
	waiting := e.put(list)
	out := make([]tools.Answer, len(list))
	for i, q := range waiting {
		select {
		case <-q.done:
			out[i].Result = q.answer
		case <-ctx.Done():
			e.withdraw(waiting)
			return nil, ctx.Err()
		}
	}
	return out, nil
}

// put takes questions in. One whose answer is given already does not wait.
func (e *errand) put(list []tools.Question) []*question {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]*question, len(list))
	for i, given := range list {
		q := &question{Question: given, done: make(chan struct{})}
		q.Key = e.freeKey(given.Key)
		if out[i] = q; e.take(q.Key, q) {
			close(q.done)
			continue
		}
		if e.pending == nil {
			e.pending = map[string]*question{}
		}
		e.pending[q.Key] = q
		e.order = append(e.order, q.Key)
	}
	if len(e.order) > 0 {
		e.signal()
	}
	return out
}

// freeKey returns a key under which no other question waits.
func (e *errand) freeKey(key string) string {
	for key == "" || e.pending[key] != nil {
		e.named++
		key = fmt.Sprintf("question-%d", e.named)
	}
	return key
}

func (e *errand) withdraw(list []*question) {
	e.mu.Lock()
	defer e.mu.Unlock()
	left := e.order[:0]
	for _, q := range list {
		if e.pending[q.Key] == q {
			delete(e.pending, q.Key)
		}
	}
	for _, key := range e.order {
		if e.pending[key] != nil {
			left = append(left, key)
		}
	}
	e.order = left
}

// park answers the request with what is to be asked, unless nothing is.
func (e *errand) park() (json.RawMessage, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.order) == 0 {
		return nil, nil
	}
	state, err := e.parking.keep(e)
	if err != nil {
		e.cancel()
		return nil, err
	}
	e.request = nil
	out := []byte(`{"resultType":"input_required","inputRequests":{`)
	for i, key := range e.order {
		q := e.pending[key]
		if i > 0 {
			out = append(out, ',')
		}
		out = rawjson.AppendQuoted(append(rawjson.AppendQuoted(out, key), `:{"method":`...), q.Method)
		params := q.Params
		if params == nil {
			params = json.RawMessage("{}")
		}
		out = append(append(append(out, `,"params":`...), params...), '}')
	}
	out = rawjson.AppendQuoted(append(out, `},"requestState":`...), state)
	return append(out, '}'), nil
}

// levelWord is the level of log messages that the client wants, or empty.
func levelWord(r *mcpwire.Request) string {
	c := clientOf(r.Session)
	if c == nil {
		return strings.ToLower(r.LogLevel)
	}
	return levels()[c.level.Load()]
}
