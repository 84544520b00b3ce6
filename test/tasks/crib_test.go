package tasks

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/mcpserver"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/mcptool"
	"github.com/toolcrib/toolcrib/tools/toolstest"
)

const patience = peertest.Patience

func bounded(t testing.TB) context.Context { return peertest.Bounded(t) }

// A crib is a catalog of servers behind an endpoint whose callers say who they are.
type crib struct {
	tools.LiveCatalog
	url   string
	shelf shelf
}

// A shelf shows no results of the tools that it is told to keep.
type shelf struct {
	mu    sync.Mutex
	keeps string
	asked []string // the tools whose results it was shown
}

func (s *shelf) Bound(_ context.Context, tool *tools.Tool, r tools.ToolResult) (tools.ToolResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked = append(s.asked, tool.Name); tool.Name != s.keeps {
		return r, nil
	}
	text := fmt.Sprintf("kept %d blocks and %s", len(r.Content), r.Structured)
	return tools.ToolResult{Content: []tools.Content{tools.TextContent(text)}, Meta: r.Meta, IsError: r.IsError}, nil
}

func (s *shelf) keep(tool string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keeps = tool
}

func newCrib(t testing.TB, stages tools.Stages, sources ...*mcptool.Config) *crib {
	t.Helper()
	c := &crib{LiveCatalog: tools.NewCatalog(tools.WithStages(stages)).(tools.LiveCatalog)}
	for _, cfg := range sources {
		source, err := mcptool.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := source.Close(bounded(t)); err != nil {
				t.Error(err)
			}
		})
		list, err := source.Discover(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		if refused := c.SwapSource(source.SourceID(), list); len(refused.Refused) > 0 {
			t.Fatal(refused)
		}
	}
	c.serve(t, &mcpserver.Options{Bounder: &c.shelf})
	return c
}

// serve opens an endpoint of the catalog, in the place of one that there was.
func (c *crib) serve(t testing.TB, opts *mcpserver.Options) {
	t.Helper()
	opts.Authenticate = whoSays
	s := mcpserver.New(c, opts)
	web := toolstest.NewHTTPServer(t, func() (http.Handler, func()) { return s, nil })
	t.Cleanup(func() {
		if err := s.Shutdown(bounded(t)); err != nil {
			t.Error(err)
		}
	})
	c.url = web.URL
}

// whoSays takes the caller from the header "Who", tenant and user.
func whoSays(r *http.Request) (context.Context, string, error) {
	who := r.Header.Get("Who")
	tenant, user, _ := strings.Cut(who, "/")
	q := identity.Quadruple{Identity: identity.Identity{TenantID: tenant, UserID: user}}
	return identity.WithQuadruple(r.Context(), q), who, nil
}

// A client speaks MCP over HTTP in one of the eras.
type client struct {
	url, who, session string
	stateless         bool
	tasks             bool // the client knows tasks
	http              *http.Client
	last              int
}

func (c *crib) client(t testing.TB, who string, stateless, tasks bool) *client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	out := &client{url: c.url, who: who, stateless: stateless, tasks: tasks, http: &http.Client{Transport: transport}}
	if !stateless {
		resp := out.post(t, bounded(t), "initialize", `{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}`)
		out.session = resp.Header.Get("Mcp-Session-Id")
		resp.Body.Close()
		out.post(t, bounded(t), "", "").Body.Close()
	}
	return out
}

func (c *client) request(t testing.TB, ctx context.Context, method, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, c.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Who": {c.who},
		"Mcp-Protocol-Version": {"2025-11-25"}}
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	return req
}

// post sends a request, or without a method the notification that ends the handshake.
func (c *client) post(t testing.TB, ctx context.Context, method, params string) *http.Response {
	t.Helper()
	c.last++
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.last, method, c.stamped(params))
	if method == "" {
		body = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	}
	req := c.request(t, ctx, http.MethodPost, body)
	if c.stateless {
		req.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		req.Header.Set("Mcp-Method", method)
		for _, key := range []string{"name", "taskId"} {
			if raw, ok := rawjson.Get([]byte(params), key); ok {
				name, _ := rawjson.Unquote(raw)
				req.Header.Set("Mcp-Name", name)
			}
		}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return resp
}

// stamped adds what the stateless era wants in every request.
func (c *client) stamped(params string) string {
	if !c.stateless {
		return params
	}
	capabilities := `{}`
	if c.tasks {
		capabilities = `{"elicitation":{},"extensions":{"` + extension + `":{}}}`
	}
	meta := `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":` + capabilities + `}`
	if params == "{}" {
		return meta + "}"
	}
	return meta + "," + params[1:]
}

// ask returns the result or the error of a request.
func (c *client) ask(t testing.TB, method, params string) (result, failure json.RawMessage) {
	t.Helper()
	resp := c.post(t, bounded(t), method, params)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	if at := bytes.LastIndex(body, []byte("\ndata:")); at >= 0 && body[0] != '{' { // notifications may come before the answer
		body = bytes.TrimSpace(body[at+len("\ndata:"):])
	}
	result, _ = rawjson.Get(body, "result")
	failure, _ = rawjson.Get(body, "error")
	if result == nil && failure == nil {
		t.Fatalf("%s: no answer in %s", method, body)
	}
	return result, failure
}

// must returns the result of a request that succeeds.
func (c *client) must(t testing.TB, method, params string) json.RawMessage {
	t.Helper()
	result, failure := c.ask(t, method, params)
	if failure != nil {
		t.Fatalf("%s %s: %s", method, params, failure)
	}
	return result
}

// begin calls a tool and returns the name of the task that it is, and the state.
func (c *client) begin(t testing.TB, tool, args string) (id string, state json.RawMessage) {
	t.Helper()
	more, path := "", []string{"taskId"}
	if !c.stateless {
		more, path = `,"task":{"ttl":60000}`, []string{"task", "taskId"}
	}
	result := c.must(t, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s%s}`, tool, args, more))
	raw, ok := rawjson.Get(result, path...)
	if !ok {
		t.Fatalf("%s: %s", tool, result)
	}
	id, _ = rawjson.Unquote(raw)
	if !c.stateless {
		state, _ = rawjson.Get(result, "task")
		return id, state
	}
	return id, result
}

// about asks for a task.
func (c *client) about(t testing.TB, method, id string) (result, failure json.RawMessage) {
	t.Helper()
	return c.ask(t, method, fmt.Sprintf(`{"taskId":%q}`, id))
}

// awaitStatus asks for a task until it stands so.
func (c *client) awaitStatus(t testing.TB, id, status string) json.RawMessage {
	t.Helper()
	var state json.RawMessage
	ok := toolstest.Await(patience, func() bool {
		var failure json.RawMessage
		if state, failure = c.about(t, "tasks/get", id); failure != nil {
			t.Fatalf("tasks/get: %s", failure)
		}
		return text(state, "status") == status
	})
	if !ok {
		t.Fatalf("it never stands %s: %s", status, state)
	}
	return state
}

func text(raw json.RawMessage, path ...string) string {
	v, _ := rawjson.Get(raw, path...)
	s, _ := rawjson.Unquote(v)
	return s
}

// messages hands the messages of a stream to take until that is content.
func messages(t testing.TB, resp *http.Response, take func(json.RawMessage) (enough bool)) {
	t.Helper()
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data:"); ok && strings.TrimSpace(data) != "" {
			if take(json.RawMessage(strings.TrimSpace(data))) {
				return
			}
		}
	}
	t.Fatalf("the stream ended: %v", lines.Err())
}
