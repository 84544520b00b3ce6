package mcpwire

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// inflight are the requests of the peer that are being served, by id, so that
// notifications/cancelled finds them.
type inflight struct {
	mu     sync.Mutex
	cancel map[ID]context.CancelCauseFunc
	max    int
}

// errCancelled is the cause of the context of a request that its sender
// cancelled.
var errCancelled = &Error{Code: CodeRequestCancelled, Message: "request cancelled"}

// begin registers a request; an id that is already being served is refused.
func (t *inflight) begin(ctx context.Context, id ID) (context.Context, context.CancelCauseFunc, error) {
	key := id.key()
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, taken := t.cancel[key]; taken {
		return nil, nil, Errorf(CodeInvalidRequest, "invalid request: id %s is already in flight", boundID(id))
	}
	if t.max > 0 && len(t.cancel) >= t.max {
		return nil, nil, Errorf(CodeInternalError, "too many requests in flight (limit %d)", t.max)
	}
	if t.cancel == nil {
		t.cancel = make(map[ID]context.CancelCauseFunc)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	t.cancel[key] = cancel
	return ctx, cancel, nil
}

// end forgets a request and releases its context.
func (t *inflight) end(id ID, cancel context.CancelCauseFunc) {
	t.mu.Lock()
	delete(t.cancel, id.key())
	t.mu.Unlock()
	cancel(nil)
}

// cancelled handles the params of notifications/cancelled.
func (t *inflight) cancelled(params json.RawMessage) {
	raw, ok := rawjson.Get(params, "requestId")
	if !ok {
		return
	}
	t.mu.Lock()
	cancel := t.cancel[ID(raw).key()]
	t.mu.Unlock()
	if cancel != nil {
		cancel(errCancelled)
	}
}

func boundID(id ID) ID {
	if len(id) > 64 {
		return id[:64] + "…"
	}
	return id
}

// appendCancelled appends the notification that a request is cancelled.
func appendCancelled(dst []byte, id ID, reason string) []byte {
	params := append([]byte(`{"requestId":`), id...)
	params = append(params, `,"reason":`...)
	params = rawjson.AppendQuoted(params, reason)
	return AppendRequest(dst, "", NotifyCancelled, append(params, '}'))
}
