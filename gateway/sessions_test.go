package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/artifacts"
	"github.com/toolcrib/toolcrib/gateway"
)

// post sends one message to the MCP endpoint, and returns the status and the
// session.
func post(t *testing.T, url, session, message string) (status int, named string) {
	t.Helper()
	r, err := http.NewRequestWithContext(bounded(t), http.MethodPost, url+"/mcp", strings.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode, resp.Header.Get("Mcp-Session-Id")
}

func TestSessionsOfTheConfiguration(t *testing.T) {
	cfg := parse(t, "mcp: {max_sessions: 1, session_idle: 5m}\ntools: {built_in: [text.echo]}")
	if got := time.Duration(cfg.MCP.SessionIdle); got != 5*time.Minute {
		t.Errorf("session_idle is %v", got)
	}
	server := httptest.NewServer(open(t, cfg, nil).Handler())
	defer server.Close()
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	const ping = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	_, first := post(t, server.URL, "", hello)
	if status, _ := post(t, server.URL, first, ping); status != http.StatusOK {
		t.Errorf("the only session: %d", status)
	}
	_, second := post(t, server.URL, "", hello)
	if status, _ := post(t, server.URL, first, ping); status != http.StatusNotFound {
		t.Errorf("a session beyond the limit: %d", status)
	}
	if status, _ := post(t, server.URL, second, ping); status != http.StatusOK {
		t.Errorf("the newest session: %d", status)
	}
	for _, text := range []string{"mcp: {max_sessions: 0}", "mcp: {session_idle: 30}", "mcp: {session_idle: -1m}", "mcp: {max_session: 1}"} {
		if _, err := gateway.Parse("t.yaml", []byte(text)); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}

func TestTheSessionOfTheJSONProtocol(t *testing.T) {
	g := open(t, parse(t, "tools: {built_in: [text.echo]}"), nil)
	server := httptest.NewServer(g.Handler())
	defer server.Close()
	info, err := g.Artifacts().Put(g.LocalContext(bounded(t)), strings.NewReader("x"), artifacts.Meta{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path  string
		names []string
		want  int
	}{
		{"/v1/artifacts/list", nil, http.StatusOK},
		{"/v1/artifacts/list", []string{"a"}, http.StatusOK},
		{"/v1/artifacts/list", []string{"a", "b"}, http.StatusBadRequest},
		{"/mcp", []string{"a", "b"}, http.StatusBadRequest},
	} {
		r, err := http.NewRequestWithContext(bounded(t), http.MethodPost, server.URL+c.path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header[gateway.SessionHeader] = c.names
		resp, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != c.want || c.want == http.StatusOK && strings.Contains(string(body), info.Ref) != (c.names == nil) {
			t.Errorf("%s of %q: %d %s", c.path, c.names, resp.StatusCode, body)
		}
		if c.want == http.StatusBadRequest && !strings.Contains(string(body), "several") {
			t.Errorf("%s of %q: %s", c.path, c.names, body)
		}
	}
}

func TestBoundsOfTheConfigurationOfArtifacts(t *testing.T) {
	for text, want := range map[string]string{
		"artifacts: {heavy_output_threshold_bytes: 1024, ttl: 720h}": "",
		"artifacts: {heavy_output_threshold_bytes: 1023}":            "at least 1024",
		"artifacts: {ttl: 721h}":                                     "at most 720h",
	} {
		if _, err := gateway.Parse("t.yaml", []byte(text)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
