package httpbody_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/toolcrib/toolcrib/internal/httpbody"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// outcome is what a handler saw of a body.
type outcome struct {
	text string
	err  error
}

// reading serves requests whose bodies are read to their end.
func reading(t *testing.T, ctx context.Context, idle time.Duration) (*httptest.Server, <-chan outcome) {
	t.Helper()
	saw := make(chan outcome, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := httpbody.New(ctx, w, r, idle)
		defer body.Close()
		text, err := io.ReadAll(body)
		saw <- outcome{string(text), err}
		if err != nil {
			return
		}
		select { // the time limit of the body is none of the rest
		case <-r.Context().Done():
			t.Error("the request ended: ", r.Context().Err())
		case <-time.After(3 * idle):
		}
	}))
	t.Cleanup(srv.Close)
	return srv, saw
}

// half begins a request.
func half(t *testing.T, srv *httptest.Server) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nhalf")
	return conn
}

func TestWholeBody(t *testing.T) {
	srv, saw := reading(t, t.Context(), 50*time.Millisecond)
	resp, err := http.Post(srv.URL, "text/plain", strings.NewReader("whole"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if got := <-saw; got.text != "whole" || got.err != nil {
		t.Errorf("%+v", got)
	}
}

func TestBodyThatStops(t *testing.T) {
	srv, saw := reading(t, t.Context(), 50*time.Millisecond)
	half(t, srv)
	if got := <-saw; got.text != "half" || !errors.Is(got.err, os.ErrDeadlineExceeded) {
		t.Errorf("%+v", got)
	}
}

// A body of which a byte comes now and then would never pause for long enough.
func TestBodyThatTrickles(t *testing.T) {
	srv, saw := reading(t, t.Context(), 200*time.Millisecond)
	conn := half(t, srv)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 90 { // it would last for 900 ms
		select {
		case got := <-saw:
			if !strings.HasPrefix(got.text, "half") || len(got.text) < 8 || !errors.Is(got.err, os.ErrDeadlineExceeded) {
				t.Errorf("%+v", got)
			}
			return
		case <-tick.C:
			fmt.Fprint(conn, "x")
		}
	}
	t.Error("the body was still read")
}

func TestBodyThatIsGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	srv, saw := reading(t, ctx, time.Hour)
	half(t, srv)
	cancel()
	if got := <-saw; !errors.Is(got.err, httpbody.ErrGivenUp) {
		t.Errorf("%+v", got)
	}
}
