package mcpserver

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/view"
)

// maxWatched limits the resources that one client watches at once.
const maxWatched = 1000

// watched are the resources that one client wants to hear of. Updates gather
// until somebody takes them, one for each resource, so that a slow client costs
// no more than that. It is safe for concurrent use.
type watched struct {
	wake chan struct{} // holds one: there are updates

	mu    sync.Mutex
	stops map[string]func() // by URI
	// begun counts, by URI, who is subscribing: what is told meanwhile is kept.
	begun  map[string]int
	latest map[update]json.RawMessage // params
	ended  bool
}

// An update is told to whoever asked for a URI, of the same resource or of one
// below it.
type update struct{ asked, of string }

func newWatched() *watched {
	return &watched{wake: make(chan struct{}, 1), stops: map[string]func(){}, begun: map[string]int{}, latest: map[update]json.RawMessage{}}
}

// add watches a resource, unless it does already.
func (w *watched) add(ctx context.Context, uri string, c tools.Companion) error {
	w.mu.Lock()
	_, have := w.stops[uri]
	many := len(w.stops)+len(w.begun) >= maxWatched
	if !have && !many {
		w.begun[uri]++
	}
	w.mu.Unlock()
	switch {
	case have:
		return nil
	case many:
		return mcpwire.Errorf(mcpwire.CodeInvalidParams, "more than %d resources are watched", maxWatched)
	}
	stop, err := c.Subscribe(ctx, uri, func(params json.RawMessage) { w.updated(uri, params) })
	w.subscribed(uri, stop)
	return err
}

// subscribed ends what add began; stop is nil when it failed.
func (w *watched) subscribed(uri string, stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begun[uri]--; w.begun[uri] <= 0 {
		delete(w.begun, uri)
	}
	if stop == nil {
		return
	}
	if _, have := w.stops[uri]; have || w.ended {
		stop()
		return
	}
	w.stops[uri] = stop
	w.rouse() // for what was told meanwhile
}

// updated keeps an update. Of one that tells of more resources than can be
// watched, it is kept that the resource itself changed.
func (w *watched) updated(uri string, params json.RawMessage) {
	raw, _ := rawjson.Get(params, "uri")
	of, ok := rawjson.Unquote(raw)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, have := w.latest[update{uri, of}]; !have && len(w.latest) >= maxWatched {
		of, params = uri, uriArgument(uri)
	}
	w.latest[update{uri, of}] = params
	w.rouse()
}

func (w *watched) rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// updates takes what has gathered about resources that the caller still sees,
// each once. What was told while its subscription is under way stays.
func (w *watched) updates(sees func(uri string) bool) []json.RawMessage {
	w.mu.Lock()
	latest := map[update]json.RawMessage{}
	for u, params := range w.latest {
		switch {
		case w.stops[u.asked] != nil:
			latest[u] = params
		case w.begun[u.asked] > 0:
			continue
		}
		delete(w.latest, u)
	}
	w.mu.Unlock()
	var out []json.RawMessage
	told := map[string]bool{}
	for u, params := range latest {
		if !told[u.of] && sees(u.asked) && sees(u.of) {
			told[u.of] = true
			out = append(out, params)
		}
	}
	return out
}

func (w *watched) remove(uri string) {
	w.mu.Lock()
	stop := w.stops[uri]
	delete(w.stops, uri)
	w.mu.Unlock()
	if stop != nil {
		stop()
	}
}

func (w *watched) stop() {
	w.mu.Lock()
	w.ended = true
	stops := w.stops
	w.stops = map[string]func(){}
	w.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
}

// watchAll watches the resources of a wish and takes from it those that cannot
// be watched.
func (s *Server) watchAll(ctx context.Context, wanted *wish) *watched {
	w := newWatched()
	granted := wanted.uris[:0]
	for _, uri := range wanted.uris {
		if err := s.watch(ctx, w, uri); err != nil {
			s.logger.Debug("a resource is not watched", "error", err)
			continue
		}
		granted = append(granted, uri)
	}
	wanted.uris = granted
	return w
}

// seen returns the test of whether the caller of a view sees a resource.
func (s *Server) seen(v view.View) func(uri string) bool {
	x := s.index(v)
	return func(uri string) bool {
		_, _, ok := s.reads(x, uri)
		return ok
	}
}

// watch watches one resource that the caller sees.
func (s *Server) watch(ctx context.Context, w *watched, uri string) error {
	tool, _, ok := s.reads(s.index(view.From(ctx, s.cat)), uri)
	if !ok {
		return tools.ErrToolNotFound
	}
	companion := s.companion(tool)
	if companion == nil {
		return mcpwire.Errorf(mcpwire.CodeInvalidParams, "the source of the resource does not tell of changes")
	}
	return w.add(ctx, uri, companion)
}

// subscribe answers resources/subscribe.
func (s *Server) subscribe(ctx context.Context, r *mcpwire.Request) (json.RawMessage, error) {
	p, err := readURI(r)
	if err != nil {
		return nil, err
	}
	c := clientOf(r.Session)
	if c == nil {
		return nil, mcpwire.Errorf(mcpwire.CodeMethodNotFound, "method not found: %q", r.Method)
	}
	switch err := s.watch(ctx, s.watchedBy(r.Session, c), p.name); {
	case err == tools.ErrToolNotFound:
		return nil, resourceNotFound(r, p.name)
	case err != nil:
		return nil, nativeFailure(ctx, err)
	}
	return nil, nil
}

// unsubscribe answers resources/unsubscribe. What is not watched is let go of.
func (s *Server) unsubscribe(r *mcpwire.Request) (json.RawMessage, error) {
	p, err := readURI(r)
	if err != nil {
		return nil, err
	}
	if c := clientOf(r.Session); c != nil {
		c.mu.Lock()
		w := c.watched
		c.mu.Unlock()
		if w != nil {
			w.remove(p.name)
		}
	}
	return nil, nil
}

// watchedBy returns what a session watches. A goroutine tells it of updates
// until the session ends.
func (s *Server) watchedBy(sess *mcpwire.Session, c *client) *watched {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watched == nil {
		w := newWatched()
		c.watched = w
		s.audience.work.Go(func() { s.tellUpdates(sess, c, w) })
	}
	return c.watched
}

func (s *Server) tellUpdates(sess *mcpwire.Session, c *client, w *watched) {
	defer w.stop()
	for {
		select {
		case <-w.wake:
		case <-sess.Done():
			return
		}
		sees := s.seen(view.From(s.narrowed(c.as(context.Background())), s.cat))
		for _, params := range w.updates(sees) {
			ctx, cancel := context.WithTimeout(context.Background(), noticeTimeout)
			err := sess.Notify(ctx, notifyResourceUpdated, params)
			cancel()
			if err != nil {
				s.logger.Debug("an update of a resource was not told", "session", sess.ID(), "error", err)
			}
		}
	}
}
