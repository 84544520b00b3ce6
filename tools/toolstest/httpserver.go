package toolstest

import (
	"net"
	"net/http"
	"testing"
)

// An HTTPServer is a server at one address of this machine that a test stops and
// starts again. Its methods are called by one goroutine at a time.
type HTTPServer struct {
	// URL is "http://", host and port.
	URL string

	addr   string
	create func() (handler http.Handler, end func())
	server *http.Server
	end    func()
	done   chan struct{}
}

// NewHTTPServer returns a server that was started, and that is stopped when the
// test ends. Each start calls create for a handler, and for what is done when that
// is stopped; end may be nil.
func NewHTTPServer(t testing.TB, create func() (handler http.Handler, end func())) *HTTPServer {
	t.Helper()
	s := &HTTPServer{addr: "127.0.0.1:0", create: create}
	s.Start(t)
	t.Cleanup(s.Stop)
	return s
}

// Start serves at the address where the server was before.
func (s *HTTPServer) Start(t testing.TB) {
	t.Helper()
	listener, err := net.Listen("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	s.addr = listener.Addr().String()
	s.URL = "http://" + s.addr
	handler, end := s.create()
	server, done := &http.Server{Handler: handler}, make(chan struct{})
	s.server, s.end, s.done = server, end, done
	go func() {
		defer close(done)
		_ = server.Serve(listener) // until it is closed
	}()
}

// Stop closes the address and every connection. A server that was stopped stays
// so.
func (s *HTTPServer) Stop() {
	_ = s.server.Close()
	if s.end != nil {
		s.end()
		s.end = nil
	}
	<-s.done
}
