package mcpwire

import (
	"net/http"
)

// postStateless serves a message of the stateless era.
func (x *exchange) postStateless(f Frame, meta *requestMeta) {
	if f.Kind == KindResult || f.Kind == KindError {
		x.refuseMessage("", Errorf(CodeInvalidRequest, "invalid request: a server of revision %s asks nothing that could be answered", LatestStateless))
		return
	}
	if err := x.checkHeaders(f, meta); err != nil {
		x.refuseMessage(f.ID, err)
		return
	}
	if f.Kind == KindNotification {
		x.w.WriteHeader(http.StatusAccepted)
		return
	}
	sess, err := x.server.newStatelessSession(meta)
	if err != nil {
		x.refuseMessage(f.ID, err)
		return
	}
	sess.principal = x.principal
	p := &postStream{server: x.server, w: x.w}
	if f.Method == MethodListen {
		defer p.stayAlive(x.server.opts.KeepAlive)()
	}
	var a *answer
	defer func() { p.finishEnded(&f, a) }()
	result, err := x.server.dispatch(x.ctx, &Request{
		Method: f.Method, Params: f.Params, ID: f.ID, Session: sess,
		ProgressToken: meta.progressToken, LogLevel: meta.logLevel, HTTP: x.r, out: p,
	})
	status := http.StatusOK
	if err != nil {
		status = statusOf(asError(err))
	}
	a = newAnswer(f.ID, result, err)
	p.finish(status, a)
}

// checkHeaders compares the headers that repeat parts of the message with it.
func (x *exchange) checkHeaders(f Frame, meta *requestMeta) error {
	version := x.r.Header.Get(HeaderVersion)
	switch {
	case version == "":
		return Errorf(CodeHeaderMismatch, "header mismatch: the %s header is missing", HeaderVersion)
	case !meta.versionSet && !knownVersion(version):
		return unsupportedVersion(version)
	case f.Kind == KindRequest && !meta.versionSet:
		return Errorf(CodeInvalidParams, "missing or invalid _meta member %q", MetaProtocolVersion)
	case meta.versionSet && version != meta.version:
		return Errorf(CodeHeaderMismatch, "header mismatch: the %s header does not match %q in _meta", HeaderVersion, MetaProtocolVersion)
	case !knownVersion(version):
		return unsupportedVersion(version)
	}
	return x.checkRouting(f)
}

// checkRouting checks the headers that let a proxy route without reading the
// body.
func (x *exchange) checkRouting(f Frame) error {
	if err := x.sameHeader(HeaderMethod, f.Method); err != nil {
		return err
	}
	switch f.Method {
	case "tools/call", "prompts/get", "resources/read", "tasks/get", "tasks/update", "tasks/cancel":
		return x.sameHeader(HeaderName, routedName(f.Method, f.Params))
	}
	return nil
}

func (x *exchange) sameHeader(name, want string) error {
	values := x.r.Header[name]
	if len(values) == 0 {
		return Errorf(CodeHeaderMismatch, "header mismatch: the %s header is missing", name)
	}
	got, ok := decodeHeader(values[0])
	if values[0] != want && (!ok || got != want) {
		return Errorf(CodeHeaderMismatch, "header mismatch: the %s header does not match the message", name)
	}
	return nil
}

// statusOf is the HTTP status that goes with an error in the stateless era.
func statusOf(e *Error) int {
	switch e.Code {
	case CodeMethodNotFound:
		return http.StatusNotFound
	case CodeInvalidParams, CodeInvalidRequest, CodeHeaderMismatch, CodeUnsupportedVersion, CodeMissingCapability:
		return http.StatusBadRequest
	}
	return http.StatusOK
}
