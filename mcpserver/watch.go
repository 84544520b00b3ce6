package mcpserver

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
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

	mu     sync.Mutex
	stops  map[string]func()          // by URI
	latest map[string]json.RawMessage // params, by the URI that was asked for
	ended  bool
}

func newWatched() *watched {
	return &watched{wake: make(chan struct{}, 1), stops: map[string]func(){}, latest: map[string]json.RawMessage{}}
}

// add watches a resource, unless it does already.
func (w *watched) add(ctx context.Context, uri string, c tools.Companion) error {
	w.mu.Lock()
	_, have := w.stops[uri]
	many := len(w.stops) >= maxWatched
	w.mu.Unlock()
	switch {
	case have:
		return nil
	case many:
		return mcpwire.Errorf(mcpwire.CodeInvalidParams, "more than %d resources are watched", maxWatched)
	}
	stop, err := c.Subscribe(ctx, uri, func(params json.RawMessage) { w.updated(uri, params) })
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, have := w.stops[uri]; have || w.ended {
		stop()
		return nil
	}
	w.stops[uri] = stop
	return nil
}

func (w *watched) updated(uri string, params json.RawMessage) {
	w.mu.Lock()
	w.latest[uri] = params
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// updates takes what has gathered about resources that the caller still sees.
func (w *watched) updates(x *index) []json.RawMessage {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []json.RawMessage
	for uri, params := range w.latest {
		if _, _, ok := x.reads(uri); ok && w.stops[uri] != nil {
			out = append(out, params)
		}
	}
	clear(w.latest)
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

// watch watches one resource that the caller sees.
func (s *Server) watch(ctx context.Context, w *watched, uri string) error {
	tool, _, ok := s.index(view.From(ctx, s.cat)).reads(uri)
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
		for _, params := range w.updates(s.index(c.view(s.cat))) {
			ctx, cancel := context.WithTimeout(context.Background(), noticeTimeout)
			err := sess.Notify(ctx, notifyResourceUpdated, params)
			cancel()
			if err != nil {
				s.logger.Debug("an update of a resource was not told", "session", sess.ID(), "error", err)
			}
		}
	}
}
