package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// big is a result whose bytes encoding/json would change: a large integer, a
// number with a trailing zero, spaces, and characters that it escapes.
const big = `{ "n": 9007199254740993, "x": 1.0, "html": "<&>" }`

// newCatalog returns a catalog with tools that behave in every way that the
// protocol tells apart.
func newCatalog(t *testing.T) tools.LiveCatalog {
	t.Helper()
	cat := tools.NewCatalog(tools.WithRequiredIdentity()).(tools.LiveCatalog)
	once := tools.ToolPolicy{RetryOn: []tools.ErrorClass{}}
	for _, d := range []tools.ToolDescriptor{
		{
			Tool: tools.Tool{
				Name: "echo", Title: "Echo", Description: "Returns its arguments.", Tags: []string{"text", "demo"}, Version: "1.2",
				ArgsSchema:  json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"},"n":{"type":"integer"}}}`),
				SideEffects: tools.SideEffectPure, Transport: tools.TransportInProcess,
				Examples: []tools.ToolExample{{Args: map[string]any{"text": "hello"}, Description: "a greeting"}},
			},
			Invoke: func(_ context.Context, args json.RawMessage) (tools.ToolResult, error) {
				return tools.ToolResult{Structured: args}, nil
			},
		},
		{
			Tool: tools.Tool{Name: "files.big", Description: "Gives odd bytes.", Transport: tools.TransportHTTP, Source: "files", Loading: tools.LoadingDeferred},
			Invoke: func(context.Context, json.RawMessage) (tools.ToolResult, error) {
				return tools.ToolResult{Structured: json.RawMessage(big)}, nil
			},
		},
		{
			Tool: tools.Tool{Name: "files.text", Description: "Gives text.", Transport: tools.TransportMCP, Source: "files"},
			Invoke: func(context.Context, json.RawMessage) (tools.ToolResult, error) {
				return tools.ToolResult{Value: "two", Content: []tools.Content{tools.TextContent("one"), tools.TextContent("two")},
					Wire: json.RawMessage(`{"content":[],"_meta":{"n":9007199254740993}}`)}, nil
			},
		},
		{
			Tool: tools.Tool{Name: "fails", Policy: once, Transport: tools.TransportMCP},
			Invoke: func(context.Context, json.RawMessage) (tools.ToolResult, error) {
				return tools.ToolResult{IsError: true, Content: []tools.Content{tools.TextContent("no such row")}}, nil
			},
		},
		{
			Tool: tools.Tool{Name: "secret", AuthScopes: []string{"vault"}, Tenants: []string{"acme"}},
			Invoke: func(context.Context, json.RawMessage) (tools.ToolResult, error) {
				return tools.ToolResult{Value: "opened"}, nil
			},
		},
		{
			Tool:   tools.Tool{Name: "chatty", Policy: once},
			Invoke: chatty,
		},
	} {
		if err := cat.Register(d); err != nil {
			t.Fatal(err)
		}
	}
	return cat
}

// chatty reports progress and a line of log, then does as it is told.
func chatty(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
	call := tools.CallFrom(ctx)
	_ = call.Progress(ctx, tools.ProgressNote{Progress: 1, Total: 2, Message: "half\nway"})
	_ = call.Log(ctx, tools.LogNote{Level: "info", Logger: "chatty", Data: json.RawMessage(`{"rows":3}`)})
	var a struct{ Fail, Ask bool }
	if err := json.Unmarshal(args, &a); err != nil {
		return tools.ToolResult{}, err
	}
	switch {
	case a.Ask:
		_, err := call.Ask(ctx, tools.Question{Method: "elicitation/create"})
		return tools.ToolResult{}, err
	case a.Fail:
		return tools.ToolResult{}, &tools.Error{Class: tools.ErrClass5xx, Delivery: tools.Answered, RetryAfter: 1500 * time.Millisecond, Message: "the machine is tired"}
	}
	return tools.ToolResult{Structured: json.RawMessage("{\n\"done\": true\n}")}, nil
}

// as serves the protocol to a caller of tenant acme with the given scopes.
func as(t *testing.T, opts api.Options, scopes ...string) *httptest.Server {
	t.Helper()
	opts.Authenticate = func(r *http.Request) (context.Context, error) {
		if r.Header.Get("Authorization") == "Bearer wrong" {
			return nil, errors.New("the token is not valid")
		}
		return identity.With(r.Context(), identity.Identity{TenantID: "acme", UserID: "ann", SessionID: "s"}, scopes...), nil
	}
	server := httptest.NewServer(api.New(newCatalog(t), &opts))
	t.Cleanup(server.Close)
	return server
}

func clientOf(t *testing.T, url string) *api.Client {
	t.Helper()
	transport := &http.Transport{ExpectContinueTimeout: time.Minute}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := api.NewClient(url, &api.ClientOptions{HTTPClient: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
