package mcpserver

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// notifyTask tells whoever listens how a task stands.
const notifyTask = "notifications/tasks"

// watchedTasks are the tasks whose state a subscription hears of. Of what a slow
// client has not been told yet, the last of each task is kept.
type watchedTasks struct {
	wake  chan struct{} // holds one: there is something to tell
	stops []func()

	mu     sync.Mutex
	latest map[string]taskUpdate // by name
	order  []string
}

// A taskUpdate is what the source said last of a task.
type taskUpdate struct {
	voice  *taskVoice
	params json.RawMessage
}

func newWatchedTasks() *watchedTasks {
	return &watchedTasks{wake: make(chan struct{}, 1), latest: map[string]taskUpdate{}}
}

func (w *watchedTasks) updated(name string, u taskUpdate) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, have := w.latest[name]; !have {
		w.order = append(w.order, name)
	}
	w.latest[name] = u
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// updates takes what is to be told.
func (w *watchedTasks) updates() []taskUpdate {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []taskUpdate
	for _, name := range w.order {
		out = append(out, w.latest[name])
	}
	clear(w.latest)
	w.order = nil
	return out
}

func (w *watchedTasks) stop() {
	for _, stop := range w.stops {
		stop()
	}
}

// readTaskIDs reads the tasks that a subscription is about.
func readTaskIDs(r *mcpwire.Request, wanted json.RawMessage) ([]string, error) {
	list, ok := rawjson.Get(wanted, "taskIds")
	if !ok || rawjson.KindOf(list) != rawjson.KindArray {
		return nil, nil
	}
	if !declaresTasks(r.Session) {
		return nil, missingTasks()
	}
	var names []string
	for it := rawjson.Array(list); it.Next(); {
		if name, ok := rawjson.Unquote(it.Value()); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
		if len(names) > maxWatchedTasks {
			return nil, mcpwire.Errorf(mcpwire.CodeInvalidParams, "%s: more than %d tasks", r.Method, maxWatchedTasks)
		}
	}
	return names, nil
}

// maxWatchedTasks limits the tasks of one subscription, each of which is one of
// its source's.
const maxWatchedTasks = 100

// watchTasks watches the tasks of a wish and takes from it those that are not the
// caller's, or that cannot be watched.
func (s *Server) watchTasks(ctx context.Context, r *mcpwire.Request, wanted *wish) *watchedTasks {
	w := newWatchedTasks()
	owner, granted := taskOwnerOf(ctx, r), wanted.tasks[:0]
	peer := newPeer(r, s.capabilities(r))
	peer.close()
	ctx = tools.WithEntrance(ctx, s.taskEntrance(r, peer))
	for _, name := range wanted.tasks {
		tool, id, ok := s.tasks.seal.open(owner, name)
		if !ok {
			continue
		}
		keeper := s.taskKeeper(ctx, tool)
		if keeper == nil {
			continue
		}
		voice := &taskVoice{seal: s.tasks.seal, owner: owner, tool: tool, id: id}
		stop, err := keeper.WatchTask(ctx, id, func(params json.RawMessage) { w.updated(name, taskUpdate{voice, params}) })
		if err != nil {
			s.logger.Debug("a task is not watched", "tool", tool, "error", err)
			continue
		}
		w.stops, granted = append(w.stops, stop), append(granted, name)
	}
	wanted.tasks = granted
	return w
}

// tellTasks tells how the tasks of a subscription stand, with results as small as
// those of calls.
func (s *Server) tellTasks(ctx context.Context, r *mcpwire.Request, list []taskUpdate) error {
	for _, u := range list {
		params, err := s.boundInner(ctx, r, u.voice, u.params)
		if err != nil {
			return err
		}
		if err := r.Notify(ctx, notifyTask, u.voice.say(params)); err != nil {
			return err
		}
	}
	return nil
}
