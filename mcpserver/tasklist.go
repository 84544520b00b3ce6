package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

const (
	// tasksOfOne and tasksOfAll bound the tasks that are listed. A task beyond
	// them can be used all the same.
	tasksOfOne = 1000
	tasksOfAll = 20000
	// tasksOfPage is how many tasks a page of the list has; each is asked for.
	tasksOfPage = 25
)

// A begunTask is a task as it is listed. Numbers grow with time.
type begunTask struct {
	number   int
	tool, id string
}

// tasks are those that clients began. It is safe for concurrent use.
type tasks struct {
	seal *taskSeal

	mu    sync.Mutex
	last  int
	count int
	of    map[taskOwner][]begunTask
	small smallResults
}

func newTasks() *tasks { return &tasks{seal: newTaskSeal(), of: map[taskOwner][]begunTask{}} }

// add lists a task for its owner, whose oldest makes place.
func (t *tasks) add(o taskOwner, tool, id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.of[o]) >= tasksOfOne {
		t.drop(o, t.of[o][0].number)
	}
	if t.count >= tasksOfAll {
		return
	}
	t.last++
	t.count++
	t.of[o] = append(t.of[o], begunTask{t.last, tool, id})
}

// forget takes a task off the list.
func (t *tasks) forget(o taskOwner, number int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(o, number)
}

func (t *tasks) drop(o taskOwner, number int) {
	list := t.of[o]
	kept := slices.DeleteFunc(slices.Clone(list), func(b begunTask) bool { return b.number == number })
	t.count -= len(list) - len(kept)
	if t.of[o] = kept; len(kept) == 0 {
		delete(t.of, o)
	}
}

// forgetSession forgets the tasks of a session that has ended, whose names hold
// for nobody any more.
func (t *tasks) forgetSession(principal, session string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for o, list := range t.of {
		if o.principal == principal && o.identity.SessionID == session {
			t.count -= len(list)
			delete(t.of, o)
		}
	}
}

// page returns the tasks of an owner behind a number, and whether there are more.
func (t *tasks) page(o taskOwner, after int) (list []begunTask, more bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range t.of[o] {
		switch {
		case b.number <= after:
		case len(list) == tasksOfPage:
			return list, true
		default:
			list = append(list, b)
		}
	}
	return list, false
}

// listTasks answers tasks/list: the caller's own tasks, each as its source says
// that it stands. A source lists those of all callers.
func (s *Server) listTasks(ctx context.Context, r *mcpwire.Request) (json.RawMessage, error) {
	if err := servesTasks(r); err != nil {
		return nil, err
	}
	cursor, err := cursorOf(r.Params)
	if err != nil {
		return nil, err
	}
	after, err := strconv.Atoi("0" + cursor)
	if err != nil {
		return nil, mcpwire.Errorf(mcpwire.CodeInvalidParams, "invalid cursor: expected the nextCursor of the page before")
	}
	owner := taskOwnerOf(ctx, r)
	list, more := s.tasks.page(owner, after)
	out := []byte(`{"tasks":[`)
	for _, raw := range s.lookAtTasks(ctx, r, owner, list) {
		if out[len(out)-1] != '[' {
			out = append(out, ',')
		}
		out = append(out, raw...)
	}
	out = append(out, ']')
	if more {
		out = rawjson.AppendQuoted(append(out, `,"nextCursor":`...), strconv.Itoa(list[len(list)-1].number))
	}
	return append(out, '}'), nil
}

// lookAtTasks asks for tasks, all at once, and forgets those that their source
// does not know any more.
func (s *Server) lookAtTasks(ctx context.Context, r *mcpwire.Request, owner taskOwner, list []begunTask) []json.RawMessage {
	found := make([]json.RawMessage, len(list))
	var asking sync.WaitGroup
	for i, b := range list {
		keeper := s.taskKeeper(ctx, b.tool)
		if keeper == nil {
			continue
		}
		asking.Go(func() {
			raw, err := s.lookAtTask(ctx, r, keeper, b.id)
			var rpc *mcpwire.Error
			switch {
			case err == nil:
				voice := &taskVoice{seal: s.tasks.seal, owner: owner, tool: b.tool, id: b.id}
				found[i] = voice.say(raw)
			case errors.As(err, &rpc) && rpc.Code == mcpwire.CodeInvalidParams:
				s.tasks.forget(owner, b.number)
			default:
				s.logger.Debug("a task is left out of the list", "tool", b.tool, "error", err)
			}
		})
	}
	asking.Wait()
	return slices.DeleteFunc(found, func(raw json.RawMessage) bool { return raw == nil })
}

// lookAtTask asks how a task stands. What it gave is for tasks/get and tasks/result
// to tell, where large results are kept aside.
func (s *Server) lookAtTask(ctx context.Context, r *mcpwire.Request, keeper tools.TaskKeeper, id string) (json.RawMessage, error) {
	peer := newPeer(r, s.capabilities(r))
	peer.close() // there is nothing to be told on the way
	raw, err := keeper.Task(tools.WithEntrance(ctx, s.taskEntrance(r, peer)), methodGetTask, append(rawjson.AppendQuoted([]byte(`{"taskId":`), id), '}'))
	if err == nil && rawjson.KindOf(raw) != rawjson.KindObject {
		return nil, errors.New("the answer is no task")
	}
	if err == nil && s.opts.Bounder != nil {
		return rawjson.Delete(raw, "result")
	}
	return raw, err
}
