package mcpwire_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
)

// post sends one message over HTTP and returns the status and the answer.
func post(t *testing.T, url string, rt http.RoundTripper, session, body string, header ...string) (int, string) {
	t.Helper()
	req := rawPost(t.Context(), t, url, session, body)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// overPipe sends lines to a server and returns what it wrote.
func overPipe(t *testing.T, h mcpwire.Handler, opts *mcpwire.ServerOptions, lines ...string) []string {
	t.Helper()
	var out bytes.Buffer
	in := strings.NewReader(strings.Join(lines, "\n") + "\n")
	if err := mcpwire.NewServer(h, opts).ServeStdio(t.Context(), in, &out); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

const beginPipe = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}`

func TestWhatAClientSaysOfItselfIsBounded(t *testing.T) {
	_, url, rt := serveWire(t, echo{}, nil)
	long := strings.Repeat("x", 64<<10)
	for member, params := range map[string]string{
		"clientInfo":   `"capabilities":{},"clientInfo":{"name":"` + long + `"}`,
		"capabilities": `"capabilities":{"x":"` + long + `"}`,
	} {
		_, answer := post(t, url, rt, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+params+`}}`)
		if !strings.Contains(answer, `"code":-32602`) || !strings.Contains(answer, member+" has ") {
			t.Errorf("%s in a handshake: %.200s", member, answer)
		}
		meta := strings.NewReplacer(`"capabilities"`, `"`+mcpwire.MetaClientCapabilities+`"`, `"clientInfo"`, `"`+mcpwire.MetaClientInfo+`"`).Replace(params)
		_, answer = post(t, url, rt, "", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"`+mcpwire.MetaProtocolVersion+`":"2026-07-28",`+meta+`}}}`,
			mcpwire.HeaderVersion, "2026-07-28", mcpwire.HeaderMethod, "tools/list")
		if !strings.Contains(answer, `"code":-32602`) || !strings.Contains(answer, member+" has ") {
			t.Errorf("%s of one request: %.200s", member, answer)
		}
	}
}

func TestOverlongLineIsAnsweredWithJSON(t *testing.T) {
	long := `,"method":"m","params":"` + strings.Repeat("x", 2000) + `"}`
	for id, want := range map[string]string{
		`7`: `7`, `"a"`: `"a"`, `nul`: `null`, `"\ud8"`: `null`, `null`: `null`, `tru`: `null`, `1e`: `null`, `{"a":1}`: `null`, `[7]`: `null`,
		`1,"id":2`: `null`, `"` + strings.Repeat("x", 300) + `"`: `null`,
	} {
		out := overPipe(t, echo{}, &mcpwire.ServerOptions{MaxMessageBytes: 1000}, `{"jsonrpc":"2.0","id":`+id+long)
		var answer struct {
			ID    json.RawMessage
			Error mcpwire.Error
		}
		if err := json.Unmarshal([]byte(out[0]), &answer); err != nil || string(answer.ID) != want || answer.Error.Code != mcpwire.CodeInvalidRequest {
			t.Errorf("id %.20s: %s (%v)", id, out[0], err)
		}
	}
}

func TestTheLargestLimit(t *testing.T) {
	opts := &mcpwire.ServerOptions{MaxMessageBytes: math.MaxInt64}
	if out := overPipe(t, echo{}, opts, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); out[0] != `{"jsonrpc":"2.0","id":1,"result":{}}` {
		t.Error(out)
	}
	_, url, rt := serveWire(t, echo{}, opts)
	req := rawPost(t.Context(), t, url, openSession(t, url, rt), "")
	req.Body, req.ContentLength = io.NopCloser(strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)), -1
	resp, err := rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Error(resp.Status)
	}
	c, err := mcpwire.Connect(t.Context(), &mcpwire.HTTPTransport{URL: url, RoundTripper: rt},
		&mcpwire.ClientOptions{MaxMessageBytes: math.MaxInt64})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestAmbiguousMessagesAreInvalidRequests(t *testing.T) {
	_, url, rt := serveWire(t, echo{}, nil)
	session := openSession(t, url, rt)
	const null, twice = `\"id\" must not be null`, `is there twice`
	for _, c := range []struct{ message, id, why string }{
		{`{"jsonrpc":"2.0","id":null,"method":"ping"}`, "null", null},
		{`{"jsonrpc":"2.0","id":null,"method":"notifications/cancelled"}`, "null", null},
		{`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, "null", twice},
		{`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}`, "1", twice},
		{`{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"p\u0061rams":{}}`, "1", twice},
		{`{"jsonrpc":"2.0","method":"notifications/x","method":"tools/list"}`, "null", twice},
	} {
		want := `{"jsonrpc":"2.0","id":` + c.id + `,"error":{"code":-32600,"message":"invalid request: `
		check := func(how, answer string) {
			t.Helper()
			if !strings.HasPrefix(answer, want) || !strings.Contains(answer, c.why) {
				t.Errorf("%s: %s: %s", how, c.message, answer)
			}
		}
		status, answer := post(t, url, rt, session, c.message)
		if status != http.StatusBadRequest {
			t.Errorf("%s: status %d", c.message, status)
		}
		check("HTTP", answer)
		check("pipe", overPipe(t, echo{}, nil, c.message)[0])
		check("batch", strings.TrimPrefix(overPipe(t, echo{}, nil, beginPipe, "["+c.message+"]")[1], "["))
	}
}

func TestUnknownVersionIsNamed(t *testing.T) {
	_, url, rt := serveWire(t, echo{}, nil)
	for _, message := range []string{`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","method":"notifications/x"}`} {
		status, answer := post(t, url, rt, "", message, mcpwire.HeaderVersion, "9999-01-01")
		if status != http.StatusBadRequest || !strings.Contains(answer, `"code":-32022`) || !strings.Contains(answer, `\"9999-01-01\"`) {
			t.Errorf("%s: %d %s", message, status, answer)
		}
	}
}

// panicky is a handler that panics at what it is asked to.
type panicky struct{ echo }

func (p panicky) Describe(ctx context.Context, s *mcpwire.Session) (*mcpwire.Description, error) {
	if bytes.Contains(s.ClientInfo(), []byte("panic")) {
		panic("the handler's secret")
	}
	return p.echo.Describe(ctx, s)
}

func (p panicky) ServeMCP(ctx context.Context, r *mcpwire.Request) (json.RawMessage, error) {
	if strings.HasPrefix(r.Method, "panic") {
		panic("the handler's secret")
	}
	return p.echo.ServeMCP(ctx, r)
}

func TestPanicIsAnInternalError(t *testing.T) {
	const want = `"error":{"code":-32603,"message":"internal error"}}`
	check := func(how, answer string) {
		t.Helper()
		if !strings.Contains(answer, want) {
			t.Errorf("%s: %s", how, answer)
		}
	}
	greeting := strings.Replace(beginPipe, `"2025-03-26"`, `"2025-03-26","clientInfo":{"name":"panic"}`, 1)
	const request, notification = `{"jsonrpc":"2.0","id":1,"method":"panic"}`, `{"jsonrpc":"2.0","method":"panic/n"}`

	check("pipe, handshake", overPipe(t, panicky{}, nil, greeting)[0])
	check("pipe", overPipe(t, panicky{}, nil, beginPipe, notification, request)[1])
	check("pipe, batch", strings.TrimSuffix(overPipe(t, panicky{}, nil, beginPipe, `[`+request+`]`)[1], "]"))

	_, url, rt := serveWire(t, panicky{}, nil)
	_, answer := post(t, url, rt, "", greeting)
	check("HTTP, handshake", answer)
	session := openSession(t, url, rt)
	if status, _ := post(t, url, rt, session, notification); status != http.StatusAccepted {
		t.Error("a notification:", status)
	}
	_, answer = post(t, url, rt, session, request)
	check("HTTP", answer)
	_, answer = post(t, url, rt, "", `{"jsonrpc":"2.0","id":1,"method":"panic","params":{"_meta":{"`+mcpwire.MetaProtocolVersion+`":"2026-07-28","`+
		mcpwire.MetaClientCapabilities+`":{}}}}`, mcpwire.HeaderVersion, "2026-07-28", mcpwire.HeaderMethod, "panic")
	check("HTTP, stateless", answer)
}

// A client that panics over a request of its server tells the server so.
func TestPanicOfAClientIsAnInternalError(t *testing.T) {
	_, url, rt := serveWire(t, echo{}, nil)
	c, err := mcpwire.Connect(t.Context(), &mcpwire.HTTPTransport{URL: url, RoundTripper: rt}, &mcpwire.ClientOptions{
		Version:   mcpwire.Version20251125,
		OnRequest: func(context.Context, *mcpwire.ServerRequest) (json.RawMessage, error) { panic("no") },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"ask"}`), nil)
	var rpc *mcpwire.Error
	if !errors.As(err, &rpc) || rpc.Code != mcpwire.CodeInternalError || rpc.Message != "internal error" {
		t.Errorf("got %v", err)
	}
}

// halfBody opens a connection to the server and sends the beginning of a
// request.
func halfBody(t *testing.T, target string) net.Conn {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	// The server asks for the body only once it reads it.
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n", u.RequestURI(), u.Host)
	in := bufio.NewReader(conn)
	if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("%q, %v", line, err)
	}
	if _, err := in.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "{")
	return conn
}

func answerTo(t *testing.T, conn net.Conn) (int, string) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection stays open")
	}
	return resp.StatusCode, string(body)
}

func TestBodyThatStopsIsGivenUp(t *testing.T) {
	_, url, _ := serveWire(t, echo{}, &mcpwire.ServerOptions{BodyTimeout: 50 * time.Millisecond})
	status, body := answerTo(t, halfBody(t, url))
	if status != http.StatusRequestTimeout || !strings.Contains(body, "the request body came too slowly: something must come every 50ms") {
		t.Errorf("%d %s", status, body)
	}
}

func TestHalfABodyDoesNotHoldUpTheShutdown(t *testing.T) {
	s, url, _ := serveWire(t, echo{}, nil)
	conn := halfBody(t, url)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if status, body := answerTo(t, conn); status != http.StatusServiceUnavailable {
		t.Errorf("%d %s", status, body)
	}
}
