package sources

import (
	"net"
	"net/http"
	"testing"
)

// A place is an address at which a server is started, stopped, and started again. Each incarnation has forgotten
// the one before.
type place struct {
	addr   string
	create func() (handler http.Handler, end func())
	server *http.Server
	end    func()
	done   chan struct{}
}

// newPlace starts a server whose handlers create makes.
func newPlace(t *testing.T, create func() (http.Handler, func())) *place {
	t.Helper()
	p := &place{addr: "127.0.0.1:0", create: create}
	p.start(t)
	t.Cleanup(p.stop)
	return p
}

func (p *place) url() string { return "http://" + p.addr }

func (p *place) start(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	p.addr = listener.Addr().String()
	handler, end := p.create()
	p.server, p.end, p.done = &http.Server{Handler: handler}, end, make(chan struct{})
	server, done := p.server, p.done
	go func() {
		defer close(done)
		_ = server.Serve(listener) // until it is closed
	}()
}

func (p *place) stop() {
	_ = p.server.Close()
	p.end()
	<-p.done
}
