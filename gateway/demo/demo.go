// Package demo is what Toolcrib shows without a configuration: built-in tools,
// a Go function, an HTTP API that this process serves from an OpenAPI
// document, and an MCP server that runs as a child process.
package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/tools"
)

// Command is the argument with which the program becomes the demonstration's
// MCP server; it then calls ServeMCP.
const Command = "demo-mcp"

// Demo is a running demonstration. It must be closed.
type Demo struct {
	executable string
	address    string
	server     *http.Server
	served     chan error
}

// Start serves the library's API on a free port of this machine. executable is
// the program to start as the MCP server, with Command as its argument.
func Start(executable string) (*Demo, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	d := &Demo{executable: executable, address: "http://" + ln.Addr().String(), served: make(chan error, 1),
		server: &http.Server{Handler: newLibrary().handler(), ReadHeaderTimeout: 10 * time.Second}}
	go func() { d.served <- d.server.Serve(ln) }()
	return d, nil
}

// Config is the configuration of the demonstration. It belongs to the caller.
func (d *Demo) Config() *gateway.Config {
	cfg := &gateway.Config{}
	cfg.Tools.BuiltIn = []string{"clock.now", "text.echo"}
	cfg.Tools.MCPServers = []gateway.MCPServer{{Name: "notes", Command: []string{d.executable, Command}}}
	cfg.Tools.OpenAPI = []gateway.OpenAPI{{Name: "library", Document: d.address + "/openapi.yaml", AllowPrivate: true}}
	return cfg
}

// Register returns what adds the demonstration's Go function to a catalog; it
// is meant for gateway.Options.
func (d *Demo) Register() []func(tools.ToolCatalog) error {
	return []func(tools.ToolCatalog) error{registerConvert}
}

// Close ends the API. Requests under way may end until ctx does. The gateway
// that uses the demonstration is closed first.
func (d *Demo) Close(ctx context.Context) error {
	err := d.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, d.server.Close())
	}
	if served := <-d.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	d.served <- http.ErrServerClosed // for the next Close
	return err
}
