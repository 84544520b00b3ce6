package registry

import (
	"context"

	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/tools"
)

// note is what a worker says before the result.
type note struct {
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

// note takes a note of a call that runs. When its caller is slow, notes are
// lost, and results are not.
func (r *Registry) note(m stream.Message) {
	id, n, ok := readNote(m)
	if !ok {
		return
	}
	c := r.known(id)
	if c == nil {
		return
	}
	count := c.noted.Add(1)
	if n.progress != nil && n.progress.Progress == 0 && m.Name == OutputDeltaEventKey {
		n.progress.Progress = float64(count)
	}
	select {
	case c.notes <- n:
	default:
	}
	select {
	case c.heard <- struct{}{}:
	default:
	}
}

func readNote(m stream.Message) (id string, n note, ok bool) {
	switch m.Name {
	case OutputDeltaEventKey:
		var d OutputDeltaMessage
		err := decode(m.Payload, &d)
		return d.ToolUseID, note{progress: &tools.ProgressNote{Message: d.Delta}}, err == nil
	case ProgressEventKey:
		var p ProgressMessage
		err := decode(m.Payload, &p)
		return p.ToolUseID, note{progress: &tools.ProgressNote{Progress: p.Progress, Total: p.Total, Message: p.Message, Raw: p.Raw}}, err == nil
	case LogEventKey:
		var l LogMessage
		err := decode(m.Payload, &l)
		return l.ToolUseID, note{log: &tools.LogNote{Level: l.Level, Logger: l.Logger, Data: l.Data, Raw: l.Raw}}, err == nil
	}
	return "", note{}, false
}

// resultOf makes what the caller gets of a worker's answer.
func resultOf(m *ToolResultMessage) (tools.ToolResult, error) {
	if m.Error != nil {
		return tools.ToolResult{}, m.Error.failure()
	}
	res := tools.ToolResult{Structured: m.ResultJSON, Content: m.Content, IsError: m.IsError, Meta: m.Meta, Wire: m.Wire, WireKind: tools.Kind(m.WireKind)}
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
	m := ToolResultMessage{ToolUseID: toolUseID, ResultJSON: structured, Content: res.Content, IsError: res.IsError, Meta: res.Meta,
		Wire: res.Wire, WireKind: string(res.WireKind)}
	if b, ok := res.Provider["bounds"].(Bounds); ok {
		m.Bounds = &b
	}
	if d, ok := res.Provider["server_data"].([]ServerData); ok {
		m.ServerData = d
	}
	return m, nil
}
