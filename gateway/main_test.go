package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/toolcrib/toolcrib/gateway/demo"
)

// The test binary is also the child processes that the tests start.
const childVariable = "GATEWAY_TEST_CHILD"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == demo.Command {
		exit(demo.ServeMCP(context.Background(), os.Stdin, os.Stdout))
	}
	if os.Getenv(childVariable) != "" {
		exit(childServer().Run(context.Background(), &mcp.StdioTransport{}))
	}
	goleak.VerifyTestMain(m)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

type textArgs struct {
	Text string `json:"text"`
}

type nothing struct{}

type processResult struct {
	PID    int    `json:"pid"`
	Secret string `json:"secret"`
}

// childServer is an MCP server made with another implementation than ours.
func childServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "child", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo", Description: "Echo."},
		func(_ context.Context, _ *mcp.CallToolRequest, in textArgs) (*mcp.CallToolResult, textArgs, error) {
			return nil, in, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "process", Description: "Which process this is, and what it was given."},
		func(context.Context, *mcp.CallToolRequest, nothing) (*mcp.CallToolResult, processResult, error) {
			return nil, processResult{os.Getpid(), os.Getenv("CHILD_SECRET")}, nil
		})
	if secret := os.Getenv("CHILD_SECRET"); secret != "" { // which it tells in a tool that no catalog takes
		schema := json.RawMessage(`{"type":"object","$ref":"#/` + secret + `"}`)
		s.AddTool(&mcp.Tool{Name: "broken_" + secret, InputSchema: schema},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, nil })
	}
	mcp.AddTool(s, &mcp.Tool{Name: "grow", Description: "Add a tool of the given name."},
		func(_ context.Context, _ *mcp.CallToolRequest, in textArgs) (*mcp.CallToolResult, nothing, error) {
			mcp.AddTool(s, &mcp.Tool{Name: in.Text}, func(context.Context, *mcp.CallToolRequest, nothing) (*mcp.CallToolResult, nothing, error) {
				return nil, nothing{}, nil
			})
			return nil, nothing{}, nil
		})
	return s
}
