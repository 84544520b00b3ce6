package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/internal/heap"
	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/registry/stream/connect"
	"github.com/toolcrib/toolcrib/tools"
)

// The variables of a worker's environment that hold what must not stand in a
// command line.
const (
	workersURLEnv   = "TOOLCRIB_WORKERS_URL"
	workersTokenEnv = "TOOLCRIB_WORKERS_TOKEN"
	passwordEnv     = "TOOLCRIB_WORKERS_PASSWORD"
	toolsetKeyEnv   = "TOOLCRIB_TOOLSET_KEY"
)

// workerFlags are the flags of worker.
type workerFlags struct {
	toolset, url  string
	config        string
	openapi       string
	prefix        string
	private       bool
	session       string
	env           []string
	keyFile       string
	login         connect.Options
	options       provider.Options
	connectWithin time.Duration
}

func (a *app) workerCommand() *cobra.Command {
	var f workerFlags
	cmd := &cobra.Command{
		Use:   "worker --toolset NAME (-c FILE | --openapi DOCUMENT | -- COMMAND [ARG...])",
		Short: "Serve tools to a gateway from a process of their own",
		Long: `Serve a toolset to the gateways that share a stream server: the tools of an MCP
server that this program starts and speaks to over stdin and stdout, of an OpenAPI
document, or of a configuration with any sources. Start as many as the load needs:
they share the calls.

` + "`toolcrib serve`" + ` with workers in its configuration prints the address and the file
with the token. What must not stand in a command line is read from the environment:
` + workersTokenEnv + `, ` + passwordEnv + ` and ` + toolsetKeyEnv + `.

SIGTERM, SIGINT and SIGHUP let the calls that run finish within --drain-timeout, and
give back those that wait; nothing is read again, so a supervisor starts the worker
anew. One that was started by nohup ignores SIGHUP.`,
		Example: `  toolcrib worker --toolset notes --token-file data/streams/token -- npx @modelcontextprotocol/server-memory
  toolcrib worker --toolset shop --connect rediss://redis.example:6379 -c shop.yaml`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.work(cmd.Context(), &f, args) },
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false) // What follows COMMAND is its own, also without "--".
	flags.StringVar(&f.toolset, "toolset", "", "name of the toolset")
	flags.StringVar(&f.url, "connect", "", "address of the stream server: nats://, tls://, redis:// or rediss:// (default $"+workersURLEnv+", or nats://"+gateway.DefaultWorkersListen+")")
	flags.StringVarP(&f.config, "config", "c", "", "configuration whose sources are served")
	flags.StringVar(&f.openapi, "openapi", "", "file or URL of an OpenAPI document whose operations are served")
	flags.BoolVar(&f.private, "allow-private", false, "let --openapi call an API on this machine or in a private network, as allow_private does in a configuration")
	flags.StringVar(&f.prefix, "prefix", "", "what stands before the tools' names, or none (default the toolset's name and an underscore)")
	flags.StringVar(&f.session, "session", "", "who shares a process of COMMAND: shared, per_user or per_session (default shared); with per_session it can ask the caller, such as for input")
	flags.StringArrayVar(&f.env, "env", nil, "name of a variable that COMMAND gets, beside PATH, HOME, LANG and TMPDIR; may be repeated")
	flags.StringVar(&f.login.TokenFile, "token-file", "", "file with the token of the stream server")
	flags.StringVar(&f.login.User, "user", "", "user at the stream server")
	flags.StringVar(&f.login.PasswordFile, "password-file", "", "file with that user's password")
	flags.StringVar(&f.login.CredentialsFile, "credentials-file", "", "file with a JWT and its key, for NATS")
	flags.StringVar(&f.login.NKeyFile, "nkey-file", "", "file with the seed of an nkey, for NATS")
	flags.StringVar(&f.login.CAFile, "ca-file", "", "certificates of those who may sign the stream server's")
	flags.StringVar(&f.login.CertFile, "cert-file", "", "certificate of this worker")
	flags.StringVar(&f.login.KeyFile, "key-file", "", "key of that certificate")
	flags.StringVar(&f.options.Namespace, "namespace", "", "namespace of the gateways (default \""+registry.DefaultNamespace+"\")")
	flags.StringVar(&f.keyFile, "toolset-key-file", "", "file with the toolset's key, where gateways demand one")
	flags.IntVar(&f.options.MaxConcurrentToolCalls, "concurrency", provider.DefaultMaxConcurrentToolCalls, "calls that run at once")
	flags.IntVar(&f.options.MaxQueuedToolCalls, "queue", 0, "calls that wait in this worker (default 64 times those that run)")
	flags.DurationVar(&f.options.DrainTimeout, "drain-timeout", provider.DefaultDrainTimeout, "how long calls that run may take after SIGTERM")
	flags.DurationVar(&f.connectWithin, "connect-timeout", time.Minute, "how long to try to reach the stream server")
	for _, file := range []string{"config", "openapi", "token-file", "password-file", "credentials-file", "nkey-file", "ca-file", "cert-file", "key-file", "toolset-key-file"} {
		_ = cmd.MarkFlagFilename(file)
	}
	return cmd
}

// complete checks the flags and reads what they and the environment refer to.
func (f *workerFlags) complete(args []string) error {
	given := 0
	for _, is := range []bool{f.config != "", f.openapi != "", len(args) > 0} {
		if is {
			given++
		}
	}
	if f.toolset == "" {
		return usageError{errors.New("expected --toolset NAME, the toolset that is served")}
	}
	if err := registry.CheckToolset(f.toolset); err != nil {
		return usageError{fmt.Errorf("--toolset: %w", err)}
	}
	if given != 1 {
		return usageError{errors.New("expected what to serve: -c FILE, --openapi DOCUMENT or -- COMMAND, and one of them alone")}
	}
	if err := f.bounds(); err != nil {
		return usageError{err}
	}
	if f.session != "" && (len(args) == 0 || !slices.Contains([]string{"shared", "per_user", "per_session"}, f.session)) {
		return usageError{errors.New("--session: expected shared, per_user or per_session, and a COMMAND whose processes it is about")}
	}
	if f.private && f.openapi == "" {
		return usageError{errors.New("--allow-private: expected --openapi, whose API it is about; a configuration has allow_private for each source")}
	}
	f.url = cmp.Or(f.url, os.Getenv(workersURLEnv), "nats://"+gateway.DefaultWorkersListen)
	f.login.Name, f.login.Inbox = "toolcrib worker "+f.toolset, registry.WorkerInbox(f.toolset)
	if f.login.TokenFile == "" {
		f.login.Token = os.Getenv(workersTokenEnv)
	}
	if f.login.PasswordFile == "" {
		f.login.Password = os.Getenv(passwordEnv)
	}
	if err := connect.Check(f.url, &f.login); err != nil {
		return usageError{fmt.Errorf("--connect: %w", err)}
	}
	return f.readKey()
}

// bounds checks numbers, times and the namespace.
func (f *workerFlags) bounds() error {
	o := &f.options
	switch {
	case o.MaxConcurrentToolCalls < 1 || o.MaxConcurrentToolCalls > provider.MostConcurrentToolCalls:
		return fmt.Errorf("--concurrency: expected 1 to %d", provider.MostConcurrentToolCalls)
	case o.MaxQueuedToolCalls < 0 || o.MaxQueuedToolCalls > provider.MostQueuedToolCalls:
		return fmt.Errorf("--queue: expected 0 to %d", provider.MostQueuedToolCalls)
	case o.DrainTimeout < 0 || f.connectWithin <= 0:
		return errors.New("--drain-timeout and --connect-timeout: expected a length of time such as 30s")
	case o.Namespace == "":
		return nil
	}
	if err := registry.CheckNamespace(o.Namespace); err != nil {
		return fmt.Errorf("--namespace: %w", err)
	}
	return nil
}

func (f *workerFlags) readKey() error {
	key := os.Getenv(toolsetKeyEnv)
	if f.keyFile != "" {
		text, err := os.ReadFile(f.keyFile)
		if err != nil {
			return fmt.Errorf("--toolset-key-file: %w", err)
		}
		if key = string(text); strings.TrimRight(key, "\r\n") == "" {
			return fmt.Errorf("--toolset-key-file: %s is empty", f.keyFile)
		}
	}
	if key = strings.TrimRight(key, "\r\n"); key != "" {
		f.options.Key = []byte(key)
	}
	return nil
}

// configuration is of what is served.
func (f *workerFlags) configuration(args []string) (*gateway.Config, error) {
	if err := runnable(args); err != nil {
		return nil, err
	}
	if f.config != "" {
		cfg, err := gateway.Load(f.config)
		if err == nil && cfg.Workers != nil {
			cfg.Workers = nil // this is a worker itself
		}
		return cfg, err
	}
	cfg := &gateway.Config{}
	if f.openapi != "" {
		if err := readable(f.openapi); err != nil {
			return nil, err
		}
		cfg.Tools.OpenAPI = []gateway.OpenAPI{{Name: f.toolset, Document: f.openapi, Prefix: f.prefix, AllowPrivate: f.private}}
		return cfg, nil
	}
	env := map[string]string{}
	for _, name := range f.env {
		if strings.ContainsRune(name, '=') {
			return nil, usageError{errors.New("--env: expected the name of a variable of this process, without a value")}
		}
		env[name] = "${" + name + "}"
	}
	cfg.Tools.MCPServers = []gateway.MCPServer{{Name: f.toolset, Command: args, Env: env, Prefix: f.prefix, Session: f.session}}
	return cfg, nil
}

func (a *app) work(ctx context.Context, f *workerFlags, args []string) error {
	defer runtime.KeepAlive(heap.NewFloor())
	logger, err := a.logger(slog.LevelInfo)
	if err != nil {
		return err
	}
	if err := f.complete(args); err != nil {
		return err
	}
	cfg, err := f.configuration(args)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, endSignals()...)
	defer stop()
	ctx, give := context.WithCancelCause(ctx)
	defer give(nil)
	opts := &gateway.Options{Logger: logger, Version: buildVersion(), Adopts: true}
	if len(args) > 0 {
		up := &upstart{name: args[0], logger: logger, give: give}
		opts.Attempted = up.attempted
	}
	g, err := gateway.Open(ctx, cfg, opts)
	if err != nil {
		return err
	}
	client, err := f.dial(ctx, logger)
	if err == nil {
		w := &worker{app: a, flags: f, gateway: g, client: client, logger: logger}
		err = errors.Join(f.refused(w.run(ctx)), client.Close())
	}
	if never, ok := errors.AsType[*neverUpError](context.Cause(ctx)); ok {
		err = never
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainLimit)
	defer cancel()
	return errors.Join(err, g.Close(end))
}

func (f *workerFlags) dial(ctx context.Context, logger *slog.Logger) (stream.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, f.connectWithin)
	defer cancel()
	f.login.Logger = logger
	client, err := connect.Client(ctx, f.url, &f.login)
	if err != nil {
		return nil, f.unreached(err)
	}
	return client, nil
}

// unreached says why there is no connection, and names the flag that is most
// likely missing or wrong when the server wants to know who connects.
func (f *workerFlags) unreached(err error) error {
	hint, l := "", &f.login
	switch refused := strings.Contains(err.Error(), "Authorization"); {
	case !refused:
	case l.TokenFile != "":
		hint = fmt.Sprintf("; the server takes another token than that in --token-file %s", l.TokenFile)
	case l.Token != "":
		hint = "; the server takes another token than that in " + workersTokenEnv
	case l.User == "" && l.CredentialsFile == "" && l.NKeyFile == "":
		hint = "; no --token-file was given"
	}
	return fmt.Errorf("the stream server cannot be reached: %w%s", err, hint)
}

// refused names the flag that is most likely missing or wrong when a gateway turns
// the worker away for its key.
func (f *workerFlags) refused(err error) error {
	if !errors.Is(err, provider.ErrRefused) {
		return err
	}
	switch text := err.Error(); {
	case strings.HasSuffix(text, "needs its key, and the worker has none"):
		return fmt.Errorf("%w; no --toolset-key-file was given", err)
	case !strings.HasSuffix(text, "the worker's key is not that of the toolset"):
		return err
	case f.keyFile != "":
		return fmt.Errorf("%w; it is that in --toolset-key-file %s", err, f.keyFile)
	}
	return fmt.Errorf("%w; it is that in %s", err, toolsetKeyEnv)
}

// worker serves what a gateway of its own holds.
type worker struct {
	*app
	flags   *workerFlags
	gateway *gateway.Gateway
	client  stream.Client
	logger  *slog.Logger
}

// run serves until ctx ends. When the sources bring other tools, it serves those
// from then on.
func (w *worker) run(ctx context.Context) error {
	news := w.gateway.Bus().Subscribe(events.Filter{Types: []events.EventType{tools.EventTypeCatalogChanged}}, nil)
	defer news.Close()
	ready, stop := startup(ctx, w.gateway)
	<-ready
	stop()
	for ctx.Err() == nil {
		handler, print := w.handler()
		if print == "" {
			w.logger.Warn("there are no tools to serve yet")
			w.changed(ctx, news, print)
			continue
		}
		if err := w.serve(ctx, handler, print, news); err != nil {
			return err
		}
	}
	return nil
}

// handler returns what runs the tools of now, and what tells them from others,
// which is empty when there are none.
func (w *worker) handler() (*provider.Catalog, string) {
	handler := provider.FromCatalog(w.gateway.Catalog())
	contract, err := handler.Contract(w.flags.toolset)
	if err != nil {
		w.logger.Error("the tools cannot be served", "error", err.Error())
		return nil, ""
	}
	if len(contract.Tools) == 0 {
		return nil, ""
	}
	print, err := contract.Fingerprint()
	if err != nil {
		w.logger.Error("the tools cannot be served", "error", err.Error())
		return nil, ""
	}
	return handler, print
}

// changed waits until there are tools that differ from those of a fingerprint.
func (w *worker) changed(ctx context.Context, news *events.Subscription, print string) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-news.Events():
		}
		if _, now := w.handler(); now != "" && now != print {
			return
		}
	}
}

// serve serves the tools of a fingerprint until ctx ends or there are others.
func (w *worker) serve(ctx context.Context, handler *provider.Catalog, print string, news *events.Subscription) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	opts := w.flags.options
	opts.Logger, opts.Version = w.logger, buildVersion()
	opts.Pong = w.pong(provider.Pong(w.client, opts.Namespace))
	opts.Incomplete = w.incomplete
	contract, _ := handler.Contract(w.flags.toolset) // it was made before
	opts.Serving = func() {
		fmt.Fprintf(w.out, "serving toolset %s with %d tools\n", w.flags.toolset, len(contract.Tools))
	}
	go func() { ended <- provider.Serve(ctx, w.client, w.flags.toolset, handler, opts) }()
	other := make(chan struct{})
	go func() {
		w.changed(ctx, news, print)
		close(other)
	}()
	select {
	case err := <-ended:
		stop()
		<-other
		return err
	case <-other:
		stop()
		return <-ended
	}
}

// incomplete reports whether a source has brought no tools yet.
func (w *worker) incomplete() bool {
	return slices.ContainsFunc(w.gateway.Sources(), func(s gateway.SourceState) bool {
		return s.State != gateway.SourceReady && s.Tools == 0
	})
}

// pong does not acknowledge pings while no source of the tools is there, so that
// calls go to other workers.
func (w *worker) pong(acknowledge func(context.Context, string) error) func(context.Context, string) error {
	return func(ctx context.Context, id string) error {
		sources := w.gateway.Sources()
		for _, s := range sources {
			if s.State == gateway.SourceReady {
				return acknowledge(ctx, id)
			}
		}
		if len(sources) == 0 {
			return acknowledge(ctx, id)
		}
		return errors.New("no source of the tools is ready")
	}
}
