package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcrib/toolcrib/gateway"
)

// awaitStatus asks /readyz until it answers with the status.
func awaitStatus(t *testing.T, g *gateway.Gateway, status int) {
	t.Helper()
	for ctx, h := bounded(t), g.Handler(); ctx.Err() == nil; {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/readyz", nil))
		if w.Code == status {
			return
		}
	}
	t.Fatalf("/readyz never answered %d", status)
}

func TestHandler(t *testing.T) {
	cfg := parse(t, "allowed_hosts: [tools.test]\nallowed_origins: ['https://app.test']\ntools: {built_in: [text.echo], mcp_servers: ["+child("kid")+"]}")
	h := open(t, cfg, nil).Handler()
	for _, c := range []struct {
		name, method, url, origin, body string
		status                          int
		want                            string
	}{
		{"health", "GET", "http://127.0.0.1/healthz", "", "", 200, `{"status":"ok"}`},
		{"ready", "GET", "http://localhost:7711/readyz", "", "", 200, `{"status":"ready","sources":[{"name":"kid","state":"ready"}]}`},
		{"ipv6", "GET", "http://[::1]:7711/healthz", "", "", 200, `ok`},
		{"foreign host", "GET", "http://evil.test/healthz", "", "", 403, `{"error":{"code":"denied","message":"this Host is not served; add it to allowed_hosts"`},
		{"named host", "GET", "http://tools.test:80/healthz", "", "", 200, `ok`},
		{"foreign origin", "POST", "http://localhost/v1/tools/list", "https://evil.test", "{}", 403, `{"error":{"code":"denied","message":"pages of this Origin may not call; add it to allowed_origins"`},
		{"foreign origin at mcp", "POST", "http://localhost/mcp", "https://evil.test", "{}", 403, ""},
		{"foreign origin behind an own one", "POST", "http://localhost/v1/tools/list", "http://localhost:3000 https://evil.test", "{}", 403, ""},
		{"foreign origin behind an own one at mcp", "POST", "http://localhost/mcp", "http://localhost:3000 https://evil.test", "{}", 403, ""},
		{"opaque origin", "POST", "http://localhost/v1/tools/list", "null", "{}", 403, ""},
		{"own origin", "POST", "http://localhost/v1/tools/list", "http://localhost:3000", "{}", 200, `"name":"text.echo"`},
		{"named origin", "POST", "http://localhost/v1/tools/list", "https://app.test", "{}", 200, `"name":"kid_echo"`},
		{"call", "POST", "http://localhost/v1/tools/call", "", `{"name":"kid_echo","arguments":{"text":"x"}}`, 200, `"structured":{"text":"x"}`},
		{"sources", "POST", "http://localhost/v1/sources/list", "", "", 200, `"kind":"mcp"`},
		{"elsewhere", "GET", "http://localhost/", "", "", 404, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest(c.method, c.url, strings.NewReader(c.body))
			r.Header.Set("Content-Type", "application/json")
			for _, origin := range strings.Fields(c.origin) {
				r.Header.Add("Origin", origin)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
				t.Errorf("%d %s, want %d with %s", w.Code, w.Body, c.status, c.want)
			}
		})
	}
}

func TestMCPOverHTTP(t *testing.T) {
	g := open(t, parse(t, "tools: {built_in: [text.echo], mcp_servers: ["+child("kid")+"]}"), nil)
	server := httptest.NewServer(g.Handler())
	defer server.Close()
	session := connect(t, &mcp.StreamableClientTransport{Endpoint: server.URL + "/mcp", HTTPClient: server.Client()})
	tryMCP(t, session)
	if err := session.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestHandlerRefusesAPublicAddress(t *testing.T) {
	h := open(t, nil, nil).Handler()
	for ip, status := range map[string]int{"127.0.0.1": http.StatusOK, "::1": http.StatusOK, "192.0.2.7": http.StatusForbidden} {
		r := httptest.NewRequest(http.MethodGet, "http://localhost/healthz", nil)
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.ParseIP(ip), Port: 80})))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != status {
			t.Errorf("%s: %d %s", ip, w.Code, w.Body)
		}
	}
}

func TestServeStdio(t *testing.T) {
	g := open(t, parse(t, "tools: {built_in: [text.echo], mcp_servers: ["+child("kid")+"]}"), nil)
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- g.ServeStdio(context.Background(), inRead, outWrite)
		outWrite.Close()
	}()
	session := connect(t, &mcp.IOTransport{Reader: outRead, Writer: inWrite})
	tryMCP(t, session)
	inWrite.Close()
	if err := <-served; err != nil {
		t.Errorf("serve: %v", err)
	}
	_ = session.Close()
}

func connect(t *testing.T, transport mcp.Transport) *mcp.ClientSession {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(bounded(t), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func tryMCP(t *testing.T, session *mcp.ClientSession) {
	t.Helper()
	list, err := session.ListTools(bounded(t), nil)
	if err != nil || len(list.Tools) != 4 {
		t.Fatalf("list: %v, %v", list, err)
	}
	for _, name := range []string{"kid_echo", "text.echo"} {
		res, err := session.CallTool(bounded(t), &mcp.CallToolParams{Name: name, Arguments: map[string]any{"text": "x"}})
		if err != nil || res.IsError {
			t.Fatalf("%s: %+v, %v", name, res, err)
		}
	}
}

// A client that never sends the rest of its request does not hold up the end.
func TestHalfABodyDoesNotHoldUpTheEnd(t *testing.T) {
	g := open(t, parse(t, "tools: {built_in: [text.echo]}"), nil)
	srv := httptest.NewServer(g.Handler())
	defer srv.Close()
	for _, path := range []string{"/mcp", "/v1/tools/call"} {
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 60000000\r\n\r\n", path)
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
			t.Fatalf("%s: %q, %v", path, line, err)
		}
	}
	if err := g.Close(bounded(t)); err != nil {
		t.Error(err)
	}
	if err := srv.Config.Shutdown(bounded(t)); err != nil {
		t.Errorf("connections are left: %v", err)
	}
}
