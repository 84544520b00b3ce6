package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// A listener hears what a server says before it answers. A *tools.Call is one.
type listener interface {
	Progress(ctx context.Context, n tools.ProgressNote) error
	Log(ctx context.Context, n tools.LogNote) error
	Notify(ctx context.Context, method string, params json.RawMessage) error
}

// relayNotes passes on to to what a server says on the stream of a request.
func (s *Server) relayNotes(ctx context.Context, opts *mcpwire.CallOptions, l *lane, to listener) {
	opts.Progress = func(params json.RawMessage) {
		s.dropped(to.Progress(ctx, progressNote(params)))
	}
	opts.Notification = func(method string, params json.RawMessage) {
		switch method {
		case mcpwire.NotifyLog:
			s.dropped(to.Log(ctx, logNote(params)))
		case notifyElicited:
			s.elicited(l, params)
		case notifyToolsChanged, notifyResourcesChanged, notifyPromptsChanged, notifyUpdated:
			s.notified(method, params)
		case notifyTaskStatus:
			s.taskNotice(ctx, l.scope, params, to)
		case mcpwire.NotifyProgress, mcpwire.NotifySubscribed: // of something that is over, or never was
		default:
			s.dropped(to.Notify(ctx, method, params))
		}
	}
}

// dropped notes what the caller did not take. A call does not fail for it.
func (s *Server) dropped(err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		s.log.Debug("a note of the server did not reach the caller", "error", err)
	}
}

func progressNote(params json.RawMessage) tools.ProgressNote {
	n := tools.ProgressNote{Raw: params}
	it := rawjson.Object(params)
	for it.Next() {
		switch {
		case it.KeyIs("progress"):
			n.Progress = number(it.Value())
		case it.KeyIs("total"):
			n.Total = number(it.Value())
		case it.KeyIs("message"):
			n.Message, _ = rawjson.Unquote(it.Value())
		}
	}
	return n
}

func number(raw json.RawMessage) float64 {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return 0
	}
	return f
}

func logNote(params json.RawMessage) tools.LogNote {
	n := tools.LogNote{Raw: params}
	it := rawjson.Object(params)
	for it.Next() {
		switch {
		case it.KeyIs("level"):
			n.Level, _ = rawjson.Unquote(it.Value())
		case it.KeyIs("logger"):
			n.Logger, _ = rawjson.Unquote(it.Value())
		case it.KeyIs("data"):
			n.Data = it.Value()
		}
	}
	return n
}
