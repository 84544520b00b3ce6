package provider

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/tools"
)

// ErrNoCall is returned by OutputDelta outside of HandleToolCall.
var ErrNoCall = errors.New("provider: the context is not that of a call")

type emitterKey struct{}

// emitter sends what comes before the result of one call.
type emitter struct {
	worker *worker
	job    *job
	msg    *registry.ToolCallMessage // of the job
	sent   atomic.Int64
}

// OutputDelta sends a piece of a tool's output to the caller, from within
// HandleToolCall. output names what it belongs to, such as "stdout". A caller
// that takes no progress drops it.
func OutputDelta(ctx context.Context, output, delta string) error {
	e, ok := ctx.Value(emitterKey{}).(*emitter)
	if !ok {
		return ErrNoCall
	}
	return e.send(ctx, registry.OutputDeltaEventKey, registry.OutputDeltaMessage{ToolUseID: e.msg.ToolUseID, Stream: output, Delta: delta,
		Token: e.token()})
}

// token is that of the call's route, or empty.
func (e *emitter) token() string {
	if e.msg.Route == nil {
		return ""
	}
	return e.msg.Route.Token
}

func (e *emitter) count() int { return int(e.sent.Load()) }

// send hands a note to the process that waits for the call, or puts it on the
// stream that takes the answer when the call names no such process.
func (e *emitter) send(ctx context.Context, name string, note any) error {
	payload, err := registry.Encode(note)
	if err != nil {
		return err
	}
	m := stream.Message{Name: name, Payload: payload}
	if e.msg.Route == nil {
		return e.worker.addReply(ctx, e.msg, m)
	}
	e.worker.hindrances.try(toPublish)
	if err := e.worker.client.Publish(ctx, registry.NotesSubject(e.msg.Route.Inbox), m); err != nil {
		return err
	}
	e.sent.Add(1)
	return nil
}

// peer is the way from a catalog's tool back to the caller.
type peer struct{ out *emitter }

var _ tools.BatchPeer = peer{}

// Progress implements tools.Peer.
func (p peer) Progress(ctx context.Context, n tools.ProgressNote) error {
	return p.out.send(ctx, registry.ProgressEventKey, registry.ProgressMessage{ToolUseID: p.out.msg.ToolUseID, Progress: n.Progress, Total: n.Total,
		Message: n.Message, Raw: n.Raw, Token: p.out.token()})
}

// Log implements tools.Peer.
func (p peer) Log(ctx context.Context, l tools.LogNote) error {
	return p.out.send(ctx, registry.LogEventKey, registry.LogMessage{ToolUseID: p.out.msg.ToolUseID, Level: l.Level, Logger: l.Logger, Data: l.Data, Raw: l.Raw,
		Token: p.out.token()})
}
