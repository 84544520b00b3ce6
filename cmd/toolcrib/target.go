package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/gateway"
)

const (
	// defaultConfig is the file that is used when it is there and no flag says
	// otherwise.
	defaultConfig = "toolcrib.yaml"
	// serverEnv names a server for the commands that talk to one.
	serverEnv     = "TOOLCRIB_SERVER"
	defaultServer = "http://" + gateway.DefaultListen
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
	Describe(context.Context, string) (*api.Description, error)
	Call(context.Context, api.CallRequest) (*api.CallResponse, error)
	Sources(context.Context) (*api.SourcesResponse, error)
}

// target is the choice of a catalog by flags.
type target struct{ config, server string }

func (t *target) addFlags(cmd *cobra.Command) {
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
	close    func()
}

// open opens the catalog. For one of its own it waits until ready reports true,
// at the latest until every source had its first attempt.
func (a *app) open(ctx context.Context, t *target, ready func(*gateway.Gateway) bool) (*session, error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	s, err := a.choose(ctx, t, ready)
	if err != nil {
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

func (a *app) choose(ctx context.Context, t *target, ready func(*gateway.Gateway) bool) (*session, error) {
	if t.config != "" && t.server != "" {
		return nil, usageError{errors.New("--config and --server exclude each other")}
	}
	if t.config != "" {
		return a.openConfig(ctx, t.config, ready)
	}
	if url := cmp.Or(t.server, os.Getenv(serverEnv)); url != "" {
		return openServer(ctx, url, false)
	}
	if haveDefaultConfig() {
		return a.openConfig(ctx, defaultConfig, ready)
	}
	return openServer(ctx, defaultServer, true)
}

func haveDefaultConfig() bool {
	_, err := os.Stat(defaultConfig)
	return !errors.Is(err, fs.ErrNotExist)
}

func openServer(ctx context.Context, url string, fallback bool) (*session, error) {
	client, err := api.NewClient(url, nil)
	if err != nil {
		return nil, usageError{err}
	}
	return &session{crib: client, ctx: ctx, fallback: fallback, close: func() {}}, nil
}

func (a *app) openConfig(ctx context.Context, file string, ready func(*gateway.Gateway) bool) (*session, error) {
	logger, err := a.logger(slog.LevelError)
	if err != nil {
		return nil, err
	}
	cfg, err := gateway.Load(file)
	if err != nil {
		return nil, err
	}
	g, err := gateway.Open(ctx, cfg, &gateway.Options{Logger: logger, Version: buildVersion()})
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
	if err := await(ctx, g, ready); err != nil {
		shut()
		return nil, err
	}
	return &session{crib: g.LocalAPI(), ctx: g.LocalContext(ctx), close: shut}, nil
}

// await waits until ready reports true after a change of the catalog, or every
// source had its first attempt. A nil ready waits for the latter.
func await(ctx context.Context, g *gateway.Gateway, ready func(*gateway.Gateway) bool) error {
	if ready == nil {
		return g.Ready(ctx)
	}
	changes, stop := g.Catalog().Watch()
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all := make(chan error, 1)
	go func() { all <- g.Ready(ctx) }()
	for !ready(g) {
		select {
		case err := <-all:
			return err
		case <-changes:
		}
	}
	return nil
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
