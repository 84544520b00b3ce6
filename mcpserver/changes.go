package mcpserver

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/view"
)

const (
	// settle is how long changes of the catalog are gathered before clients
	// hear of them.
	settle = 50 * time.Millisecond
	// noticeTimeout bounds how long one client may take to be told.
	noticeTimeout = 10 * time.Second
)

// audience is who hears of changes: the sessions of the stateful era, which the
// wire knows, and the subscriptions of the stateless era.
type audience struct {
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu        sync.Mutex
	listeners map[*listener]struct{}
}

// A listener is a subscription. It is woken after a change, and looks itself
// whether that matters to it.
type listener struct{ wake chan struct{} }

func (a *audience) start(s *Server) {
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	a.listeners = map[*listener]struct{}{}
	generations, stop := s.cat.Watch()
	a.work.Go(func() {
		defer stop()
		s.follow(ctx, generations)
	})
}

func (a *audience) stop() {
	a.cancel()
	a.work.Wait()
}

func (a *audience) add() (l *listener, remove func()) {
	l = &listener{wake: make(chan struct{}, 1)}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.listeners[l] = struct{}{}
	return l, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.listeners, l)
	}
}

func (a *audience) wakeListeners() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for l := range a.listeners {
		select {
		case l.wake <- struct{}{}:
		default: // it has yet to look at the change before
		}
	}
}

// follow tells clients of changes until ctx ends.
func (s *Server) follow(ctx context.Context, generations <-chan uint64) {
	for {
		select {
		case <-generations:
		case <-ctx.Done():
			return
		}
		timer := time.NewTimer(settle)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		s.audience.wakeListeners()
		for _, sess := range s.wire.Sessions() {
			s.tellSession(ctx, sess)
		}
	}
}

// tellSession sends list_changed to a session whose caller sees other tools
// than it was shown. What waits for the client does so on its own goroutine.
func (s *Server) tellSession(ctx context.Context, sess *mcpwire.Session) {
	c := clientOf(sess)
	if c == nil || !c.opened.Load() || !c.shown.Changed(s.formats.stateful.List(c.view(s.cat))) {
		return
	}
	s.audience.work.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, noticeTimeout)
		defer cancel()
		if err := sess.Notify(ctx, notifyToolsChanged, nil); err != nil {
			s.logger.Debug("a change of the tool list was not told", "session", sess.ID(), "error", err)
		}
	})
}

// listen answers subscriptions/listen: it acknowledges what it will tell, and
// tells it until the client or the server ends the subscription.
func (s *Server) listen(ctx context.Context, r *mcpwire.Request) (json.RawMessage, error) {
	wanted, ok := rawjson.Get(r.Params, "notifications")
	if !ok || rawjson.KindOf(wanted) != rawjson.KindObject {
		return nil, mcpwire.Errorf(mcpwire.CodeInvalidParams, `%s: "notifications" must be an object`, r.Method)
	}
	flag, _ := rawjson.Get(wanted, "toolsListChanged")
	ack := json.RawMessage(`{"notifications":{}}`)
	if string(flag) == "true" {
		ack = json.RawMessage(`{"notifications":{"toolsListChanged":true}}`)
	}
	l, remove := s.audience.add()
	defer remove()
	var shown view.Shown
	filter := tools.FilterFrom(ctx)
	shown.Show(s.formats.stateless.List(view.Through(s.cat, filter)))
	if err := r.Notify(ctx, mcpwire.NotifySubscribed, ack); err != nil {
		return nil, err
	}
	if string(flag) != "true" {
		return nil, nil // there is nothing to tell
	}
	for {
		select {
		case <-l.wake:
		case <-ctx.Done():
			return nil, nil
		}
		if !shown.Changed(s.formats.stateless.List(view.Through(s.cat, filter))) {
			continue
		}
		if err := r.Notify(ctx, notifyToolsChanged, nil); err != nil {
			return nil, err
		}
	}
}
