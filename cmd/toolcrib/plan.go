package main

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/gateway/demo"
)

// plan is what serve and mcp are to open.
type plan struct {
	config *gateway.Config
	file   string      // that the configuration was read from, or empty
	read   fs.FileInfo // its state before it was read
	demo   *demo.Demo  // nil with a configuration
	listen string      // of the flag, or empty
	stdio  bool        // nothing listens
	// session and toolset are names for the client on stdio, or empty.
	session, toolset string
}

// address is where to listen with a configuration.
func (p *plan) address(cfg *gateway.Config) string {
	if p.stdio {
		return ""
	}
	return cmp.Or(p.listen, cfg.Listen, gateway.DefaultListen)
}

// drainLimit is how long calls in flight may take at the end: what the flag
// says unless it is zero, else what the configuration says.
func (p *plan) drainLimit(flag time.Duration) time.Duration {
	configured := time.Duration(p.config.Limits.DrainTimeoutMS) * time.Millisecond
	return cmp.Or(flag, configured, drainLimit)
}

// makePlan reads the named configuration, or the default one, or starts the
// demonstration when there is neither.
func makePlan(file string) (*plan, error) {
	if file == "" && haveDefaultConfig() {
		file = defaultConfig
	}
	if file != "" {
		state, _ := os.Stat(file) // Load says what is wrong with it
		cfg, err := gateway.Load(file)
		return &plan{config: cfg, file: file, read: state}, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find this program, which the demonstration starts again: %w", err)
	}
	d, err := demo.Start(self)
	if err != nil {
		return nil, err
	}
	return &plan{config: d.Config(), demo: d}, nil
}

func (p *plan) open(ctx context.Context, logger *slog.Logger, data string) (*gateway.Gateway, error) {
	if p.demo != nil {
		logger.Warn("there is no ./" + defaultConfig + ", so this serves the demonstration")
	}
	p.config.Listen = p.address(p.config)
	opts := &gateway.Options{Logger: logger, DataDir: data, Session: p.session, Toolset: p.toolset, Version: buildVersion(), Adopts: true}
	if p.demo != nil {
		opts.Register = p.demo.Register()
	}
	return gateway.Open(ctx, p.config, opts)
}

// close ends what the plan started, after the gateway was closed.
func (p *plan) close(ctx context.Context) error {
	if p.demo == nil {
		return nil
	}
	return p.demo.Close(ctx)
}

// discard is close for a plan whose gateway did not open.
func (p *plan) discard(cause error) error {
	_ = p.close(context.Background())
	return cause
}

// demoCommand is how the demonstration starts this program as its MCP server.
func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:    demo.Command,
		Short:  "Be the demonstration's MCP server on stdin and stdout",
		Hidden: true,
		Args:   arity(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo.ServeMCP(cmd.Context(), a.in, a.out)
		},
	}
}
