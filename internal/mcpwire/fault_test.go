package mcpwire_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// wire is a hand-played peer on a pipe.
type wire struct {
	t   testing.TB
	in  *bufio.Reader
	out io.WriteCloser
}

// newWire returns a transport and the peer at its other end.
func newWire(t testing.TB) (*mcpwire.StreamTransport, *wire) {
	toPeer, fromClient := io.Pipe()
	toClient, fromPeer := io.Pipe()
	t.Cleanup(func() { fromPeer.Close(); toPeer.Close() })
	return &mcpwire.StreamTransport{Reader: toClient, Writer: fromClient}, &wire{t, bufio.NewReader(toPeer), fromPeer}
}

func (w *wire) read() mcpwire.Frame {
	line, err := w.in.ReadBytes('\n')
	if err != nil {
		w.t.Errorf("peer reads: %v", err)
		return mcpwire.Frame{}
	}
	f, err := mcpwire.ScanFrame(line)
	if err != nil {
		w.t.Errorf("peer got %s: %v", line, err)
	}
	return f
}

func (w *wire) write(format string, args ...any) {
	if _, err := fmt.Fprintf(w.out, format+"\n", args...); err != nil {
		w.t.Errorf("peer writes: %v", err)
	}
}

func (w *wire) initialize() {
	f := w.read()
	w.write(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}`, f.ID)
	w.read() // initialized
}

// connectWire connects to a hand-played peer in the stateful era.
func connectWire(t testing.TB, opts mcpwire.ClientOptions) (*mcpwire.Client, *wire) {
	tr, peer := newWire(t)
	opts.Version = mcpwire.Version20250618
	ready := make(chan struct{})
	go func() { defer close(ready); peer.initialize() }()
	c := connect(t, tr, &opts)
	<-ready
	return c, peer
}

type outcome struct {
	result json.RawMessage
	err    error
}

func callAsync(ctx context.Context, c *mcpwire.Client, method string, opts *mcpwire.CallOptions) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		result, err := c.Call(ctx, method, nil, opts)
		done <- outcome{result, err}
	}()
	return done
}

func TestPeerEndsMidMessage(t *testing.T) {
	c, peer := connectWire(t, mcpwire.ClientOptions{})
	done := callAsync(t.Context(), c, "x", nil)
	f := peer.read()
	fmt.Fprintf(peer.out, `{"jsonrpc":"2.0","id":%s,"resu`, f.ID)
	peer.out.Close()
	got := <-done
	if !errors.Is(got.err, mcpwire.ErrClosed) || mcpwire.DeliveryOf(got.err) != mcpwire.MaybeDelivered {
		t.Errorf("got %v", got.err)
	}
	<-c.Done()
	_, err := c.Call(t.Context(), "y", nil, nil)
	if !errors.Is(err, mcpwire.ErrClosed) || mcpwire.DeliveryOf(err) != mcpwire.NotDelivered {
		t.Errorf("after the end: %v", err)
	}
	if c.Stats().Noise != 1 {
		t.Errorf("stats %+v", c.Stats())
	}
}

func TestAnswersOutOfOrderAndTwice(t *testing.T) {
	c, peer := connectWire(t, mcpwire.ClientOptions{})
	first := callAsync(t.Context(), c, "a", nil)
	fa := peer.read()
	second := callAsync(t.Context(), c, "b", nil)
	fb := peer.read()
	peer.write(`{"jsonrpc":"2.0","id":%s,"result":{"m":"b","n":9007199254740993}}`, fb.ID)
	if got := <-second; string(got.result) != `{"m":"b","n":9007199254740993}` {
		t.Errorf("b: %s %v", got.result, got.err)
	}
	peer.write(`{"jsonrpc":"2.0","id":%s,"result":{}}`, fb.ID)
	peer.write(`{"jsonrpc":"2.0","id":99,"result":{}}`)
	peer.write(`{"jsonrpc":"2.0","id":"%s","error":{"code":-1,"message":"m","data":{"x":1},"more":[2]}}`, fa.ID)
	got := <-first
	var je *mcpwire.Error
	if !errors.As(got.err, &je) || string(je.Data) != `{"x":1}` || mcpwire.DeliveryOf(got.err) != mcpwire.Answered {
		t.Errorf("a: %v", got.err)
	}
	if relayed := mcpwire.AppendErrorAnswer(nil, "1", je); !strings.Contains(string(relayed), `"more":[2]`) {
		t.Errorf("relayed as %s", relayed)
	}
	if n := c.Stats().UnknownAnswers; n != 2 {
		t.Errorf("%d unknown answers", n)
	}
}

func TestProgressGoesToItsOwner(t *testing.T) {
	notes := make(chan string, 4)
	c, peer := connectWire(t, mcpwire.ClientOptions{OnNotification: func(m string, _ json.RawMessage) { notes <- m }})
	var a, b []string
	first := callAsync(t.Context(), c, "a", &mcpwire.CallOptions{Progress: func(p json.RawMessage) { a = append(a, string(p)) }})
	fa := peer.read()
	second := callAsync(t.Context(), c, "b", &mcpwire.CallOptions{Progress: func(p json.RawMessage) { b = append(b, string(p)) }})
	fb := peer.read()
	token, _ := rawjson.Get(fb.Params, "_meta", "progressToken")
	for i := range 3 {
		peer.write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, token, i)
	}
	peer.write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":777,"progress":1}}`)
	peer.write(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	peer.write(`{"jsonrpc":"2.0","id":%s,"result":{}}`, fb.ID)
	peer.write(`{"jsonrpc":"2.0","id":%s,"result":{}}`, fa.ID)
	<-first
	<-second
	if len(a) != 0 || len(b) != 3 || !strings.Contains(b[2], `"progress":2`) {
		t.Errorf("a %v, b %v", a, b)
	}
	if m := <-notes; m != "notifications/tools/list_changed" {
		t.Errorf("notification %s", m)
	}
}

func TestCancelTellsTheServer(t *testing.T) {
	c, peer := connectWire(t, mcpwire.ClientOptions{})
	ctx, cancel := context.WithCancelCause(t.Context())
	done := callAsync(ctx, c, "slow", nil)
	f := peer.read()
	cancel(errors.New("changed my mind"))
	if got := <-done; !errors.Is(got.err, context.Canceled) || mcpwire.DeliveryOf(got.err) != mcpwire.MaybeDelivered {
		t.Errorf("got %v", got.err)
	}
	note := peer.read()
	want := fmt.Sprintf(`{"requestId":%s,"reason":"changed my mind"}`, f.ID)
	if note.Method != mcpwire.NotifyCancelled || string(note.Params) != want {
		t.Errorf("got %s %s, want %s", note.Method, note.Params, want)
	}
}

func TestServerRequestIsCancelled(t *testing.T) {
	began := make(chan struct{})
	ended := make(chan error, 1)
	_, peer := connectWire(t, mcpwire.ClientOptions{OnRequest: func(ctx context.Context, r *mcpwire.ServerRequest) (json.RawMessage, error) {
		close(began)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, ctx.Err()
	}})
	peer.write(`{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{}}`)
	<-began
	peer.write(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\u0071"}}`)
	if err := <-ended; !errors.Is(err, &mcpwire.Error{Code: mcpwire.CodeRequestCancelled}) {
		t.Errorf("cause %v", err)
	}
	peer.write(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
	if f := peer.read(); f.ID != `"p"` || f.Kind != mcpwire.KindResult {
		t.Errorf("the cancelled request was answered: %+v", f)
	}
}

func TestOversizedAnswerFailsItsCall(t *testing.T) {
	c, peer := connectWire(t, mcpwire.ClientOptions{MaxMessageBytes: 1000})
	done := callAsync(t.Context(), c, "x", nil)
	f := peer.read()
	peer.write(`{"result":{"id":77,"t":"%s\"}"},"jsonrpc":"2.0","id":%s}`, strings.Repeat("y", 100_000), f.ID)
	if got := <-done; !errors.Is(got.err, mcpwire.ErrTooLarge) {
		t.Errorf("got %v", got.err)
	}
	done = callAsync(t.Context(), c, "y", nil)
	peer.write(`{"jsonrpc":"2.0","id":%s,"result":{"ok":1}}`, peer.read().ID)
	if got := <-done; string(got.result) != `{"ok":1}` {
		t.Errorf("the connection did not survive: %v", got.err)
	}
}

// stuckWriter takes nothing until it is closed.
type stuckWriter struct{ closed chan struct{} }

func (w *stuckWriter) Write([]byte) (int, error) { <-w.closed; return 0, io.ErrClosedPipe }
func (w *stuckWriter) Close() error              { close(w.closed); return nil }

func TestPeerThatDoesNotRead(t *testing.T) {
	r, pw := io.Pipe()
	t.Cleanup(func() { pw.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := mcpwire.Connect(ctx, &mcpwire.StreamTransport{Reader: r, Writer: &stuckWriter{make(chan struct{})}},
		&mcpwire.ClientOptions{Version: mcpwire.Version20250618})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestBigResultSurvives(t *testing.T) {
	call := func(t *testing.T, c *mcpwire.Client) {
		result, err := c.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"big"}`), nil)
		if err != nil || len(result) < 50<<20 {
			t.Fatalf("%d bytes, %v", len(result), err)
		}
		if strings.Count(string(result), "x") < 50<<20 {
			t.Error("bytes were lost")
		}
	}
	t.Run("stdio", func(t *testing.T) { call(t, connect(t, child(t, "server"), nil)) })
	for _, version := range []string{mcpwire.LatestStateful, mcpwire.LatestStateless} {
		t.Run("http/"+version, func(t *testing.T) {
			_, url, rt := serveWire(t, echo{}, nil)
			call(t, connect(t, &mcpwire.HTTPTransport{URL: url, RoundTripper: rt}, &mcpwire.ClientOptions{Version: version}))
		})
	}
}

func TestHTTPFaults(t *testing.T) {
	var down atomic.Pointer[http.HandlerFunc]
	s := mcpwire.NewServer(echo{}, nil)
	url, rt := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := down.Load(); h != nil {
			(*h)(w, r)
			return
		}
		if r.Method == http.MethodGet {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		s.ServeHTTP(w, r)
	}))
	tests := []struct {
		name     string
		handler  http.HandlerFunc
		delivery mcpwire.Delivery
		is       error
	}{
		{"busy", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(429)
		}, mcpwire.NotDelivered, nil},
		{"gateway", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502) }, mcpwire.MaybeDelivered, nil},
		{"no body", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(202) }, mcpwire.MaybeDelivered, mcpwire.ErrNoAnswer},
		{"not JSON", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"jsonrpc":"2.0",`)
		}, mcpwire.MaybeDelivered, mcpwire.ErrNoAnswer},
		{"stream ends", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\ndata: {\"json")
		}, mcpwire.MaybeDelivered, mcpwire.ErrNoAnswer},
		{"connection ends", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, mcpwire.MaybeDelivered, nil},
		{"elsewhere", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.2:1/", http.StatusTemporaryRedirect)
		}, mcpwire.NotDelivered, nil},
		{"session forgotten", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, mcpwire.NotDelivered, mcpwire.ErrSessionLost},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			down.Store(nil)
			c := connect(t, &mcpwire.HTTPTransport{URL: url, RoundTripper: rt}, &mcpwire.ClientOptions{Version: mcpwire.LatestStateful})
			down.Store(&tt.handler)
			_, err := c.Call(t.Context(), "tools/list", nil, nil)
			down.Store(nil)
			if err == nil || mcpwire.DeliveryOf(err) != tt.delivery || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("got %v (%v)", err, mcpwire.DeliveryOf(err))
			}
			var he *mcpwire.HTTPError
			if tt.name == "busy" && (!errors.As(err, &he) || he.RetryAfter != 7*time.Second) {
				t.Errorf("retry after: %v", err)
			}
			_, err = c.Call(t.Context(), "tools/list", nil, nil)
			if lost := errors.Is(tt.is, mcpwire.ErrSessionLost); lost != (err != nil) {
				t.Errorf("the next call: %v", err)
			}
		})
	}
}

func TestNothingListens(t *testing.T) {
	url, rt := serveHTTP(t, http.NotFoundHandler())
	_ = url
	_, err := mcpwire.Connect(t.Context(), &mcpwire.HTTPTransport{URL: "http://127.0.0.1:1/mcp", RoundTripper: rt}, nil)
	if err == nil || mcpwire.DeliveryOf(err) != mcpwire.NotDelivered {
		t.Errorf("got %v", err)
	}
}
