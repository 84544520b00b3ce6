package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/mcpserver"
	"github.com/toolcrib/toolcrib/tools"
)

// crib is a catalog with one tool of each kind that the protocol tells apart.
type crib struct {
	tools.LiveCatalog
	started, ended chan struct{} // of the tool "hang"

	watched tools.LoadingMode // of the tool that watching adds
}

func newCrib(t *testing.T) *crib {
	t.Helper()
	c := &crib{
		LiveCatalog: tools.NewCatalog(tools.WithLogger(slog.New(slog.DiscardHandler))).(tools.LiveCatalog),
		started:     make(chan struct{}, 16), ended: make(chan struct{}, 16),
	}
	for _, d := range c.descriptors() {
		if d.Tool.Policy.MaxRetries == 0 {
			d.Tool.Policy.MaxRetries = -1
		}
		if err := c.Register(d); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// serve starts a server of the catalog that the test's end shuts down.
func (c *crib) serve(t *testing.T, opts *mcpserver.Options) *mcpserver.Server {
	t.Helper()
	s := mcpserver.New(c, opts)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (c *crib) descriptors() []tools.ToolDescriptor {
	return append(c.upstream(), append(c.own(), append(failing(), c.talking()...)...)...)
}

// object is the schema of tools that take anything.
var object = json.RawMessage(`{"type":"object"}`)

func wire(raw string) tools.Invoker {
	return func(context.Context, json.RawMessage) (tools.ToolResult, error) {
		return tools.ToolResult{Wire: json.RawMessage(raw)}, nil
	}
}

func fail(e tools.Error) tools.Invoker {
	return func(context.Context, json.RawMessage) (tools.ToolResult, error) { return tools.ToolResult{}, &e }
}

// upstream are tools as a driver for MCP servers makes them.
func (c *crib) upstream() []tools.ToolDescriptor {
	mirror := func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
		meta := tools.CallFrom(ctx).Meta
		if meta == nil {
			meta = json.RawMessage("null")
		}
		out := `{"content":[],"structuredContent":{"args":` + string(args) + `,"meta":` + string(meta) + `}}`
		if extra := tools.CallFrom(ctx).Extra; extra != nil {
			out = `{"content":[],"structuredContent":{"extra":` + string(extra) + `}}`
		}
		return tools.ToolResult{Wire: json.RawMessage(out)}, nil
	}
	return []tools.ToolDescriptor{{
		Tool: tools.Tool{
			Name: "up_everything", SourceName: "every thing", Transport: tools.TransportMCP,
			Title: "Every thing", Description: "An operator wrote this.", ArgsSchema: json.RawMessage(`{"$comment":"no type at the root"}`),
			Safety: tools.Safety{ReadOnly: tools.No},
			Definition: json.RawMessage(`{ "name": "every thing", "title": "Every thing", "description": "The source wrote this.", ` +
				`"inputSchema": {"$comment":"no type at the root"}, "annotations": {"readOnlyHint": true, "unknownHint": 9007199254740993}, ` +
				`"icons": [{"src":"data:,"}], "execution": {"taskSupport":"optional"}, "_meta": {"ui":{"resourceUri":"ui://x"}}, "future": [1.0, 1e2] }`),
		},
		Invoke: wire(`{ "content": [ {"type":"hologram","depth":9007199254740993,"b\u0061d":1.0} ], "future": {"x":[1e400]}, ` +
			`"_meta": {"a/b": null}, "isError": false }`),
	}, {
		Tool: tools.Tool{Name: "up_mirror", Transport: tools.TransportMCP, ArgsSchema: object,
			Definition: json.RawMessage(`{"name":"mirror","inputSchema":{"type":"object"}}`)},
		Invoke: mirror,
	}, {
		Tool: tools.Tool{Name: "up_refuses", Transport: tools.TransportMCP, ArgsSchema: object},
		Invoke: fail(tools.Error{Class: tools.ErrClassPermanent, Delivery: tools.Answered, Err: mcpwire.NewError(
			mcpwire.CodeURLElicitationRequired, "visit the page", map[string]any{"elicitations": []any{}})}),
	}, {
		Tool:   tools.Tool{Name: "up_error_result", Transport: tools.TransportMCP, ArgsSchema: object},
		Invoke: wire(`{"content":[{"type":"text","text":"no such city"}],"isError":true}`),
	}}
}

func gives(v any) tools.Invoker {
	return func(context.Context, json.RawMessage) (tools.ToolResult, error) {
		return tools.ToolResult{Value: v}, nil
	}
}

// own are tools that are no MCP server's.
func (c *crib) own() []tools.ToolDescriptor {
	return []tools.ToolDescriptor{{
		Tool: tools.Tool{
			Name: "go.object", Title: "An object", Description: "Gives an object.", SafetyNotes: "Harmless.",
			ArgsSchema:  json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`),
			OutSchema:   json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer"}}}`),
			SideEffects: tools.SideEffectPure,
		},
		Invoke: gives(json.RawMessage(`{"a":9007199254740993}`)),
	}, {
		Tool:   tools.Tool{Name: "go.number", ArgsSchema: json.RawMessage(`{"properties":{}}`), OutSchema: json.RawMessage(`{"type":"integer"}`)},
		Invoke: gives(42),
	}, {
		Tool:   tools.Tool{Name: "go.text"},
		Invoke: gives(`say "hi"`),
	}, {
		Tool:   tools.Tool{Name: "go.nothing"},
		Invoke: gives(nil),
	}, {
		Tool: tools.Tool{Name: "go.blocks"},
		Invoke: func(context.Context, json.RawMessage) (tools.ToolResult, error) {
			return tools.ToolResult{
				Content:    []tools.Content{tools.TextContent("one"), tools.ImageContent([]byte{1}, "image/png")},
				Structured: json.RawMessage(`{"two":2}`), Meta: map[string]any{"three": 3},
				Artifacts: []tools.ArtifactRef{{Ref: "r1", MIME: "text/plain", SizeBytes: 9}},
			}, nil
		},
	}, {
		Tool:   tools.Tool{Name: "go.secret", AuthScopes: []string{"secret"}},
		Invoke: gives("a secret"),
	}}
}

func failing() []tools.ToolDescriptor {
	return []tools.ToolDescriptor{{
		Tool:   tools.Tool{Name: "fail.plain"},
		Invoke: fail(tools.Error{Class: tools.ErrClassPermanent, Delivery: tools.Answered, Message: "the disk is full", Err: errors.New("/secret/path")}),
	}, {
		Tool: tools.Tool{Name: "fail.overloaded"},
		Invoke: fail(tools.Error{Code: tools.ErrOverloaded, Class: tools.ErrClassTransient, Delivery: tools.NotDelivered,
			RetryAfter: 1500 * time.Millisecond, Message: "the circuit is open"}),
	}, {
		Tool:   tools.Tool{Name: "fail.lost", Transport: tools.TransportMCP, SideEffects: tools.SideEffectWrite},
		Invoke: fail(tools.Error{Class: tools.ErrClassTimeout, Delivery: tools.DeliveryUnknown, Message: "no answer"}),
	}, {
		Tool:   tools.Tool{Name: "fail.confirm", Safety: tools.Safety{NeedsConfirmation: tools.Yes}},
		Invoke: gives("never"),
	}, {
		Tool:   tools.Tool{Name: "fail.output", OutSchema: json.RawMessage(`{"type":"object","required":["a"]}`)},
		Invoke: gives(json.RawMessage(`{}`)),
	}, {
		Tool: tools.Tool{Name: "fail.nested"},
		Invoke: func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
			cat := tools.MustCatalog(ctx)
			return tools.Invoke(ctx, cat, "no.such.tool", nil)
		},
	}}
}

// talking are tools that say something before they answer.
func (c *crib) talking() []tools.ToolDescriptor {
	return []tools.ToolDescriptor{{
		Tool: tools.Tool{Name: "talk.progress"},
		Invoke: func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
			call := tools.CallFrom(ctx)
			notes := []tools.ProgressNote{
				{Progress: 0, Total: 2, Message: "begin"},
				{Progress: 1, Raw: json.RawMessage(`{"progressToken":"upstream's","progress":1.0,"future":9007199254740993}`)},
				{Progress: 1}, {Progress: 0.5}, {Progress: 2, Total: 2},
			}
			for _, n := range notes {
				if err := call.Progress(ctx, n); err != nil {
					return tools.ToolResult{}, err
				}
			}
			return tools.ToolResult{Value: "done"}, nil
		},
	}, {
		Tool: tools.Tool{Name: "talk.log"},
		Invoke: func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
			call := tools.CallFrom(ctx)
			for _, level := range []string{"debug", "info", "error"} {
				if err := call.Log(ctx, tools.LogNote{Level: level, Logger: "me", Data: json.RawMessage(`{"n":9007199254740993}`)}); err != nil {
					return tools.ToolResult{}, err
				}
			}
			return tools.ToolResult{Value: "done"}, nil
		},
	}, {
		Tool: tools.Tool{Name: "talk.ask", ArgsSchema: object},
		Invoke: func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
			method, _ := rawjson.Get(args, "method")
			name, _ := rawjson.Unquote(method)
			params, _ := rawjson.Get(args, "params")
			answer, err := tools.CallFrom(ctx).Ask(ctx, tools.Question{Method: name, Params: params})
			if err != nil {
				return tools.ToolResult{}, err
			}
			return tools.ToolResult{Value: answer.Result}, nil
		},
	}, {
		Tool: tools.Tool{Name: "talk.hang"},
		Invoke: func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
			c.started <- struct{}{}
			<-ctx.Done()
			c.ended <- struct{}{}
			return tools.ToolResult{}, ctx.Err()
		},
	}, {
		Tool: tools.Tool{Name: "talk.who"},
		Invoke: func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
			id, _ := identity.From(ctx)
			return tools.ToolResult{Value: id}, nil
		},
	}}
}
