package main

import (
	"context"
	"errors"
	"log/slog"
	"os/signal"

	"github.com/spf13/cobra"
)

func (a *app) mcpCommand() *cobra.Command {
	var (
		t    target
		data string
	)
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve the catalog over MCP on stdin and stdout",
		Long: `Serve the catalog over MCP on stdin and stdout, for a client that starts its
servers itself. Nothing but MCP stands on stdout; the log goes to stderr. The
program ends when stdin does.

Without -c it serves ./` + defaultConfig + `, or the demonstration that serve has.`,
		Args: arity(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serveStdio(cmd.Context(), &t, data) },
	}
	cmd.Flags().StringVarP(&t.config, "config", "c", "", "configuration")
	cmd.Flags().StringVar(&data, "data", "", "folder for state (default that of the configuration)")
	cmd.Flags().StringVar(&t.session, "session", "", "name of the client's session, to go on with what it has found before")
	addToolsetFlag(cmd, &t)
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
	_ = cmd.MarkFlagDirname("data")
	return cmd
}

func (a *app) serveStdio(ctx context.Context, t *target, data string) error {
	logger, err := a.logger(slog.LevelWarn)
	if err != nil {
		return err
	}
	p, err := makePlan(t.config)
	if err != nil {
		return err
	}
	p.stdio, p.session, p.toolset = true, t.session, t.toolset
	ctx, stop := signal.NotifyContext(ctx, p.endSignals()...)
	defer stop()
	g, err := p.open(context.WithoutCancel(ctx), logger, data)
	if err != nil {
		return p.discard(err)
	}
	g.ServeBrowsers()
	// A client that lists the tools once must find them all.
	ready, cancel := startup(ctx, g)
	<-ready
	cancel()
	for _, row := range g.Sources() {
		if row.AuthorizationURL != "" {
			logger.Warn("the source waits for authorization in a browser", "source", row.Name, "open", row.AuthorizationURL)
		}
	}
	following, unfollow := context.WithCancel(ctx)
	defer unfollow()
	go p.follow(following, g, logger)
	err = g.ServeStdio(ctx, a.in, a.out)
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.drainLimit(0))
	defer cancel()
	return errors.Join(err, g.Close(end), p.close(end))
}
