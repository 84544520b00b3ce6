package mcptool

import (
	"context"
	"errors"
	"net/http"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
)

// reach opens a transport and performs the handshake. Where the configuration
// leaves open which transport the server at a URL has, streamable HTTP is tried
// first and HTTP+SSE where that is refused as the protocol's rules for
// compatibility say; what a server had last time is tried before either. l is
// the lane that the connection is for, nil for everybody.
func (s *Server) reach(ctx context.Context, l *lane, opts *mcpwire.ClientOptions) (*mcpwire.Client, error) {
	if !s.guesses || mcpwire.EraOf(opts.Version) == mcpwire.EraStateless {
		return mcpwire.Connect(ctx, s.named(s.transport(), l), opts)
	}
	if s.legacy.Load() {
		client, err := mcpwire.Connect(ctx, s.named(s.sseTransport(), l), opts)
		if err == nil || !otherTransport(err) {
			return client, err
		}
		s.legacy.Store(false)
	}
	client, err := mcpwire.Connect(ctx, s.named(s.transport(), l), opts)
	if err == nil || !otherTransport(err) {
		return client, err
	}
	client, sseErr := mcpwire.Connect(ctx, s.named(s.sseTransport(), l), opts)
	switch {
	case sseErr == nil:
		s.legacy.Store(true)
		return client, nil
	case otherTransport(sseErr):
		return nil, err // there is no MCP server; the first error says it better
	}
	return nil, sseErr
}

// otherTransport reports whether a handshake failed as it does on a server that
// is reached by another transport.
func otherTransport(err error) bool {
	var he *mcpwire.HTTPError
	if !errors.As(err, &he) {
		return errors.Is(err, mcpwire.ErrNoEndpoint)
	}
	switch he.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		return true
	}
	return false
}

func (s *Server) sseTransport() mcpwire.Transport {
	return &mcpwire.SSETransport{URL: s.cfg.URL, RoundTripper: s.http, Header: s.header()}
}

// header returns what the configuration adds to every HTTP request.
func (s *Server) header() http.Header {
	h := make(http.Header, len(s.cfg.Headers))
	for k, v := range s.cfg.Headers {
		h.Set(k, v)
	}
	return h
}
