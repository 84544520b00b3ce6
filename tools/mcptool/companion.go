package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

const (
	methodComplete    = "completion/complete"
	methodSubscribe   = "resources/subscribe"
	methodUnsubscribe = "resources/unsubscribe"

	// companionWait bounds what is asked around a call.
	companionWait = 30 * time.Second
)

var _ tools.Companion = (*Server)(nil)

// Complete implements [tools.Companion]. A server that does not say that it
// completes, and does not, suggests nothing. The error is a *[tools.Error].
func (s *Server) Complete(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, companionWait)
	defer cancel()
	raw, err := s.complete(ctx, params)
	if err != nil {
		return nil, s.failure(ctx, "", "completing an argument", err)
	}
	return raw, nil
}

func (s *Server) complete(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	conn, err := s.shared.get(ctx, false)
	if err != nil {
		return nil, err
	}
	from := tools.EntranceFrom(ctx).Call()
	opts := &mcpwire.CallOptions{}
	switch {
	case conn.era == mcpwire.EraStateful:
		params = withoutMeta(params, mcpwire.MetaLogLevel)
		s.listenCloser(ctx, conn, from.LogLevel)
	case conn.logs && from.LogLevel != "":
		opts.Meta = fmt.Appendf(nil, `{%q:%q}`, mcpwire.MetaLogLevel, from.LogLevel)
	}
	s.relayNotes(ctx, opts, s.lanes.shared, from)
	raw, err := conn.call(ctx, methodComplete, params, opts)
	if errors.Is(err, &RPCError{Code: mcpwire.CodeMethodNotFound}) && !declares(conn.client.Server(), "completions") {
		return noCompletion, nil
	}
	return raw, err
}

var noCompletion = json.RawMessage(`{"completion":{"values":[],"total":0,"hasMore":false}}`)

// subscriptions are who wants to hear of which resource. The server is asked
// once for each resource, on the shared connection.
type subscriptions struct {
	// asking is held while the server is told of a change, so that what it was
	// told last is what holds.
	asking sync.Mutex

	mu    sync.Mutex
	byURI map[string]*watch
}

// A watch is the subscription to one resource.
type watch struct {
	normal      string // form of the URI
	subscribers map[*subscriber]bool
	stop        context.CancelFunc // of the stateless era's subscription; may be nil
}

type subscriber struct{ updated func(json.RawMessage) }

// add reports whether it is the first of the URI.
func (t *subscriptions) add(uri string, s *subscriber) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byURI == nil {
		t.byURI = map[string]*watch{}
	}
	first := t.byURI[uri] == nil
	if first {
		t.byURI[uri] = &watch{normal: mcpwire.NormalURI(uri), subscribers: map[*subscriber]bool{}}
	}
	t.byURI[uri].subscribers[s] = true
	return first
}

// remove reports whether it was the last of the URI.
func (t *subscriptions) remove(uri string, s *subscriber) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.byURI[uri]
	if w == nil || !w.subscribers[s] {
		return false
	}
	delete(w.subscribers, s)
	if len(w.subscribers) > 0 {
		return false
	}
	delete(t.byURI, uri)
	if w.stop != nil {
		w.stop()
	}
	return true
}

// stopBy keeps what ends the stateless era's subscription to a URI.
func (t *subscriptions) stopBy(uri string, stop context.CancelFunc) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.byURI[uri]; w != nil {
		w.stop = stop
	} else {
		stop()
	}
}

func (t *subscriptions) uris() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.byURI))
}

// tell passes an update on to whoever subscribed to the resource, or to one
// that it is a part of.
func (t *subscriptions) tell(params json.RawMessage) {
	params = withoutMeta(params, mcpwire.MetaSubscriptionID) // that of our own subscription
	uri := mcpwire.NormalURI(uriOf(params))
	var tell []*subscriber
	t.mu.Lock()
	for _, w := range t.byURI {
		if uri == w.normal || isPartOf(uri, w.normal) {
			tell = slices.AppendSeq(tell, maps.Keys(w.subscribers))
		}
	}
	t.mu.Unlock()
	for _, s := range tell {
		s.updated(params)
	}
}

// isPartOf reports whether a URI is below another, both in their normal form. A
// scheme alone, or the root of one, has no parts.
func isPartOf(uri, whole string) bool {
	_, place, _ := strings.Cut(whole, ":")
	return strings.Trim(place, "/") != "" && strings.HasPrefix(uri, strings.TrimSuffix(whole, "/")+"/")
}

// withoutMeta takes a member out of the _meta of params, and _meta when nothing
// is left.
func withoutMeta(params json.RawMessage, key string) json.RawMessage {
	meta, ok := rawjson.Get(params, "_meta")
	if !ok {
		return params
	}
	if _, ok = rawjson.Get(meta, key); !ok {
		return params
	}
	meta, err := rawjson.Delete(meta, key)
	if err != nil {
		return params
	}
	if len(rawjson.Trim(meta)) <= len("{}") {
		params, err = rawjson.Delete(params, "_meta")
	} else {
		params, err = rawjson.Set(params, "_meta", meta)
	}
	if err != nil {
		return json.RawMessage("{}")
	}
	return params
}

// Subscribe implements [tools.Companion]. A subscription outlives the
// connection: it is renewed with the next one. The error is a *[tools.Error].
func (s *Server) Subscribe(ctx context.Context, uri string, updated func(params json.RawMessage)) (stop func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, companionWait)
	defer cancel()
	who := &subscriber{updated: updated}
	s.subscribed.asking.Lock()
	defer s.subscribed.asking.Unlock()
	if s.subscribed.add(uri, who) {
		conn, err := s.shared.get(ctx, false)
		if err == nil {
			err = s.subscribe(ctx, conn, uri)
		}
		if err != nil {
			s.subscribed.remove(uri, who)
			return nil, s.failure(ctx, "", "subscribing to a resource", err)
		}
	}
	var once sync.Once
	return func() { once.Do(func() { s.unsubscribe(uri, who) }) }, nil
}

// subscribe asks the server to tell of changes of one resource.
func (s *Server) subscribe(ctx context.Context, conn *connection, uri string) error {
	if v, _ := rawjson.Get(conn.client.Server().Capabilities, "resources", "subscribe"); string(v) != "true" {
		return mcpwire.Errorf(mcpwire.CodeMethodNotFound, "the server does not tell of changes of its resources")
	}
	if conn.era == mcpwire.EraStateful {
		_, err := conn.call(ctx, methodSubscribe, uriParams(uri), nil)
		return err
	}
	select {
	case err := <-s.listenFor(conn, uri):
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// listenFor opens the stateless era's subscription to one resource. The channel
// gives nil once it holds, or why it never will.
func (s *Server) listenFor(conn *connection, uri string) <-chan error {
	ctx, stop := context.WithCancel(conn.ctx)
	s.subscribed.stopBy(uri, stop)
	result := make(chan error, 1)
	params := append(rawjson.AppendQuoted([]byte(`{"notifications":{"resourceSubscriptions":[`), uri), `]}}`...)
	s.shared.spawn(func() {
		defer stop()
		err := s.listen(ctx, conn, params, func(again bool) {
			if again {
				s.subscribed.tell(uriParams(uri))
			}
			offer(result, nil)
		})
		offer(result, err)
	})
	return result
}

func offer(c chan<- error, err error) {
	select {
	case c <- err:
	default:
	}
}

func uriParams(uri string) json.RawMessage {
	return append(rawjson.AppendQuoted([]byte(`{"uri":`), uri), '}')
}

// unsubscribe does not wait for the server, which may be gone.
func (s *Server) unsubscribe(uri string, who *subscriber) {
	s.shared.spawn(func() {
		s.subscribed.asking.Lock()
		defer s.subscribed.asking.Unlock()
		if !s.subscribed.remove(uri, who) {
			return
		}
		conn := s.shared.state().conn
		if conn == nil || conn.era == mcpwire.EraStateless {
			return
		}
		ctx, cancel := context.WithTimeout(conn.ctx, companionWait)
		defer cancel()
		if _, err := conn.call(ctx, methodUnsubscribe, uriParams(uri), nil); err != nil {
			s.log.Debug("the server was not told that a resource is no longer watched", "error", s.secrets.clean(err.Error()))
		}
	})
}

// resubscribe asks a new connection for what was asked of the one before, and
// tells that each resource may have changed meanwhile.
func (s *Server) resubscribe(conn *connection) {
	s.subscribed.asking.Lock()
	defer s.subscribed.asking.Unlock()
	for _, uri := range s.subscribed.uris() {
		ctx, cancel := context.WithTimeout(conn.ctx, companionWait)
		err := s.subscribe(ctx, conn, uri)
		cancel()
		if err != nil {
			s.log.Warn("a resource is no longer watched", "error", s.secrets.clean(err.Error()))
			continue
		}
		s.subscribed.tell(uriParams(uri))
	}
}
