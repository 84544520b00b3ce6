package mcpwire

import (
	"errors"
	"net/http"

	"github.com/toolcrib/toolcrib/internal/httpbody"
)

// readBody reads the request body, or answers why it cannot be used. The body
// does not count as a request in progress: it is given up when the server
// shuts down, and when nothing more of it comes.
func (x *exchange) readBody() ([]byte, bool) {
	opts := &x.server.opts
	in := httpbody.New(x.server.gate.open, x.w, x.r, opts.BodyTimeout)
	defer in.Close()
	body, err := readSized(in, x.r.ContentLength, opts.MaxMessageBytes)
	if err == nil {
		in.Done()
		return body, true
	}
	x.w.Header().Set("Connection", "close")
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, httpbody.ErrGivenUp):
		x.refuseLate()
	case errors.Is(err, ErrTooLarge):
		writeError(x.w, http.StatusRequestEntityTooLarge, "", Errorf(CodeInvalidRequest, "message exceeds %d bytes", opts.MaxMessageBytes))
	case errors.As(err, &timeout) && timeout.Timeout():
		writeError(x.w, http.StatusRequestTimeout, "", Errorf(CodeParseError, "the request body came too slowly: something must come every %v, and %d bytes a second on the whole", opts.BodyTimeout, httpbody.Slowest))
	default:
		x.refuseMessage("", Errorf(CodeParseError, "the request body could not be read"))
	}
	return nil, false
}
