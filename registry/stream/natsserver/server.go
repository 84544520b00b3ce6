package natsserver

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/registry/stream/natsstream"
)

// ErrInUse is returned by [Start] when another server, maybe of another process,
// keeps its streams in the folder.
var ErrInUse = errors.New("natsserver: the folder is in use by another server")

// Sync says when what was written is synced to disk.
type Sync int

// The three ways to sync; the documentation of the package says what each keeps.
const (
	SyncGrouped Sync = iota
	SyncEvery
	SyncLater
)

// SyncInterval is how often a server syncs what nobody waits for.
const SyncInterval = 10 * time.Second

// Options say what the server offers. The zero value listens on a free port of
// the loopback address.
type Options struct {
	// Address is where the server listens for workers: "host:port". Default
	// "127.0.0.1:0", a free port. "none" listens nowhere: only clients in
	// this process connect.
	Address string

	// Token is what clients give to connect. Empty takes that in the file
	// [TokenFile] of the folder, which is made when it is not there and readable
	// for its owner alone.
	Token string

	// TLS is needed for clients to connect by tls://.
	TLS *tls.Config

	// Sync says when writes reach the disk.
	Sync Sync

	// MaxStore bounds the bytes of all streams together. Default 8 GiB.
	MaxStore int64

	// MaxPayload bounds the bytes of one message, at most 16 MiB, which is
	// the default.
	MaxPayload int

	// Logger gets what the server reports. Nil is silent.
	Logger *slog.Logger
}

// Defaults and limits of [Options].
const (
	DefaultMaxStore = 8 << 30
	MaxPayload      = 16 << 20
)

// TokenFile is the name of the file with the token in the folder of a server.
const TokenFile = "token"

// memory bounds what the server keeps in memory beside its caches. Streams are
// kept in files.
const memory = 64 << 20

// pingInterval is how often a silent client is asked whether it is there. One that
// does not answer two times gets no more events: until then each that goes to it
// waits for the end of a lease.
const pingInterval = 10 * time.Second

// startTimeout bounds how long a server takes to read its streams, and startPoll is
// how often it is asked whether it has.
const (
	startTimeout = 2 * time.Minute
	startPoll    = 100 * time.Millisecond
)

// Server is a NATS server in this process.
type Server struct {
	nats    *server.Server
	token   string
	file    string // that holds the token, or empty
	keeper  *keeper
	unlock  func() error
	closing sync.Once
}

// Start runs a server that keeps its streams in the folder dir, which is made
// when it is not there. One folder serves one server at a time.
func Start(dir string, opts *Options) (*Server, error) {
	if opts == nil {
		opts = &Options{}
	}
	settings, err := opts.settings(dir)
	if err != nil {
		return nil, err
	}
	unlock, err := lock(dir)
	if err != nil {
		return nil, err
	}
	s := &Server{token: opts.Token}
	if s.token == "" {
		s.file = filepath.Join(dir, TokenFile)
		if s.token, err = readOrMakeToken(s.file); err != nil {
			return nil, errors.Join(err, unlock())
		}
	}
	settings.Authorization = s.token
	if s.nats, err = server.NewServer(settings); err != nil {
		return nil, errors.Join(fmt.Errorf("natsserver: %w", err), unlock())
	}
	s.unlock = unlock
	logger := opts.logger()
	streams := newGroups(filepath.Join(dir, "jetstream", server.DEFAULT_GLOBAL_ACCOUNT, "streams"), opts.Sync == SyncGrouped)
	s.keeper = newKeeper(dir, streams, logger, settings)
	s.keeper.start(s.nats)
	reports := newLog(logger, s.keeper.heard)
	s.nats.SetLoggerV2(reports, false, false, false)
	if err := s.run(reports.fatal); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (o *Options) logger() *slog.Logger {
	if o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger.With("component", "nats")
}

func (o *Options) settings(dir string) (*server.Options, error) {
	if o.MaxPayload < 0 || o.MaxPayload > MaxPayload || o.MaxStore < 0 {
		return nil, fmt.Errorf("%w: MaxPayload must be from 1 to %d and MaxStore not negative", stream.ErrInvalid, MaxPayload)
	}
	settings := &server.Options{
		ServerName: "toolcrib", NoSigs: true, DisableJetStreamBanner: true, NoSystemAccount: false,
		JetStream: true, StoreDir: dir, JetStreamMaxMemory: memory, JetStreamMaxStore: orDefault(o.MaxStore, DefaultMaxStore),
		MaxPayload: int32(orDefault(int64(o.MaxPayload), MaxPayload)), MaxPending: 16 * MaxPayload,
		SyncAlways: o.Sync == SyncEvery, SyncInterval: SyncInterval,
		PingInterval: pingInterval, MaxPingsOut: 2, WriteTimeout: server.WriteTimeoutPolicyRetry,
	}
	if o.TLS != nil {
		settings.TLSConfig, settings.TLS = o.TLS.Clone(), true
	}
	if o.Address == "none" {
		settings.DontListen = true
		return settings, nil
	}
	address := o.Address
	if address == "" {
		address = "127.0.0.1:0"
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%w: the address %q is not host:port", stream.ErrInvalid, address)
	}
	number, err := strconv.Atoi(port)
	if err != nil || number < 0 || number > 65535 {
		return nil, fmt.Errorf("%w: the port of the address %q is not from 0 to 65535", stream.ErrInvalid, address)
	}
	settings.Host, settings.Port = host, number
	if number == 0 {
		settings.Port = server.RANDOM_PORT
	}
	return settings, nil
}

func orDefault(value, otherwise int64) int64 {
	if value == 0 {
		return otherwise
	}
	return value
}

// run starts the server and returns when clients can connect.
func (s *Server) run(fatal <-chan string) error {
	s.nats.Start()
	for deadline := time.Now().Add(startTimeout); ; {
		ready := s.nats.ReadyForConnections(startPoll) && s.nats.JetStreamEnabled()
		select {
		case why := <-fatal:
			return fmt.Errorf("natsserver: %s", why)
		default:
		}
		if ready {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("natsserver: the server does not run after %v; its log says why", startTimeout)
		}
	}
}

// Client returns a client inside the process, without a network. The server
// makes its Add safe as Sync says.
func (s *Server) Client(ctx context.Context, opts *natsstream.Options) (*natsstream.Client, error) {
	var inside natsstream.Options
	if opts != nil {
		inside = *opts
	}
	inside.InProcess, inside.Token = s.nats, s.token
	inside.Keeper = s.keeper
	return natsstream.Dial(ctx, "", &inside)
}

// URL is where workers connect, without the token, or empty when the server
// listens nowhere.
func (s *Server) URL() string {
	if s.nats.Addr() == nil {
		return ""
	}
	return s.nats.ClientURL()
}

// Token is what workers need to connect.
func (s *Server) Token() string { return s.token }

// TokenFile is the file that holds the token, or empty when it was given.
func (s *Server) TokenFile() string { return s.file }

// Close ends all connections and the server, and returns when its files are
// closed. A second Close does nothing and returns nil.
func (s *Server) Close() error {
	var err error
	s.closing.Do(func() {
		s.keeper.end()
		s.nats.Shutdown()
		s.nats.WaitForShutdown()
		err = s.unlock()
	})
	return err
}

// readOrMakeToken returns the token that a file holds. A file that is not there is
// made.
func readOrMakeToken(file string) (string, error) {
	data, err := os.ReadFile(file)
	if token := strings.TrimSpace(string(data)); err == nil && token != "" {
		return token, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("natsserver: the token cannot be read: %w", err)
	}
	token := rand.Text()
	temporary := file + ".new"
	if err := os.WriteFile(temporary, []byte(token+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("natsserver: the token cannot be kept: %w", err)
	}
	if err := os.Rename(temporary, file); err != nil {
		return "", fmt.Errorf("natsserver: the token cannot be kept: %w", err)
	}
	return token, nil
}
