package mcpwire_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
)

// relay is a gateway without any policy: it hands everything through to one
// upstream, in the era in which it was asked. Run as a child process with
//
//	MCPWIRE_TEST_ROLE=relay UPSTREAM=http://… mcpwire.test
//
// it stands between the conformance suite and a fixture.
type relay struct {
	upstream string

	mu      sync.Mutex
	clients map[string]*mcpwire.Client // by session id; "" for the stateless era
}

func (r *relay) client(ctx context.Context, s *mcpwire.Session) (*mcpwire.Client, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.clients[s.ID()]; c != nil {
		return c, nil
	}
	c, err := mcpwire.Connect(ctx, &mcpwire.HTTPTransport{URL: r.upstream}, &mcpwire.ClientOptions{
		Version: s.Version(), Info: s.ClientInfo(), Capabilities: s.ClientCapabilities(),
		OnNotification: func(method string, params json.RawMessage) {
			_ = s.Notify(context.Background(), method, params)
		},
		OnRequest: func(ctx context.Context, q *mcpwire.ServerRequest) (json.RawMessage, error) {
			return s.Call(ctx, q.Method, q.Params)
		},
	})
	if err == nil {
		r.clients[s.ID()] = c
	}
	return c, err
}

func (r *relay) Describe(ctx context.Context, s *mcpwire.Session) (*mcpwire.Description, error) {
	c, err := r.client(ctx, s)
	if err != nil {
		return nil, err
	}
	server := c.Server()
	return &mcpwire.Description{Capabilities: server.Capabilities, Instructions: server.Instructions}, nil
}

func (r *relay) ServeMCP(ctx context.Context, q *mcpwire.Request) (json.RawMessage, error) {
	c, err := r.client(ctx, q.Session)
	if err != nil {
		return nil, err
	}
	if q.Notification {
		return nil, c.Notify(ctx, q.Method, q.Params)
	}
	opts := &mcpwire.CallOptions{
		Notification: func(method string, params json.RawMessage) { _ = q.Notify(ctx, method, params) },
		Request: func(ctx context.Context, s *mcpwire.ServerRequest) (json.RawMessage, error) {
			return q.Call(ctx, s.Method, s.Params)
		},
		Info: q.Session.ClientInfo(), Capabilities: q.Session.ClientCapabilities(),
	}
	if q.ProgressToken != nil {
		opts.Progress = func(params json.RawMessage) { _ = q.Progress(ctx, params) }
	}
	if q.HTTP != nil {
		opts.Header = paramHeadersOf(q.HTTP.Header)
	}
	return c.Call(ctx, q.Method, q.Params, opts)
}

func paramHeadersOf(h http.Header) http.Header {
	out := http.Header{}
	for k, v := range h {
		if len(k) > len(mcpwire.HeaderParamPrefix) && k[:len(mcpwire.HeaderParamPrefix)] == mcpwire.HeaderParamPrefix {
			out[k] = v
		}
	}
	return out
}

func relayRole() int {
	l, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("PORT"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("http://" + l.Addr().String())
	s := mcpwire.NewServer(&relay{upstream: os.Getenv("UPSTREAM"), clients: map[string]*mcpwire.Client{}}, nil)
	if err := http.Serve(l, s); !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintln(os.Stderr, err)
	}
	return 0
}

// conformanceClientRole is a client for the conformance suite, which appends
// its server's URL to the command: it lists the tools and calls each of them.
func conformanceClientRole() int {
	ctx := context.Background()
	version := os.Getenv("MCP_CONFORMANCE_PROTOCOL_VERSION")
	c, err := mcpwire.Connect(ctx, &mcpwire.HTTPTransport{URL: os.Args[len(os.Args)-1]}, &mcpwire.ClientOptions{
		Version:      version,
		Capabilities: json.RawMessage(`{"elicitation":{}}`),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer c.Close()
	raw, err := c.Call(ctx, "tools/list", nil, nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var list struct {
		Tools []struct {
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"inputSchema"`
		}
	}
	_ = json.Unmarshal(raw, &list)
	for _, tool := range list.Tools {
		name, _ := json.Marshal(tool.Name)
		params := json.RawMessage(`{"name":` + string(name) + `,"arguments":{"a":1,"b":2}}`)
		result, err := c.Call(ctx, "tools/call", params, &mcpwire.CallOptions{Header: mcpwire.ParamHeaders(tool.Schema, params)})
		fmt.Fprintln(os.Stderr, string(result), err)
	}
	return 0
}
