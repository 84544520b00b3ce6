package mcpwire

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
)

// ServeHTTP serves the streamable HTTP transport of both eras.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if refusal := s.checkOrigin(r); refusal != nil {
		refuse(w, refusal)
		return
	}
	ctx, principal, err := s.opts.Authenticate(r)
	if err != nil {
		refuse(w, asRefusal(err))
		return
	}
	x := &exchange{server: s, w: w, r: r, ctx: ctx, principal: principal}
	stateless := EraOf(r.Header.Get(HeaderVersion)) == EraStateless
	switch {
	case r.Method == http.MethodPost:
		x.post()
	case r.Method == http.MethodGet && !stateless:
		x.admitted(x.get)
	case r.Method == http.MethodDelete && !stateless:
		x.admitted(x.delete)
	default:
		allow := "GET, POST, DELETE"
		if stateless {
			allow = "POST"
		}
		w.Header().Set("Allow", allow)
		refuse(w, &Refusal{Status: http.StatusMethodNotAllowed, Message: "method not allowed"})
	}
}

// An exchange is one HTTP request and what is known of its sender.
type exchange struct {
	server    *Server
	w         http.ResponseWriter
	r         *http.Request
	ctx       context.Context
	principal string
}

// admitted serves the request, whose body has been read, unless the server is
// shutting down.
func (x *exchange) admitted(serve func()) {
	if !x.server.gate.enter() {
		x.refuseLate()
		return
	}
	defer x.server.gate.leave()
	serve()
}

func (x *exchange) refuseLate() {
	x.w.Header().Set("Retry-After", "1")
	writeError(x.w, http.StatusServiceUnavailable, "", Errorf(CodeInternalError, "the server is shutting down"))
}

func asRefusal(err error) *Refusal {
	var refusal *Refusal
	if errors.As(err, &refusal) {
		return refusal
	}
	return &Refusal{Status: http.StatusUnauthorized, Message: "unauthorized"}
}

// refuse answers outside of JSON-RPC.
func refuse(w http.ResponseWriter, refusal *Refusal) {
	for k, v := range refusal.Header {
		w.Header()[http.CanonicalHeaderKey(k)] = v
	}
	http.Error(w, refusal.Message, refusal.Status)
}

// writeError answers with a JSON-RPC error under an HTTP status.
func writeError(w http.ResponseWriter, status int, id ID, e *Error) {
	writeJSON(w, status, AppendErrorAnswer(nil, id, e))
}

func writeJSON(w http.ResponseWriter, status int, body ...[]byte) {
	n := 0
	for _, b := range body {
		n += len(b)
	}
	h := w.Header()
	h["Content-Type"] = []string{contentJSON}
	h["Content-Length"] = []string{strconv.Itoa(n)}
	w.WriteHeader(status)
	for _, b := range body {
		if _, err := w.Write(b); err != nil {
			return
		}
	}
}

// refuseMessage answers a message that is not accepted with 400.
func (x *exchange) refuseMessage(id ID, err error) {
	writeError(x.w, http.StatusBadRequest, id, asError(err))
}

// session returns the session that the request names, or nil when it has been
// answered that there is none.
func (x *exchange) session() *Session {
	id := x.r.Header.Get(HeaderSession)
	if id == "" {
		x.refuseMessage("", Errorf(CodeInvalidRequest, "bad request: the %s header is missing; send initialize first", HeaderSession))
		return nil
	}
	sess := x.server.findSession(id, x.principal)
	if sess == nil {
		writeError(x.w, http.StatusNotFound, "", Errorf(CodeInvalidRequest, "session not found"))
	}
	return sess
}

// knownVersion reports whether the version header, if there is one, names a
// revision that is spoken, and answers the request otherwise.
func (x *exchange) knownVersion() bool {
	v := x.r.Header.Get(HeaderVersion)
	if v == "" || knownVersion(v) {
		return true
	}
	x.refuseMessage("", unsupportedVersion(v))
	return false
}

func (x *exchange) delete() {
	if sess := x.session(); sess != nil {
		sess.Close()
		x.w.WriteHeader(http.StatusNoContent)
	}
}

// accepts reports which of the two answers the client takes.
func accepts(h http.Header) (json, stream bool) {
	values := h["Accept"]
	if len(values) == 0 {
		return true, true
	}
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			media, _, _ := strings.Cut(part, ";")
			switch strings.ToLower(strings.TrimSpace(media)) {
			case contentJSON, "application/*":
				json = true
			case contentSSE, "text/*":
				stream = true
			case "*/*":
				return true, true
			}
		}
	}
	return json, stream
}
