package mcpwire

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
)

// A guarded handler turns a panic into an error: a request runs on a goroutine
// of the wire, where a panic would end the process.
type guarded struct {
	Handler
	log *slog.Logger
}

func (g guarded) Describe(ctx context.Context, s *Session) (d *Description, err error) {
	defer recovered(g.log, "description", &err)
	return g.Handler.Describe(ctx, s)
}

func (g guarded) ServeMCP(ctx context.Context, r *Request) (result json.RawMessage, err error) {
	defer recovered(g.log, r.Method, &err)
	return g.Handler.ServeMCP(ctx, r)
}

// errEnded answers a request whose handler ended the goroutine instead of
// returning.
var errEnded = &Error{Code: CodeInternalError, Message: "internal error"}

// orEnded, when deferred, makes *a the answer of a handler that left none.
func (s *Server) orEnded(f *Frame, a **answer) {
	if *a != nil {
		return
	}
	s.opts.Logger.Error("the handler ended its goroutine", "in", boundText([]byte(f.Method)))
	*a = newAnswer(f.ID, nil, errEnded)
}

// recovered, when deferred, ends a panic and makes it the error of what was
// being done. The peer does not learn what went wrong; the log does.
func recovered(log *slog.Logger, doing string, err *error) {
	v := recover()
	if v == nil {
		return
	}
	log.Error("panic", "in", boundText([]byte(doing)), "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	*err = &Error{Code: CodeInternalError, Message: "internal error"}
}
