package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"

	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/tools"
)

// note is what a worker says before the result.
type note struct {
	call     string // its id
	token    string
	progress *tools.ProgressNote
	log      *tools.LogNote
}

// pass gives the note to the caller. One who does not take it misses it.
func (n note) pass(ctx context.Context, in *tools.Call) {
	if n.progress != nil {
		_ = in.Progress(ctx, *n.progress)
	}
	if n.log != nil {
		_ = in.Log(ctx, *n.log)
	}
}

// maxNotes bounds the notes that a slow caller has not taken.
const maxNotes = 256

// notes are those that a caller has not taken.
type notes struct {
	come chan struct{} // holds one: there are some

	mu   sync.Mutex
	list []note
}

// add adds a note while there is room.
func (q *notes) add(n note) {
	q.mu.Lock()
	if len(q.list) < maxNotes {
		q.list = append(q.list, n)
	}
	q.mu.Unlock()
	select {
	case q.come <- struct{}{}:
	default:
	}
}

// pass gives the notes to the caller.
func (q *notes) pass(ctx context.Context, in *tools.Call) {
	q.mu.Lock()
	list := q.list
	q.list = nil
	q.mu.Unlock()
	for _, n := range list {
		n.pass(ctx, in)
	}
}

// note takes what a worker says of a call that runs, and the result of one that
// is not recorded. When its caller is slow, notes are lost, and results are not.
func (r *Registry) note(m stream.Message) {
	if m.Name == MessageHeld {
		r.held(m)
		return
	}
	n, ok := readNote(m)
	if !ok {
		r.unconfirmed(m)
		return
	}
	c := r.known(n.call)
	if c == nil || !c.hasToken(n.token) {
		return
	}
	count := c.noted.Add(1)
	if n.progress != nil && n.progress.Progress == 0 && m.Name == OutputDeltaEventKey {
		n.progress.Progress = float64(count)
	}
	c.notes.add(n)
	select {
	case c.heard <- struct{}{}:
	default:
	}
}

// unconfirmed takes the result of a call that is not recorded.
func (r *Registry) unconfirmed(m stream.Message) {
	res, err := DecodeResult(m.Payload)
	if err != nil {
		r.log.Warn("a result cannot be read", "error", err)
		return
	}
	if c := r.known(res.ToolUseID); c == nil || c.recorded {
		return // its caller went away, or it must be confirmed
	}
	if res.Receipt != nil {
		res.Receipt.Notes = 0 // they came the same way, before it
	}
	if err := r.take(r.ctx, &res); err != nil {
		r.log.Error("a result cannot be taken", "call", res.ToolUseID, "error", err)
	}
}

// held notes that workers have calls which were asked for.
func (r *Registry) held(m stream.Message) {
	var p Probe
	if decode(m.Payload, &p) != nil {
		return
	}
	for i, id := range p.ToolUseIDs {
		if c := r.known(id); c != nil && i < len(p.Tokens) && c.hasToken(p.Tokens[i]) {
			c.sending() // it is not lost
		}
	}
}

func readNote(m stream.Message) (n note, ok bool) {
	switch m.Name {
	case OutputDeltaEventKey:
		var d OutputDeltaMessage
		err := decode(m.Payload, &d)
		return note{d.ToolUseID, d.Token, &tools.ProgressNote{Message: d.Delta}, nil}, err == nil
	case ProgressEventKey:
		var p ProgressMessage
		err := decode(m.Payload, &p)
		return note{p.ToolUseID, p.Token, &tools.ProgressNote{Progress: p.Progress, Total: p.Total, Message: p.Message, Raw: p.Raw}, nil}, err == nil
	case LogEventKey:
		var l LogMessage
		err := decode(m.Payload, &l)
		return note{l.ToolUseID, l.Token, nil, &tools.LogNote{Level: l.Level, Logger: l.Logger, Data: l.Data, Raw: l.Raw}}, err == nil
	}
	return note{}, false
}

// resultOf makes what the caller gets of a worker's answer.
func resultOf(m *ToolResultMessage) (tools.ToolResult, error) {
	if m.Error != nil {
		return tools.ToolResult{}, m.Error.failure()
	}
	res := tools.ToolResult{Structured: m.ResultJSON, Content: m.Content, IsError: m.IsError, Wire: m.Wire, WireKind: tools.Kind(m.WireKind)}
	if len(m.Meta) > 0 {
		numbers := json.NewDecoder(bytes.NewReader(m.Meta))
		numbers.UseNumber()
		if err := numbers.Decode(&res.Meta); err != nil {
			return tools.ToolResult{}, &tools.Error{Code: tools.ErrToolInvalidOutput, Class: tools.ErrClassPermanent, Delivery: tools.Answered,
				Message: "the result's meta is no object"}
		}
	}
	if m.ResultJSON != nil {
		res.Value = m.ResultJSON
	}
	beside := map[string]any{}
	if m.Bounds != nil {
		beside["bounds"] = *m.Bounds
	}
	if len(m.ServerData) > 0 {
		beside["server_data"] = m.ServerData
	}
	if len(beside) > 0 {
		res.Provider = beside
	}
	return res, nil
}

// ResultMessage makes the answer of a tool's result.
func ResultMessage(toolUseID string, res tools.ToolResult) (ToolResultMessage, error) {
	structured, err := res.JSON()
	if err != nil {
		return ToolResultMessage{}, err
	}
	m := ToolResultMessage{ToolUseID: toolUseID, ResultJSON: structured, Content: res.Content, IsError: res.IsError,
		Wire: res.Wire, WireKind: string(res.WireKind)}
	if len(res.Meta) > 0 {
		if m.Meta, err = json.Marshal(res.Meta); err != nil {
			return ToolResultMessage{}, err
		}
	}
	if b, ok := res.Provider["bounds"].(Bounds); ok {
		m.Bounds = &b
	}
	if d, ok := res.Provider["server_data"].([]ServerData); ok {
		m.ServerData = d
	}
	return m, nil
}
