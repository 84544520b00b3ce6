package gateway

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/registry/stream/connect"
	"github.com/toolcrib/toolcrib/registry/stream/natsserver"
	"github.com/toolcrib/toolcrib/registry/stream/natsstream"
	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/store/sqlstore"
	"github.com/toolcrib/toolcrib/tools"
)

// kindWorkers is the kind of the one source of the tools that workers serve.
const kindWorkers = "workers"

// DefaultWorkersListen is where workers connect to the stream server of this
// process when the configuration names no address.
const DefaultWorkersListen = "127.0.0.1:7712"

// streamFolder holds the streams of the server in this process, in the data
// folder.
const streamFolder = "streams"

// addressFile is the file in that folder that says where the server listens.
const addressFile = "address"

// workers is what a gateway needs to have tools run by workers. It lives as long
// as the gateway: but for which workers are admitted, changes of its settings wait for
// the next start.
type workers struct {
	settings *Workers
	address  string           // of the backend that is elsewhere, or empty
	login    *connect.Options // to it
	options  *registry.Options
	records  store.Records
	joins    bool // for a few calls; see Options.Joins

	streams string             // the folder of the server in this process, or of one that joins it
	server  *natsserver.Server // nil when the backend is elsewhere or in another process
	release func() error       // of a folder that is only for this process

	admission atomic.Pointer[admission]

	mu     sync.Mutex // guards what follows
	source *workerSource
}

// openWorkers starts the stream server of this process, if the configuration
// wants one, and finds a place for the records of calls.
func (g *Gateway) openWorkers() error {
	c := g.cfg.Workers
	if !c.wanted() {
		return nil
	}
	w := &workers{settings: c, records: g.store, joins: g.opts.Joins, release: func() error { return nil }}
	g.workers = w
	dir := g.dataDir()
	if dir == "" && !g.opts.Joins {
		var err error
		if dir, err = w.borrowFolder(g.life, g.log); err != nil {
			return fmt.Errorf("gateway: workers: %w", err)
		}
		g.log.Warn("what workers are asked to do is recorded in a temporary folder, and forgotten when this process ends; data_dir keeps it")
	}
	s := &specs{cfg: g.cfg, opts: g.opts, resolver: newResolver(g.cfg.dir)}
	w.options = c.registryOptions(s)
	w.options.Admit = w.admit
	w.admission.Store(c.admission(s))
	w.options.Bus, w.options.Logger, w.options.Ephemeral = g.bus, g.log, g.dataDir() == ""
	w.address, w.login = c.dial(s)
	w.login.Logger = g.log
	if err := s.faults.once().sorted(); err != nil {
		return err
	}
	if w.address != "" {
		return nil
	}
	encryption, err := w.encryption()
	if err != nil {
		return fmt.Errorf("gateway: workers: %w", err)
	}
	if dir != "" {
		w.streams = filepath.Join(dir, streamFolder)
	}
	if g.opts.Joins {
		return nil
	}
	server, err := natsserver.Start(w.streams, &natsserver.Options{Address: cmp.Or(c.Listen, DefaultWorkersListen),
		Token: w.login.Token, TLS: encryption, Sync: c.sync(), Logger: g.log})
	if errors.Is(err, natsserver.ErrInUse) {
		g.log.Info("another process runs the stream server of this data folder, and this one joins it")
		return nil
	}
	if err != nil {
		return c.notStarted(err)
	}
	w.server = server
	return os.WriteFile(filepath.Join(w.streams, addressFile), []byte(server.URL()), 0o600)
}

// notStarted says why there is no stream server in this process. Most often
// another program has its port, and then it names the key that chooses another.
func (c *Workers) notStarted(err error) error {
	if strings.Contains(err.Error(), syscall.EADDRINUSE.Error()) { // NATS gives no more than a text
		return fmt.Errorf("gateway: workers: cannot listen on %s: the port is in use, perhaps by another toolcrib; choose another with workers.listen",
			cmp.Or(c.Listen, DefaultWorkersListen))
	}
	return fmt.Errorf("gateway: workers: %w", err)
}

// encryption returns how the server in this process encrypts, or nil.
func (w *workers) encryption() (*tls.Config, error) {
	if w.login.CertFile == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(w.login.CertFile, w.login.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("workers.cert_file and workers.key_file: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// borrowFolder makes a folder for a gateway that has none.
func (w *workers) borrowFolder(ctx context.Context, log *slog.Logger) (string, error) {
	dir, lock, err := makeScratch(os.TempDir())
	if err != nil {
		return "", err
	}
	remove := func() error {
		err := os.RemoveAll(dir)
		if lock != nil {
			err = errors.Join(err, lock.Close())
		}
		return err
	}
	db, err := sqlstore.Open(ctx, filepath.Join(dir, storeFile), &sqlstore.Options{Logger: log})
	if err != nil {
		return "", errors.Join(err, remove())
	}
	w.records, w.release = db, func() error { return errors.Join(db.Close(), remove()) }
	return dir, nil
}

// close ends the stream server, once the source was closed.
func (w *workers) close() error {
	if w == nil {
		return nil
	}
	var err error
	if w.server != nil {
		err = w.server.Close()
	}
	return errors.Join(err, w.release())
}

// specs returns the source of the tools that workers serve, if there are any.
func (w *workers) specs() []sourceSpec {
	if w == nil {
		return nil
	}
	return []sourceSpec{{name: kindWorkers, kind: kindWorkers, at: "workers", open: w.open}}
}

// open makes the provider that reaches the workers.
func (w *workers) open(*slog.Logger) (tools.ToolProvider, error) {
	s := &workerSource{workers: w}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.source = s
	return s, nil
}

// joinTime bounds how long a program that makes a few calls and ends looks for
// the backend.
const joinTime = 5 * time.Second

// connect makes a client of the backend.
func (w *workers) connect(ctx context.Context) (stream.Client, error) {
	if w.joins {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, joinTime)
		defer cancel()
	}
	switch {
	case w.address != "":
		return connect.Client(ctx, w.address, w.login)
	case w.server == nil:
		return w.join(ctx)
	}
	client, err := w.server.Client(ctx, &natsstream.Options{Name: w.login.Name, Logger: w.login.Logger})
	if err != nil {
		return nil, err // and not a nil client in an interface
	}
	return client, nil
}

// join makes a client of the server that another process runs.
func (w *workers) join(ctx context.Context) (stream.Client, error) {
	var address []byte
	if w.streams != "" {
		address, _ = os.ReadFile(filepath.Join(w.streams, addressFile)) // who serves there has written it
	}
	if !answers(ctx, string(address)) {
		return nil, errUnserved
	}
	login := *w.login
	if login.Token == "" {
		login.TokenFile = filepath.Join(w.streams, natsserver.TokenFile)
	}
	return connect.Client(ctx, string(address), &login)
}

// errUnserved says why the tools of workers are not there.
var errUnserved = errors.New("workers are reached through a program that serves this configuration, and none does now: start 'toolcrib serve' with it")

// answers reports whether something listens at the URL that a stream server left
// behind when it started.
func answers(ctx context.Context, address string) bool {
	at, err := url.Parse(address)
	if err != nil || at.Host == "" {
		return false
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", at.Host)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// registry returns the registry of now, or nil while the backend was not reached.
func (w *workers) registry() *registry.Registry {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	s := w.source
	w.mu.Unlock()
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reg
}

// workerSource is a registry with its connection as a source of tools: both are
// there once it connected, and end with it.
type workerSource struct {
	workers *workers
	change  func()

	mu     sync.Mutex // guards what follows
	client stream.Client
	reg    *registry.Registry
	source *registry.Source
}

var (
	_ tools.ToolProvider   = (*workerSource)(nil)
	_ tools.ChangeNotifier = (*workerSource)(nil)
)

// OnChange implements tools.ChangeNotifier.
func (s *workerSource) OnChange(f func()) { s.change = f }

// Connect implements tools.ToolProvider.
func (s *workerSource) Connect(ctx context.Context) error {
	client, err := s.workers.connect(ctx)
	if err != nil {
		return err
	}
	reg, err := registry.New(ctx, client, s.workers.records, s.workers.options)
	if err != nil {
		return errors.Join(err, client.Close())
	}
	s.workers.regrant(ctx, reg)
	source := reg.Source()
	source.OnChange(s.change)
	s.mu.Lock()
	s.client, s.reg, s.source = client, reg, source
	s.mu.Unlock()
	return source.Connect(ctx)
}

// Discover implements tools.ToolProvider.
func (s *workerSource) Discover(ctx context.Context) ([]tools.ToolDescriptor, error) {
	s.mu.Lock()
	source := s.source
	s.mu.Unlock()
	return source.Discover(ctx)
}

// Close implements tools.ToolProvider.
func (s *workerSource) Close(ctx context.Context) error {
	s.mu.Lock()
	client, reg, source := s.client, s.reg, s.source
	s.client, s.reg = nil, nil
	s.mu.Unlock()
	if client == nil {
		return nil
	}
	return errors.Join(source.Close(ctx), reg.Close(ctx), client.Close())
}

// SourceID implements tools.ToolProvider.
func (s *workerSource) SourceID() tools.ToolSourceID { return registry.SourceID }

// WorkersAddress is where workers connect.
type WorkersAddress struct {
	// URL is that of the stream server, without credentials. It is empty when
	// no worker of another process can connect.
	URL string
	// TokenFile holds the token for the server of this process, or is empty.
	TokenFile string
	// Elsewhere says that the server is not in this process, and that workers
	// need credentials for it: this gateway's, or better users of their own.
	Elsewhere bool
}

// WorkersAddress returns where workers connect, and false when this process has
// no say in that.
func (g *Gateway) WorkersAddress() (WorkersAddress, bool) {
	w := g.workers
	switch {
	case w == nil:
		return WorkersAddress{}, false
	case w.address != "":
		return WorkersAddress{URL: withoutLogin(w.address), Elsewhere: true}, true
	case w.server == nil:
		return WorkersAddress{}, false
	}
	file := w.server.TokenFile()
	if whole, err := filepath.Abs(file); err == nil && file != "" {
		file = whole
	}
	return WorkersAddress{URL: w.server.URL(), TokenFile: file}, true
}

// Workers returns how the toolsets that workers serve are, sorted by name, and
// which of their tools the catalog has. It is for who operates the gateway, and
// empty while the backend was not reached.
func (g *Gateway) Workers() []registry.ToolsetState {
	reg := g.workers.registry()
	if reg == nil {
		return nil
	}
	list := reg.Toolsets()
	reasons := g.refusedOfWorkers()
	for i := range list {
		list[i].Refuse(func(name string) string {
			if tool, ok := g.cat.Resolve(name); ok && tool.Tool.Source == registry.SourceID {
				return ""
			}
			return reasons[name]
		})
	}
	return list
}

// refusedOfWorkers says why tools of workers are not in the catalog, by their names.
func (g *Gateway) refusedOfWorkers() map[string]string {
	reasons := map[string]string{}
	for _, s := range g.running() {
		if s.spec.kind != kindWorkers {
			continue
		}
		for _, r := range s.status().Refused {
			reasons[r.Name] = r.Reason
		}
	}
	return reasons
}

// registryOptions returns the options of the registry, with secrets resolved.
func (c *Workers) registryOptions(s *specs) *registry.Options {
	o := &registry.Options{
		Namespace: c.Namespace, Wait: c.Wait, Retention: time.Duration(c.Retention), MaxCallTime: time.Duration(c.MaxCallTime),
		MaxOutstanding: c.MaxOutstanding, PingInterval: time.Duration(c.PingInterval), MissedPings: c.MissedPings,
		StaleAfter: time.Duration(c.StaleAfter), DrainTimeout: time.Duration(c.DrainTimeout), SyncLater: c.sync() == natsserver.SyncLater,
	}
	if c.MaxWaiting > 0 {
		o.Requests = &stream.Options{MaxEvents: c.MaxWaiting}
	}
	return o
}

// admission says which workers are admitted.
type admission struct {
	toolsets map[string]registry.KeyGrant
	admit    registry.Admit // nil when all are
}

// admission returns which workers are admitted, with secrets resolved.
func (c *Workers) admission(s *specs) *admission {
	if len(c.Toolsets) == 0 {
		return &admission{}
	}
	toolsets := make(map[string]registry.KeyGrant, len(c.Toolsets))
	for i, t := range c.Toolsets {
		at := fmt.Sprintf("workers.toolsets[%d].", i)
		toolsets[t.Name] = registry.KeyGrant{Key: []byte(s.secret(t.Key, at+"key")), Previous: []byte(s.secret(t.PreviousKey, at+"previous_key")),
			Grant: registry.Grant{Tenants: t.Tenants, Scopes: t.AuthScopes, Prefix: t.Prefix}}
	}
	return &admission{toolsets: toolsets, admit: registry.AdmitKeys(toolsets)}
}

// admit decides about a worker as the configuration of now says.
func (w *workers) admit(ctx context.Context, a *registry.Announcement) (registry.Grant, error) {
	if admit := w.admission.Load().admit; admit != nil {
		return admit(ctx, a)
	}
	return registry.Grant{}, nil
}

// readmission returns the admission that a configuration says, or nil when that is as
// before, or when whether there are workers at all waits for the next start.
func (w *workers) readmission(cfg *Config, opts *Options) (*admission, error) {
	if w == nil || !cfg.Workers.wanted() {
		return nil, nil
	}
	s := &specs{cfg: cfg, opts: *opts, resolver: newResolver(cfg.dir)}
	next := cfg.Workers.admission(s)
	if err := s.faults.once().sorted(); err != nil {
		return nil, err
	}
	if reflect.DeepEqual(next.toolsets, w.admission.Load().toolsets) {
		return nil, nil
	}
	return next, nil
}

// readmit has workers admitted in another way, and all of them announce themselves. No
// next leaves everything as it is.
func (w *workers) readmit(ctx context.Context, next *admission) {
	if next == nil {
		return
	}
	w.admission.Store(next)
	if reg := w.registry(); reg != nil { // otherwise they are asked once the backend is reached
		w.regrant(ctx, reg)
		reg.Readmit()
	}
}

// regrant has toolsets seen as the configuration of now says, also those without a worker.
func (w *workers) regrant(ctx context.Context, reg *registry.Registry) {
	for name, t := range w.admission.Load().toolsets {
		if err := reg.Regrant(ctx, name, t.Grant); err != nil {
			w.options.Logger.Error("who sees the tools of a toolset cannot be recorded", "toolset", name, "error", err)
		}
	}
}

// dial returns the address of the backend, or nothing for that in this process,
// and how to log in.
func (c *Workers) dial(s *specs) (address string, login *connect.Options) {
	path := func(file string) string {
		if file == "" {
			return ""
		}
		return absolute(s.cfg.dir, file)
	}
	return s.secret(c.URL, "workers.url"), &connect.Options{Name: "toolcrib", Inbox: registry.GatewayInbox(c.Namespace),
		Token: s.secret(c.Token, "workers.token"), User: c.User, Password: s.secret(c.Password, "workers.password"),
		CredentialsFile: path(c.CredentialsFile), NKeyFile: path(c.NKeyFile),
		CAFile: path(c.CAFile), CertFile: path(c.CertFile), KeyFile: path(c.KeyFile)}
}

func (c *Workers) sync() natsserver.Sync {
	switch c.Sync {
	case "every":
		return natsserver.SyncEvery
	case "later":
		return natsserver.SyncLater
	}
	return natsserver.SyncGrouped
}
