package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

const (
	// extensionTasks is the extension by which a server of the stateless era
	// may answer a call with a task.
	extensionTasks = "io.modelcontextprotocol/tasks"
	// notifyTaskStatus and notifyTask tell how a task stands: the first comes
	// at any time, the second for a subscription.
	notifyTaskStatus = "notifications/tasks/status"
	notifyTask       = "notifications/tasks"

	methodTaskResult = "tasks/result"

	// maxTasks bounds the tasks whose caller hears how they stand.
	maxTasks = 4096
)

var _ tools.TaskKeeper = (*Server)(nil)

// errUninvitedTask is for a server that answers a call with a task though its
// caller waits for a result.
var errUninvitedTask = errors.New("the server answers with a task, which the caller did not ask for")

// asksForTask reports whether a call says, in the way of the stateful era, that
// it is to be a task.
func asksForTask(call *tools.Call) bool {
	if call == nil || !call.Tasks || call.Extra == nil {
		return false
	}
	_, ok := rawjson.Get(call.Extra, "task")
	return ok
}

// begun is the result of a call that a server answers with a task.
func (s *Server) begun(call *tools.Call, of scope, r tools.ToolResult) (tools.ToolResult, error) {
	if call == nil || !call.Tasks {
		return r, errUninvitedTask
	}
	s.tasks.add(taskKey{of, r.TaskID}, call)
	return tools.ToolResult{Wire: r.Wire, Meta: r.Meta, TaskID: r.TaskID}, nil
}

// A taskKey is the server's name of a task, which holds on the connections of
// one scope.
type taskKey struct {
	scope scope
	id    string
}

// taskCallers are who hears how tasks stand that are under way. Beyond maxTasks the oldest is forgotten: its caller has to
// ask. So is who will make no more calls, with all that is kept of its session. It is safe for concurrent use.
type taskCallers struct {
	mu    sync.Mutex
	peers map[taskKey]taskCaller
	order []taskKey
}

type taskCaller struct {
	tools.NotifiedPeer
	gone <-chan struct{} // closed when nobody hears any more; may be nil
}

func (c taskCaller) left() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

func (t *taskCallers) add(id taskKey, call *tools.Call) {
	peer, ok := call.Peer().(tools.NotifiedPeer)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.peers == nil {
		t.peers = map[taskKey]taskCaller{}
	}
	if _, have := t.peers[id]; !have {
		t.order = append(t.order, id)
	}
	t.peers[id] = taskCaller{peer, call.ClientGone}
	t.order = slices.DeleteFunc(t.order, func(each taskKey) bool {
		drop := t.peers[each].left() || len(t.peers) > maxTasks
		if drop {
			delete(t.peers, each)
		}
		return drop
	})
}

func (t *taskCallers) of(id taskKey) (tools.NotifiedPeer, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	peer, ok := t.peers[id]
	return peer, ok
}

// taskNotice passes on how a task stands, to the caller whose task it is.
// otherwise, which may be nil, hears of a task that nobody is known to have:
// the call that begins it is not over.
func (s *Server) taskNotice(ctx context.Context, of scope, params json.RawMessage, otherwise listener) {
	raw, _ := rawjson.Get(params, "taskId")
	id, _ := rawjson.Unquote(raw)
	peer, ok := s.tasks.of(taskKey{of, id})
	switch {
	case ok:
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), notifyWait)
		defer cancel()
		s.dropped(peer.Notify(ctx, notifyTaskStatus, params))
	case otherwise != nil:
		s.dropped(otherwise.Notify(ctx, notifyTaskStatus, params))
	}
}

// Task implements [tools.TaskKeeper]. The request goes out on the connection
// that calls of the caller go out on. The error is a *[tools.Error].
func (s *Server) Task(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if method != methodTaskResult {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, companionWait)
		defer cancel()
	}
	raw, err := s.task(ctx, method, params)
	if err != nil {
		return nil, s.failure(ctx, "", "asking for a task", err)
	}
	return raw, nil
}

func (s *Server) task(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	call := tools.EntranceFrom(ctx).Call()
	l, err := s.lanes.take(ctx, call)
	if err != nil {
		return nil, err
	}
	if !l.everybodys() {
		defer s.lanes.release(l)
	}
	conn, err := l.get(ctx, false)
	if err != nil {
		return nil, err
	}
	if !l.everybodys() {
		defer l.begin(ctx, s, conn, call)()
	}
	opts := &mcpwire.CallOptions{}
	s.connectCaller(ctx, opts, l, conn.era, call)
	return conn.call(ctx, method, params, opts)
}

// WatchTask implements [tools.TaskKeeper]. A server of the stateful era is not
// asked: it tells by itself. The error is a *[tools.Error].
func (s *Server) WatchTask(ctx context.Context, id string, updated func(params json.RawMessage)) (stop func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, companionWait)
	defer cancel()
	conn, err := s.shared.get(ctx, false)
	if err == nil && conn.era == mcpwire.EraStateful {
		err = mcpwire.Errorf(mcpwire.CodeMethodNotFound, "the server takes no subscriptions to tasks")
	}
	if err == nil {
		stop, err = s.watchTask(ctx, conn, id, updated)
	}
	if err != nil {
		return nil, s.failure(ctx, "", "watching a task", err)
	}
	return stop, nil
}

func (s *Server) watchTask(ctx context.Context, conn *connection, id string, updated func(params json.RawMessage)) (stop func(), err error) {
	opts := &mcpwire.CallOptions{Capabilities: carried(tools.EntranceFrom(ctx).Call(), false)}
	granted := make(chan error, 1)
	opts.Notification = func(method string, params json.RawMessage) {
		switch method {
		case mcpwire.NotifySubscribed:
			offer(granted, nil)
		case notifyTask:
			updated(withoutMeta(params, mcpwire.MetaSubscriptionID))
		}
	}
	own, stop := context.WithCancel(conn.ctx)
	params := append(rawjson.AppendQuoted([]byte(`{"notifications":{"taskIds":[`), id), `]}}`...)
	s.shared.spawn(func() {
		defer stop()
		_, err := conn.call(own, mcpwire.MethodListen, params, opts)
		if err == nil {
			err = errNotWatched
		}
		offer(granted, err)
	})
	select {
	case err = <-granted:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		stop()
	}
	return stop, err
}

var errNotWatched = errors.New("the server does not tell how the task stands")
