package a2atool

import (
	"container/list"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/toolcrib/toolcrib/identity"
)

// The bounds of what is remembered for one peer.
const (
	maxSessions = 4096
	maxContexts = 16  // of one session
	maxID       = 512 // bytes of an agent's id; a longer one is not remembered
)

// newContext is the context id that begins another conversation.
const newContext = "new"

// A sessionKey says whose a conversation is. It holds all of a caller's
// identity, so that no other caller is ever answered from it.
type sessionKey struct{ tenant, user, session string }

// keyOf returns the key of the caller on ctx, and false for a caller whose
// identity is not complete: nothing is remembered for it.
func keyOf(ctx context.Context) (sessionKey, bool) {
	id, _ := identity.From(ctx)
	return sessionKey{id.TenantID, id.UserID, id.SessionID}, id.Complete()
}

// A thread is one conversation: the agent's context, and its task that waits
// for input, if one does, with the question it waits at.
type thread struct {
	context string
	task    a2a.TaskID
	asked   question
}

// A question tells one question of a task from the next.
type question struct {
	state   a2a.TaskState
	message string    // its id, or empty
	at      time.Time // or zero
}

func questionOf(s a2a.TaskStatus) question {
	q := question{state: s.State}
	if s.Message != nil {
		q.message = s.Message.ID
	}
	if s.Timestamp != nil {
		q.at = *s.Timestamp
	}
	return q
}

// same reports whether other is the same question, shown once more.
func (q question) same(other question) bool {
	switch {
	case !waits(q.state) || q.state != other.state:
		return false
	case q.message != "" && other.message != "":
		return q.message == other.message
	}
	return !q.at.IsZero() && q.at.Equal(other.at)
}

// A memory keeps the conversations of sessions; when there are too many, those
// that were not used for the longest time are forgotten. It is safe for
// concurrent use.
type memory struct {
	limit int

	mu       sync.Mutex
	sessions map[sessionKey]*list.Element
	recent   *list.List // of *session, the latest first
}

// A session holds threads, the latest last.
type session struct {
	key     sessionKey
	threads []thread
}

func newMemory(limit int) *memory {
	return &memory{limit: limit, sessions: map[sessionKey]*list.Element{}, recent: list.New()}
}

var errUnknownContext = errors.New(`context_id: this session has no such conversation with the agent: leave it out to go on with the latest one, or give "new"`)

// begin returns the thread that a call goes on with: the one named, else the
// latest of the session. A task that waits for input is handed to one call
// only. A caller without a complete identity names any context it likes.
func (m *memory) begin(ctx context.Context, named string) (thread, error) {
	if named == newContext {
		return thread{}, nil
	}
	key, ok := keyOf(ctx)
	if !ok {
		return thread{context: named}, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.touch(key)
	if s == nil || len(s.threads) == 0 {
		if named != "" {
			return thread{}, errUnknownContext
		}
		return thread{}, nil
	}
	i := len(s.threads) - 1
	if named != "" {
		if i = s.find(named); i < 0 {
			return thread{}, errUnknownContext
		}
	}
	t := s.threads[i]
	s.threads[i] = thread{context: t.context}
	return t, nil
}

// end remembers the thread of a call that has ended.
func (m *memory) end(ctx context.Context, t thread) {
	key, ok := keyOf(ctx)
	if !ok || t.context == "" || len(t.context) > maxID {
		return
	}
	if len(t.task) > maxID || len(t.asked.message) > maxID {
		t = thread{context: t.context}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.touch(key)
	if s == nil {
		s = m.add(key)
	}
	if i := s.find(t.context); i >= 0 {
		s.threads = slices.Delete(s.threads, i, i+1)
	}
	s.threads = append(s.threads, t)
	if len(s.threads) > maxContexts {
		s.threads = slices.Delete(s.threads, 0, 1)
	}
}

// forget drops a thread that the agent no longer knows.
func (m *memory) forget(ctx context.Context, contextID string) {
	key, ok := keyOf(ctx)
	if !ok {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.touch(key); s != nil {
		s.threads = slices.DeleteFunc(s.threads, func(t thread) bool { return t.context == contextID })
	}
}

func (m *memory) len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.sessions)
}

// touch returns the session and makes it the latest, or nil.
func (m *memory) touch(key sessionKey) *session {
	e, ok := m.sessions[key]
	if !ok {
		return nil
	}
	m.recent.MoveToFront(e)
	return e.Value.(*session)
}

func (m *memory) add(key sessionKey) *session {
	s := &session{key: key}
	m.sessions[key] = m.recent.PushFront(s)
	if len(m.sessions) > m.limit {
		oldest := m.recent.Remove(m.recent.Back()).(*session)
		delete(m.sessions, oldest.key)
	}
	return s
}

func (s *session) find(contextID string) int {
	return slices.IndexFunc(s.threads, func(t thread) bool { return t.context == contextID })
}
