//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serveFixture is an MCP server on stdio that the scripts put behind toolcrib.
// The word "noise" makes it print lines on stdout that are no MCP, "broken"
// makes it end at once, and "odd" offers a tool whose schema does not compile.
func serveFixture() {
	if slices.Contains(os.Args, "broken") {
		fmt.Fprintln(os.Stderr, "fixture: the database is locked")
		os.Exit(3)
	}
	if slices.Contains(os.Args, "noise") {
		fmt.Println("Welcome to the fixture!")
		fmt.Println(`{"level":"info","msg":"starting"}`)
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "fixture", Version: "1.0"}, nil)
	for name, tool := range fixtureTools() {
		s.AddTool(&mcp.Tool{Name: name, Description: tool.description, InputSchema: json.RawMessage(tool.schema)}, tool.run)
	}
	if slices.Contains(os.Args, "odd") {
		s.AddTool(&mcp.Tool{Name: "odd", InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#/$defs/nowhere"}}}`)}, echo)
	}
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, "fixture:", err)
	}
}

type fixtureTool struct {
	description, schema string
	run                 mcp.ToolHandler
}

const (
	anyObject     = `{"type":"object"}`
	messageObject = `{"type":"object","properties":{"message":{"type":"string"}},"required":["message"],"additionalProperties":false}`
	holdObject    = `{"type":"object","properties":{"started":{"type":"string"},"release":{"type":"string"}},"required":["started","release"]}`
)

func fixtureTools() map[string]fixtureTool {
	return map[string]fixtureTool{
		"echo":  {"Returns a message.", messageObject, echo},
		"exact": {"Returns its arguments as its structured result.", anyObject, exact},
		"mixed": {"Returns text and an image.", anyObject, mixed},
		"fail":  {"Answers that it failed.", anyObject, fail},
		"crash": {"Fails as a request.", anyObject, crash},
		"steps": {"Tells how far it is.", anyObject, steps},
		"hold":  {"Waits for a named pipe.", holdObject, hold},
		"block": {"Waits for the end of its request.", anyObject, block},
	}
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

func echo(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var args struct{ Message string }
	err := json.Unmarshal(req.Params.Arguments, &args)
	return text(args.Message), err
}

func exact(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	result := text("see the structured result")
	result.StructuredContent = req.Params.Arguments
	return result, nil
}

func mixed(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	result := text("a dot")
	result.Content = append(result.Content, &mcp.ImageContent{MIMEType: "image/png", Data: []byte("dot")})
	return result, nil
}

func fail(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	result := text("no such row")
	result.IsError = true
	return result, nil
}

func crash(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return nil, errors.New("out of paper")
}

func steps(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	for i := 1; i <= 2; i++ {
		note := &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: float64(i), Total: 2, Message: "step"}
		if err := req.Session.NotifyProgress(ctx, note); err != nil {
			return nil, err
		}
	}
	return text("done"), nil
}

// hold says through one named pipe that it started, and waits for a word from
// another.
func hold(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var args struct{ Started, Release string }
	if err := json.Unmarshal(req.Params.Arguments, &args); err != nil {
		return nil, err
	}
	if err := os.WriteFile(args.Started, []byte("started\n"), 0o600); err != nil {
		return nil, err
	}
	word, err := os.ReadFile(args.Release)
	return text(string(word)), err
}

func block(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
