package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/tools"
)

const (
	// startLimit bounds how long a start waits for the first attempts of all
	// sources; what comes later is added while the program serves.
	startLimit = 10 * time.Second
	// drainLimit is how long calls in flight may take after the end was asked
	// for, unless a flag or the configuration says otherwise.
	drainLimit = 20 * time.Second
	// repeatLimit is how soon the same signal counts as the one before.
	repeatLimit = 250 * time.Millisecond
	// headerLimit bounds how long a connection may take to send its header.
	headerLimit = 10 * time.Second
	// idleLimit is how long a connection is kept without a request.
	idleLimit = 2 * time.Minute
)

// serveFlags are the flags of serve.
type serveFlags struct {
	config, listen, data string
	drain                time.Duration
}

func (a *app) serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the catalog over HTTP",
		Long: `Serve the catalog over HTTP: MCP at /mcp, and at /mcp/NAME for a toolset, the
JSON protocol at /v1/, and the state of the process at /healthz and /readyz.

"listening on http://HOST:PORT" on stdout says that it serves. SIGTERM and
SIGINT let the calls in flight finish within --drain-timeout; a second signal
ends at once. A change of the configuration's file is applied while it serves;
SIGHUP asks for that at once. Without -c and without a ./` + defaultConfig + ` it serves a
demonstration: tools of every kind that need nothing but this program; SIGHUP ends
that like SIGTERM.`,
		Args: arity(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context(), &f) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.config, "config", "c", "", "configuration")
	flags.StringVar(&f.listen, "listen", "", "host:port to listen on (default that of the configuration, or "+gateway.DefaultListen+")")
	flags.StringVar(&f.data, "data", "", "folder for state (default that of the configuration)")
	flags.DurationVar(&f.drain, "drain-timeout", 0, "how long calls in flight may take after SIGTERM (default that of the configuration, or 20s)")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
	_ = cmd.MarkFlagDirname("data")
	return cmd
}

func (a *app) serve(ctx context.Context, f *serveFlags) error {
	settle := postponeGarbage()
	logger, err := a.logger(slog.LevelInfo)
	if err != nil {
		return err
	}
	p, err := makePlan(f.config)
	if err != nil {
		return err
	}
	p.listen = f.listen
	listener, err := listen(p.address(p.config))
	if err != nil {
		return p.discard(err)
	}
	defer listener.Close()
	g, err := p.open(ctx, logger, f.data)
	if err != nil {
		return p.discard(err)
	}
	s := &service{app: a, plan: p, gateway: g, logger: logger, drain: p.drainLimit(f.drain), url: "http://" + listener.Addr().String(),
		settle: settle}
	return s.run(ctx, listener)
}

// listen opens the address, or says what is in the way.
func listen(addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("cannot listen on %s: the port is in use, perhaps by another toolcrib; choose another with --listen", addr)
	case err != nil:
		return nil, fmt.Errorf("cannot listen on %s: %w", addr, err)
	}
	return l, nil
}

// service is a gateway while it is served over HTTP.
type service struct {
	*app
	plan    *plan
	gateway *gateway.Gateway
	logger  *slog.Logger
	drain   time.Duration
	url     string
	settle  func() // is called when the start is over
}

func (s *service) run(ctx context.Context, listener net.Listener) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, s.plan.endSignals()...)
	defer signal.Stop(signals)

	s.gateway.ServedAt(s.url)
	server := &http.Server{
		Handler:           s.gateway.Handler(),
		ReadHeaderTimeout: headerLimit,
		IdleTimeout:       idleLimit,
		ErrorLog:          slog.NewLogLogger(s.logger.Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()

	ready, stop := startup(ctx, s.gateway)
	defer stop()
	following, unfollow := context.WithCancel(ctx)
	defer unfollow()
	go s.plan.follow(following, s.gateway, s.logger)
	for {
		select {
		case <-ready:
			ready = nil
			go s.gateway.Warm(ctx)
			s.announce(ctx)
			s.settle()
		case sig := <-signals:
			s.logger.Info("draining", "signal", sig.String(), "limit", s.drain.String())
			return s.end(server, insistence(signals, sig))
		case err := <-failed:
			return errors.Join(err, s.end(server, signals))
		}
	}
}

// startup returns a channel that is closed when every source had its first
// attempt, or startLimit is over.
func startup(ctx context.Context, g *gateway.Gateway) (<-chan struct{}, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		_ = g.Ready(ctx) // a source that is not there is told of by its state
	}()
	return ready, cancel
}

// announce says on stdout that the program serves, and what it serves.
func (s *service) announce(ctx context.Context) {
	fmt.Fprintln(s.out, "listening on "+s.url)
	for _, row := range s.gateway.Sources() {
		switch {
		case row.AuthorizationURL != "":
			s.logger.Warn("the source waits for authorization in a browser", "source", row.Name, "open", row.AuthorizationURL)
		case row.State == gateway.SourceConnecting: // one that failed was told of then
			s.logger.Warn("the source has not answered yet", "source", row.Name, "kind", row.Kind)
		}
	}
	s.announceWorkers()
	if s.plan.demo != nil {
		list := s.gateway.Catalog().List(tools.FilterFrom(s.gateway.LocalContext(ctx)))
		fmt.Fprint(s.out, banner(list, s.url))
	}
}

// announceWorkers says how to start a worker.
func (s *service) announceWorkers() {
	at, ok := s.gateway.WorkersAddress()
	switch {
	case !ok || at.URL == "":
	case at.Elsewhere:
		fmt.Fprintf(s.out, "workers: %s worker --toolset NAME --connect %s (-c FILE | --openapi DOCUMENT | -- COMMAND ARG...), with their login at the stream server, such as --user NAME --password-file FILE\n", program(), at.URL)
	case at.TokenFile == "":
		fmt.Fprintf(s.out, "workers: %s worker --toolset NAME --connect %s (-c FILE | --openapi DOCUMENT | -- COMMAND ARG...), with workers.token in %s\n", program(), at.URL, workersTokenEnv)
	default:
		fmt.Fprintf(s.out, "workers: %s worker --toolset NAME --connect %s --token-file %s (-c FILE | --openapi DOCUMENT | -- COMMAND ARG...)\n", program(), at.URL, quoted(at.TokenFile))
	}
}

// insistence passes on the signals that follow the first one. The same signal
// again within a moment is not meant to insist: timeout(1), for one, sends it
// to the process and then to its group.
func insistence(signals <-chan os.Signal, first os.Signal) <-chan os.Signal {
	out := make(chan os.Signal, 1)
	start := time.Now()
	go func() {
		for sig := range signals {
			if sig != first || time.Since(start) > repeatLimit {
				out <- sig
				return
			}
		}
	}()
	return out
}

// end lets the calls in flight finish within the limit; a further signal ends
// them at once.
func (s *service) end(server *http.Server, signals <-chan os.Signal) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.drain)
	defer cancel()
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	stopped := make(chan error, 1)
	go func() { stopped <- server.Shutdown(ctx) }()
	err := errors.Join(s.gateway.Close(ctx), s.plan.close(ctx))
	late := ctx.Err()
	if shut := <-stopped; late == nil {
		late = shut
	}
	_ = server.Close()
	switch {
	case errors.Is(late, context.Canceled):
		return errors.New("ended at once by a second signal; calls in flight were given up")
	case errors.Is(late, context.DeadlineExceeded):
		return fmt.Errorf("calls in flight did not finish within %v and were given up", s.drain)
	}
	return errors.Join(err, late)
}
