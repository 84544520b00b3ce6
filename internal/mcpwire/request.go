package mcpwire

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// Request is a request or a notification of a client.
type Request struct {
	Method string
	// Params is what the client sent, nil if it sent none.
	Params json.RawMessage
	ID     ID
	// Notification says that no answer is expected.
	Notification bool
	Session      *Session
	// ProgressToken is the token to report progress with, as raw JSON; nil when
	// the client wants none.
	ProgressToken json.RawMessage
	// LogLevel is the level from which the client wants log messages about this
	// request, "" for none. It exists in the stateless era only.
	LogLevel string
	// HTTP is the request that carried this one, whose body has been read; nil
	// on a pipe.
	HTTP *http.Request

	// AsIs may be set by the handler to say that its result is one of the
	// stateless era already, with a resultType and the server's name in its
	// _meta, so that it is sent without a look into it.
	AsIs bool

	out outlet
}

// Notify sends a notification that belongs to this request, on its own stream.
// On a subscriptions/listen request the subscription id is put into its _meta.
func (r *Request) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if r.out == nil {
		return ErrUnsupported
	}
	if r.Method == MethodListen {
		stamped, err := r.subscriptionMeta(params)
		if err != nil {
			return err
		}
		params = stamped
	}
	return r.out.send(ctx, AppendRequest(nil, "", method, params))
}

func (r *Request) subscriptionMeta(v json.RawMessage) (json.RawMessage, error) {
	return editMeta(v, &metaEdit{set: []metaMember{{MetaSubscriptionID, json.RawMessage(r.ID)}}})
}

// Progress sends a notifications/progress with these params, whose
// progressToken is set to the client's. It does nothing when the client gave
// none.
func (r *Request) Progress(ctx context.Context, params json.RawMessage) error {
	if r.ProgressToken == nil {
		return nil
	}
	params, err := rawjson.Set(objectOr(params), metaProgressToken, r.ProgressToken)
	if err != nil {
		return err
	}
	return r.Notify(ctx, NotifyProgress, params)
}

// Call sends a request to the client on this request's own stream and returns
// its result; see [Session.Call] for the errors.
func (r *Request) Call(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if r.out == nil {
		return nil, &CallError{Method: method, Delivery: NotDelivered, Err: ErrUnsupported}
	}
	return r.Session.callOn(ctx, r.out, method, params)
}

// removedMethods are those that the stateless era no longer has.
var removedMethods = map[string]bool{
	MethodInitialize: true, MethodPing: true, "logging/setLevel": true,
	"resources/subscribe": true, "resources/unsubscribe": true,
}

// dispatch answers a request that has passed the checks of its era.
func (s *Server) dispatch(ctx context.Context, r *Request) (result json.RawMessage, err error) {
	defer recovered(s.opts.Logger, r.Method, &err)
	if r.Session.Era() == EraStateful {
		return s.dispatchStateful(ctx, r)
	}
	if removedMethods[r.Method] {
		return nil, Errorf(CodeMethodNotFound, "method not found: %s does not exist in revision %s", r.Method, r.Session.version)
	}
	result, err = s.dispatchStateless(ctx, r)
	if err != nil {
		return nil, err
	}
	if r.AsIs {
		return result, nil
	}
	return completeResult(result, s.opts.Info), nil
}

func (s *Server) dispatchStateful(ctx context.Context, r *Request) (json.RawMessage, error) {
	if r.Method == MethodPing {
		return nil, nil
	}
	return s.handler.ServeMCP(ctx, r)
}

func (s *Server) dispatchStateless(ctx context.Context, r *Request) (json.RawMessage, error) {
	switch r.Method {
	case MethodDiscover:
		d, err := s.handler.Describe(ctx, r.Session)
		if err != nil {
			return nil, err
		}
		return s.discoverResult(d), nil
	case MethodListen:
		ctx, cancel := s.untilDrain(ctx)
		defer cancel()
		result, err := s.handler.ServeMCP(ctx, r)
		if err != nil {
			return nil, err
		}
		return r.subscriptionMeta(result)
	}
	return s.handler.ServeMCP(ctx, r)
}

// untilDrain returns a context that also ends when the server shuts down, for
// requests that otherwise have no end.
func (s *Server) untilDrain(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.gate.open, cancel)
	return ctx, func() { stop(); cancel() }
}

// notified handles a notification of the stateful era.
func (s *Server) notified(ctx context.Context, r *Request) {
	var failed error
	defer recovered(s.opts.Logger, r.Method, &failed) // and nobody to tell
	switch r.Method {
	case NotifyInitialized:
		r.Session.receiveInitialized()
	case NotifyCancelled:
		r.Session.requests.cancelled(r.Params)
	default:
		if _, err := s.handler.ServeMCP(ctx, r); err != nil {
			s.opts.Logger.Debug("notification not handled", "method", r.Method, "error", err)
		}
	}
}

// newStatelessSession checks the _meta of a request and returns the session it
// describes. The errors are those that the revision asks for.
func (s *Server) newStatelessSession(meta *requestMeta) (*Session, error) {
	if err := checkSelf(meta.clientInfo, meta.capabilities); err != nil {
		return nil, err
	}
	switch {
	case !meta.versionSet:
		return nil, Errorf(CodeInvalidParams, "missing or invalid _meta member %q", MetaProtocolVersion)
	case rawjson.KindOf(meta.capabilities) != rawjson.KindObject:
		return nil, Errorf(CodeInvalidParams, "missing or invalid _meta member %q", MetaClientCapabilities)
	case meta.clientInfo != nil && rawjson.KindOf(meta.clientInfo) != rawjson.KindObject:
		return nil, Errorf(CodeInvalidParams, "invalid _meta member %q", MetaClientInfo)
	case !knownVersion(meta.version) || EraOf(meta.version) != EraStateless:
		return nil, unsupportedVersion(meta.version)
	}
	return &Session{
		server: s, version: meta.version,
		clientInfo: meta.clientInfo, capabilities: meta.capabilities,
	}, nil
}
