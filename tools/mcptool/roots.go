package mcptool

import (
	"context"
	"encoding/json"

	"github.com/toolcrib/toolcrib/tools"
)

// notifyRootsChanged is told by a client when its roots change.
const notifyRootsChanged = "notifications/roots/list_changed"

// hasClient reports whether a call's caller is known, and can tell something
// when no call is under way.
func hasClient(call *tools.Call) bool {
	_, ok := call.Peer().(tools.ClientPeer)
	return ok && call.Client != ""
}

// passOnRoots tells the server of a lane when the roots of its client change,
// once for a burst of changes. A server that connects later asks by itself.
func (s *Server) passOnRoots(l *lane, from tools.Peer) {
	changed := make(chan json.RawMessage, 1)
	defer from.(tools.ClientPeer).OnClientNote(func(method string, params json.RawMessage) {
		if method != notifyRootsChanged {
			return
		}
		select {
		case changed <- params:
		default: // one waits to be told
		}
	})()
	for {
		select {
		case params := <-changed:
			s.tellRoots(l, params)
		case <-l.ctx.Done():
			return
		}
	}
}

func (s *Server) tellRoots(l *lane, params json.RawMessage) {
	conn := l.state().conn
	if conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(conn.ctx, notifyWait)
	defer cancel()
	if err := conn.client.Notify(ctx, notifyRootsChanged, params); err != nil {
		s.log.Debug("the server was not told that roots changed", "error", s.secrets.clean(err.Error()))
	}
}
