package mcpwire_test

import (
	"context"
	"encoding/json"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
)

// leaver is a handler that ends the goroutine of some requests, after it said
// something where the method ends in "/told".
type leaver struct{ echo }

func (l leaver) ServeMCP(ctx context.Context, r *mcpwire.Request) (json.RawMessage, error) {
	if strings.HasSuffix(r.Method, "/told") {
		_ = r.Notify(ctx, "notifications/message", json.RawMessage(`{"level":"info","data":"leaving"}`))
	}
	if strings.HasPrefix(r.Method, "leave") {
		runtime.Goexit()
	}
	return l.echo.ServeMCP(ctx, r)
}

func TestHandlerThatEndsItsGoroutineIsAnswered(t *testing.T) {
	const want = `"id":1,"error":{"code":-32603,"message":"internal error"}}`
	check := func(how, answer string) {
		t.Helper()
		if !strings.Contains(answer, want) {
			t.Errorf("%s: %s", how, answer)
		}
	}
	const request, told = `{"jsonrpc":"2.0","id":1,"method":"leave"}`, `{"jsonrpc":"2.0","id":1,"method":"leave/told"}`
	const next = `{"jsonrpc":"2.0","id":2,"method":"test/pid"}`
	check("pipe", strings.Join(overPipe(t, leaver{}, nil, beginPipe, request, next), "\n"))
	check("pipe, batch", overPipe(t, leaver{}, nil, beginPipe, `[`+request+`,`+next+`]`)[1])

	s, url, rt := serveWire(t, leaver{}, nil)
	session := openSession(t, url, rt)
	older := sessionOf(t, url, rt, beginPipe)
	_, answer := post(t, url, rt, older, `[`+request+`,`+next+`]`)
	check("HTTP, batch", answer)
	_, answer = post(t, url, rt, session, request)
	check("HTTP", answer)
	if _, answer := post(t, url, rt, session, request); !strings.Contains(answer, want) { // the id is free again
		t.Error(answer)
	}
	check("HTTP, events", firstEvents(t, url, rt, session, told))
	stateless := `{"jsonrpc":"2.0","id":1,"method":"leave","params":{"_meta":{"` + mcpwire.MetaProtocolVersion + `":"2026-07-28","` +
		mcpwire.MetaClientCapabilities + `":{}}}}`
	_, answer = post(t, url, rt, "", stateless, mcpwire.HeaderVersion, "2026-07-28", mcpwire.HeaderMethod, "leave")
	check("HTTP, stateless", answer)
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// firstEvents posts a message and returns what comes until the connection ends,
// however it does.
func firstEvents(t *testing.T, url string, rt http.RoundTripper, session, message string) string {
	t.Helper()
	resp, err := rt.RoundTrip(rawPost(t.Context(), t, url, session, message))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var all strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := resp.Body.Read(buf)
		all.Write(buf[:n])
		if err != nil {
			return all.String()
		}
	}
}
