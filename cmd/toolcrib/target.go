package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/artifacts"
	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/registry"
)

const (
	// defaultConfig is the file that is used when it is there and no flag says
	// otherwise.
	defaultConfig = gateway.DefaultConfigFile
	// serverEnv names a server for the commands that talk to one.
	serverEnv     = "TOOLCRIB_SERVER"
	defaultServer = "http://" + gateway.DefaultListen
	// sourceLimit bounds how long a command that opened a catalog of its own
	// waits for the sources of the catalog.
	sourceLimit = 10 * time.Second
	// closeLimit bounds how long a command that used a catalog of its own
	// waits for the catalog's children to end.
	closeLimit = 5 * time.Second
)

const targetHelp = `

The catalog is that of --server, or one opened from -c for this command alone.
Without either it is the server that $` + serverEnv + ` names, else the one that
./` + defaultConfig + ` describes, else the server at ` + defaultServer + `.`

// crib is a catalog that a command talks to: a server's, or its own.
type crib interface {
	List(context.Context, api.ListRequest) (*api.ListResponse, error)
	Search(context.Context, api.SearchRequest) (*api.SearchResponse, error)
	Describe(context.Context, string) (*api.Description, error)
	Call(context.Context, api.CallRequest) (*api.CallResponse, error)
	Sources(context.Context) (*api.SourcesResponse, error)
	Toolsets(context.Context) (*api.ToolsetsResponse, error)
	Workers(context.Context) (*api.WorkersResponse, error)
	ForgetWorkers(ctx context.Context, toolset string) (*api.ForgottenResponse, error)
	DeadLetters(context.Context, api.DeadLettersRequest) (*registry.DeadLetterPage, error)
	compositions
	ListArtifacts(context.Context, api.ArtifactsRequest) (*api.ArtifactsResponse, error)
	GetArtifact(context.Context, string) (*artifacts.Info, error)
	OpenArtifact(context.Context, string) (io.ReadCloser, *artifacts.Info, error)
	PutArtifact(ctx context.Context, r io.Reader, name, mime string) (*artifacts.Info, error)
	DeleteArtifact(context.Context, string) (*api.Deleted, error)
}

// target is the choice of a catalog by flags.
type target struct {
	config, server string
	session        string // whose calls they are, or empty
	toolset        string // to work in, or empty
}

// addFlags adds the flags of a command that works on tools.
func (t *target) addFlags(cmd *cobra.Command) {
	t.addCatalogFlags(cmd)
	addToolsetFlag(cmd, t)
}

// addCatalogFlags adds those that choose the catalog.
func (t *target) addCatalogFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&t.config, "config", "c", "", "configuration to open")
	cmd.Flags().StringVar(&t.server, "server", "", "URL of a running server")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
}

// session is an opened target.
type session struct {
	crib
	// ctx is the context of calls: it ends with SIGINT or SIGTERM.
	ctx context.Context
	// fallback says that nobody named the server.
	fallback bool
	// late holds the sources that were not waited for any longer.
	late map[string]bool
	// passing says that what is kept goes with the command.
	passing bool
	close   func()
}

// open opens the catalog. For one of its own it waits for the named tool, or
// until every source had its first attempt that could bring it; without a name
// for all sources.
func (a *app) open(ctx context.Context, t *target, tool string) (*session, error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	s, err := a.choose(ctx, t, tool)
	if err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			err = interruptedError{err}
		}
		stop()
		return nil, err
	}
	release := s.close
	s.close = func() {
		release()
		stop()
	}
	return s, nil
}

// ask opens the catalog, as open does, to put a question to it whose answer
// takes the form of o.
func (a *app) ask(ctx context.Context, t *target, o *output, tool string, question func(*session) error) error {
	if err := o.check(); err != nil {
		return err
	}
	s, err := a.open(ctx, t, tool)
	if err != nil {
		return err
	}
	defer s.close()
	return question(s)
}

func (a *app) choose(ctx context.Context, t *target, tool string) (*session, error) {
	if t.config != "" && t.server != "" {
		return nil, usageError{errors.New("--config and --server exclude each other")}
	}
	if t.config != "" {
		return a.openConfig(ctx, t.config, t, tool)
	}
	if url := cmp.Or(t.server, os.Getenv(serverEnv)); url != "" {
		return openServer(ctx, url, t, false)
	}
	if haveDefaultConfig() {
		a.tellOfServer(ctx)
		return a.openConfig(ctx, defaultConfig, t, tool)
	}
	return openServer(ctx, defaultServer, t, true)
}

func haveDefaultConfig() bool {
	_, err := os.Stat(defaultConfig)
	return !errors.Is(err, fs.ErrNotExist)
}

func openServer(ctx context.Context, url string, t *target, fallback bool) (*session, error) {
	client, err := api.NewClient(url, &api.ClientOptions{Session: t.session, Toolset: t.toolset})
	if err != nil {
		return nil, usageError{err}
	}
	return &session{crib: client, ctx: ctx, fallback: fallback, close: func() {}}, nil
}

func (a *app) openConfig(ctx context.Context, file string, t *target, tool string) (*session, error) {
	logger, err := a.logger(slog.LevelError)
	if err != nil {
		return nil, err
	}
	cfg, err := gateway.Load(file)
	if err != nil {
		return nil, err
	}
	g, err := gateway.Open(ctx, cfg, &gateway.Options{Logger: logger, Version: buildVersion(), Joins: true})
	if err != nil {
		return nil, err
	}
	shut := func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		if err := g.Close(end); err != nil {
			logger.Error("closing the catalog", "error", err)
		}
	}
	local, err := caller(ctx, g, t)
	if err != nil {
		shut()
		return nil, err
	}
	s := &session{crib: g.LocalAPI(), ctx: local, late: map[string]bool{}, passing: cfg.DataDir == "", close: shut}
	inTime := await(ctx, g, tool, cmp.Or(a.patience, sourceLimit))
	if errors.Is(ctx.Err(), context.Canceled) {
		shut()
		return nil, ctx.Err()
	}
	if !inTime {
		a.warnOfLate(s, g.Sources())
	}
	return s, nil
}

// caller returns the context of a caller of the command's own catalog.
func caller(ctx context.Context, g *gateway.Gateway, t *target) (context.Context, error) {
	local, err := g.SessionContext(ctx, t.session)
	if err != nil {
		return nil, usageError{err}
	}
	if t.toolset == "" {
		return local, nil
	}
	return g.WithToolset(local, t.toolset)
}

// await waits until the named tool is in the catalog, or every source had its
// first attempt that could bring it. It reports false when neither came true
// within the limit.
func await(ctx context.Context, g *gateway.Gateway, tool string, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if tool == "" || gateway.ReadsCatalog(tool) {
		return g.Ready(ctx) == nil
	}
	changes, stop := g.Catalog().Watch()
	defer stop()
	all := make(chan error, 1)
	go func() { all <- g.ReadyFor(ctx, tool) }()
	for {
		if _, found := g.Catalog().Resolve(tool); found {
			return true
		}
		select {
		case err := <-all:
			return err == nil
		case <-changes:
		}
	}
}

// warnOfLate says which sources have not answered in time.
func (a *app) warnOfLate(s *session, list []gateway.SourceState) {
	for _, row := range list {
		if row.State == gateway.SourceConnecting {
			s.late[row.Name] = true
			fmt.Fprintf(a.errOut, "toolcrib: source %s has not answered yet\n", row.Name)
		}
	}
}

const nothingKept = "nothing is kept after this command: name data_dir in the configuration, or a server"

// failure is the error of a request to the catalog as it is shown.
func (s *session) failure(err error) error {
	if err != nil && errors.Is(s.ctx.Err(), context.Canceled) {
		return interruptedError{err}
	}
	return s.sayWhere(err)
}

// sayWhere adds to the failure to reach a server that nobody named what the
// choices are.
func (s *session) sayWhere(err error) error {
	if err == nil || !s.fallback {
		return err
	}
	if _, answered := errors.AsType[*api.Error](err); answered {
		return err
	}
	return fmt.Errorf("%w\nThere is no ./%s either: start 'toolcrib serve', or use -c FILE or --server URL", err, defaultConfig)
}

// dialLimit bounds how long is looked for a server nearby.
const dialLimit = 200 * time.Millisecond

// tellOfServer says on stderr that a server runs where one is by default, while
// the command opens a catalog of its own: what that keeps and finds is not the
// server's.
func (a *app) tellOfServer(ctx context.Context) {
	conn, err := (&net.Dialer{Timeout: dialLimit}).DialContext(ctx, "tcp", gateway.DefaultListen)
	if err != nil {
		return
	}
	_ = conn.Close() // nothing was said
	fmt.Fprintf(a.errOut, "toolcrib: this opens ./%s by itself; to ask the server at %s use --server\n", defaultConfig, defaultServer)
}
