package mcpserver

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
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
	finds     finds
}

// A listener is a subscription. It is woken after a change, and looks itself
// whether that matters to it.
type listener struct {
	wake chan struct{}
	who  identity.Identity
}

func (a *audience) start(s *Server) {
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	a.listeners = map[*listener]struct{}{}
	generations, stop := s.cat.Watch()
	a.work.Go(func() {
		defer stop()
		s.follow(ctx, generations)
	})
	a.finds.wake = make(chan struct{}, 1)
	if d := s.opts.Discovery; d != nil {
		deaf := d.Memory().Hear(a.finds.add)
		a.work.Go(func() {
			defer deaf()
			s.followFinds(ctx)
		})
	}
}

func (a *audience) stop() {
	a.cancel()
	a.work.Wait()
}

func (a *audience) add(who identity.Identity) (l *listener, remove func()) {
	l = &listener{wake: make(chan struct{}, 1), who: who}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.listeners[l] = struct{}{}
	return l, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.listeners, l)
	}
}

// wakeListeners wakes the listeners whom a change can concern.
func (a *audience) wakeListeners(concerns func(identity.Identity) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for l := range a.listeners {
		if !concerns(l.who) {
			continue
		}
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
		s.audience.wakeListeners(func(identity.Identity) bool { return true })
		for _, sess := range s.wire.Sessions() {
			s.tellSession(ctx, sess)
		}
	}
}

// tellSession sends list_changed for each list of which the caller of a session
// sees something else than it was shown. What waits for the client does so on
// its own goroutine.
func (s *Server) tellSession(ctx context.Context, sess *mcpwire.Session) {
	c := clientOf(sess)
	if c == nil || !c.opened.Load() {
		return
	}
	changed := s.changed(s.narrowed(c.as(ctx)), sess, &c.shown)
	if len(changed) == 0 {
		return
	}
	s.audience.work.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, noticeTimeout)
		defer cancel()
		for _, method := range changed {
			if err := sess.Notify(ctx, method, nil); err != nil {
				s.logger.Debug("a change of a list was not told", "session", sess.ID(), "method", method, "error", err)
			}
		}
	})
}

// changed returns the notifications for the lists in which the caller on ctx
// sees something else than what was shown.
func (s *Server) changed(ctx context.Context, sess *mcpwire.Session, shown *[listCount]view.Shown) []string {
	var out []string
	for kind := range s.lists {
		f := &s.lists[kind]
		if shown[kind].Changed(s.listFor(ctx, kind, f.of(sess))) && !slices.Contains(out, f.changed) {
			out = append(out, f.changed)
		}
	}
	return out
}

// A wish is what a subscription of the stateless era asks for.
type wish struct {
	flags map[string]bool // by notification
	uris  []string
	tasks []string // names
}

// wishes are the members of the filter that ask for changes of lists.
var wishes = [...]struct{ member, method string }{
	{"promptsListChanged", notifyPromptsChanged},
	{"resourcesListChanged", notifyResourcesChanged},
	{"toolsListChanged", notifyToolsChanged},
}

func readWish(r *mcpwire.Request) (wish, error) {
	w := wish{flags: map[string]bool{}}
	wanted, ok := rawjson.Get(r.Params, "notifications")
	if !ok || rawjson.KindOf(wanted) != rawjson.KindObject {
		return w, mcpwire.Errorf(mcpwire.CodeInvalidParams, `%s: "notifications" must be an object`, r.Method)
	}
	for _, each := range wishes {
		flag, _ := rawjson.Get(wanted, each.member)
		w.flags[each.method] = string(flag) == "true"
	}
	list, _ := rawjson.Get(wanted, "resourceSubscriptions")
	for it := rawjson.Array(list); list != nil && it.Next(); {
		if uri, ok := rawjson.Unquote(it.Value()); ok && !slices.Contains(w.uris, uri) {
			w.uris = append(w.uris, uri)
		}
	}
	if len(w.uris) > maxWatched {
		return w, mcpwire.Errorf(mcpwire.CodeInvalidParams, "%s: more than %d resources", r.Method, maxWatched)
	}
	var err error
	w.tasks, err = readTaskIDs(r, wanted)
	return w, err
}

// acknowledged is the part of a wish that is granted, as it is told.
func (w *wish) acknowledged() json.RawMessage {
	granted := map[string]any{}
	for _, each := range wishes {
		if w.flags[each.method] {
			granted[each.member] = true
		}
	}
	if len(w.uris) > 0 {
		granted["resourceSubscriptions"] = w.uris
	}
	if len(w.tasks) > 0 {
		granted["taskIds"] = w.tasks
	}
	ack, _ := json.Marshal(map[string]any{"notifications": granted}) // always encodes
	return ack
}

func (w *wish) empty() bool {
	return len(w.uris)+len(w.tasks) == 0 && !slices.Contains(slices.Collect(maps.Values(w.flags)), true)
}

// listen answers subscriptions/listen: it acknowledges what it will tell, and
// tells it until the client or the server ends the subscription.
func (s *Server) listen(ctx context.Context, r *mcpwire.Request) (json.RawMessage, error) {
	w, err := readWish(r)
	if err != nil {
		return nil, err
	}
	who, _ := identity.From(ctx)
	l, remove := s.audience.add(who)
	defer remove()
	var shown [listCount]view.Shown
	for kind := range s.lists {
		shown[kind].Show(s.listFor(ctx, kind, s.lists[kind].stateless))
	}
	watched := s.watchAll(ctx, &w)
	defer watched.stop()
	begun := s.watchTasks(ctx, r, &w)
	defer begun.stop()
	if err := r.Notify(ctx, mcpwire.NotifySubscribed, w.acknowledged()); err != nil {
		return nil, err
	}
	if w.empty() {
		return nil, nil // there is nothing to tell
	}
	for {
		select {
		case <-l.wake:
			for _, method := range s.changed(ctx, r.Session, &shown) {
				if !w.flags[method] {
					continue
				}
				if err := r.Notify(ctx, method, nil); err != nil {
					return nil, err
				}
			}
		case <-watched.wake:
			for _, params := range watched.updates(s.seen(view.From(ctx, s.cat))) {
				if err := r.Notify(ctx, notifyResourceUpdated, params); err != nil {
					return nil, err
				}
			}
		case <-begun.wake:
			if err := s.tellTasks(ctx, r, begun.updates()); err != nil {
				return nil, err
			}
		case <-ctx.Done():
			return nil, nil
		}
	}
}
