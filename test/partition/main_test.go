//go:build linux

package partition

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What a process of this test binary is told in its environment.
const (
	modeVariable  = "PARTITION_MODE"  // what it is, if not the test
	whereVariable = "PARTITION_WHERE" // which worker a tool belongs to
	logVariable   = "PARTITION_LOG"   // the file to which tools add a line for each run
)

func TestMain(m *testing.M) {
	switch os.Getenv(modeVariable) {
	case "tool":
		exitWith(serveTools())
	case "hold":
		_, err := io.Copy(io.Discard, os.Stdin) // until the test is over
		exitWith(err)
	case "probe":
		exitWith(probe())
	default:
		os.Exit(m.Run())
	}
}

func exitWith(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// entry is a call of a tool.
type entry struct {
	ID string `json:"id"`
	// FarMS is how long the tool takes on the far worker, in milliseconds.
	FarMS int `json:"far_ms,omitempty"`
}

// place says which worker ran a call.
type place struct {
	Where string `json:"where"`
}

// serveTools is an MCP server whose tools add a line to a file when they begin.
func serveTools() error {
	where := os.Getenv(whereVariable)
	file, err := os.OpenFile(os.Getenv(logVariable), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	server := mcp.NewServer(&mcp.Implementation{Name: "log", Version: "1"}, nil)
	for _, name := range []string{"write", "read"} {
		tool := &mcp.Tool{Name: name, Description: "Adds a line to a log.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: name == "read"}}
		mcp.AddTool(server, tool, func(ctx context.Context, _ *mcp.CallToolRequest, in entry) (*mcp.CallToolResult, place, error) {
			if _, err := fmt.Fprintf(file, "%s %s %s\n", name, in.ID, where); err != nil {
				return nil, place{}, err
			}
			if where == "far" {
				wait(ctx, time.Duration(in.FarMS)*time.Millisecond)
			}
			return nil, place{Where: where}, nil
		})
	}
	return server.Run(context.Background(), &mcp.StdioTransport{})
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
