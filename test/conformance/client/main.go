// Command client is toolcrib's client side for the MCP conformance suite. The suite appends the URL of its
// server to the command; a gateway in this process stands before that server, and a client of the Go SDK
// uses through it, once, everything that it is offered.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcrib/toolcrib/gateway"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: client URL")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[len(os.Args)-1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url string) error {
	told, err := readContext()
	if err != nil {
		return err
	}
	text, err := told.config(url)
	if err != nil {
		return err
	}
	cfg, err := gateway.Parse("client.yaml", text)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "conformance-client")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	g, err := gateway.Open(ctx, cfg, &gateway.Options{DataDir: dir, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	defer g.Close(ctx)
	stop, err := serve(g)
	if err != nil {
		return err
	}
	defer stop()
	ready, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if err := g.Ready(ready); err != nil {
		return err
	}
	if err := authorize(ready, g); err != nil {
		return err
	}
	return converse(ctx, g, told)
}

// converse connects a client to the gateway by a pair of pipes.
func converse(ctx context.Context, g *gateway.Gateway, told *suiteContext) error {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan error, 1)
	go func() {
		err := g.ServeStdio(ctx, inR, outW)
		outW.Close()
		served <- err
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "conformance-client", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: answer,
		Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{
			Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}},
	})
	session, err := client.Connect(ctx, &mcp.IOTransport{Reader: outR, Writer: inW},
		&mcp.ClientSessionOptions{ProtocolVersion: os.Getenv("MCP_CONFORMANCE_PROTOCOL_VERSION")})
	if err != nil {
		inW.Close()
		return errors.Join(err, <-served)
	}
	err = useAll(ctx, session, told)
	return errors.Join(err, session.Close(), <-served)
}

// answer accepts a form with a value for each field that has no default; the SDK fills in the defaults. It
// opens a page that it is sent to.
func answer(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	if r.Params.Mode == "url" {
		go func() {
			if err := browse(context.WithoutCancel(ctx), r.Params.URL); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}()
		return &mcp.ElicitResult{Action: "accept"}, nil
	}
	return &mcp.ElicitResult{Action: "accept", Content: valuesFor(r.Params.RequestedSchema)}, nil
}

// useAll makes the calls that the suite asks for, or one of each tool, and reads every resource and prompt.
// A call that fails is part of some scenarios.
func useAll(ctx context.Context, session *mcp.ClientSession, told *suiteContext) error {
	calls, err := callsOf(ctx, session, told)
	if err != nil {
		return err
	}
	for _, call := range calls {
		if _, err := session.CallTool(ctx, call); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", call.Name, err)
		}
	}
	for resource, err := range session.Resources(ctx, nil) {
		if err != nil {
			return err
		}
		if _, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: resource.URI}); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", resource.URI, err)
		}
	}
	for prompt, err := range session.Prompts(ctx, nil) {
		if err != nil {
			return err
		}
		if _, err := session.GetPrompt(ctx, &mcp.GetPromptParams{Name: prompt.Name}); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", prompt.Name, err)
		}
	}
	return nil
}

func callsOf(ctx context.Context, session *mcp.ClientSession, told *suiteContext) ([]*mcp.CallToolParams, error) {
	schemas := map[string]any{}
	calls := told.ToolCalls
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		schemas[tool.Name] = tool.InputSchema
		if len(told.ToolCalls) == 0 {
			calls = append(calls, &mcp.CallToolParams{Name: tool.Name, Arguments: valuesFor(tool.InputSchema)})
		}
	}
	for _, call := range calls {
		if call.Name == "json_schema_echo" { // it wants to see what became of the other tool's schema
			call.Arguments = map[string]any{"schema": schemas["json_schema_2020_12_tool"]}
		}
	}
	return calls, nil
}

// valuesFor returns a value for each property of a schema that has no default.
func valuesFor(schema any) map[string]any {
	var s struct {
		Properties map[string]struct {
			Type    string
			Default json.RawMessage
		}
	}
	if raw, err := json.Marshal(schema); err != nil || json.Unmarshal(raw, &s) != nil {
		return nil
	}
	out := map[string]any{}
	for name, p := range s.Properties {
		if p.Default == nil {
			out[name] = map[string]any{"string": "us-west1", "integer": 5, "number": 5, "boolean": true}[p.Type]
		}
		if out[name] == nil {
			delete(out, name)
		}
	}
	return out
}
