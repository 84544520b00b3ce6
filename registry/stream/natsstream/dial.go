package natsstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/toolcrib/toolcrib/internal/loglimit"
	"github.com/toolcrib/toolcrib/registry/stream"
)

// Options say how a client connects. The zero value connects without
// credentials.
type Options struct {
	// Name is what the server shows as the name of the connection. Default
	// "toolcrib".
	Name string

	// Prefix begins all subjects and names on the server, so that several
	// installations can share one. It is of letters, digits, '-' and '_', at
	// most 32 of them. Default "toolcrib".
	Prefix string

	// Inbox is the name to which the server and others answer this client, so
	// that the permissions of its user can let it hear what is for it alone.
	// With "toolset:weather" answers come to subjects that begin with
	// toolcrib.inbox.toolset.weather. Empty leaves them to begin with _INBOX,
	// where who may listen hears the answers to all.
	Inbox string

	// Token authenticates, or TokenFile holds the token and is read for each
	// connection.
	Token     string
	TokenFile string

	// CredentialsFile is a .creds file with a JWT and its key, and NKeyFile a
	// file with the seed of an nkey.
	CredentialsFile string
	NKeyFile        string

	// User and Password authenticate where the server wants them.
	User, Password string

	// TLS is used for connections to URLs that begin with tls://, and for all
	// when it is not nil. CAFile holds certificates of those who may sign the
	// server's, and CertFile with KeyFile the client's own.
	TLS               *tls.Config
	CAFile            string
	CertFile, KeyFile string

	// Replicas is how many servers of a cluster keep a stream that this client
	// makes. Zero is three in a cluster, and one on a single server.
	Replicas int

	// InProcess is a server in this process, which needs no URL.
	InProcess nats.InProcessConnProvider

	// Keeper looks after the files of a server in this process. Nil leaves them
	// to the server.
	Keeper Keeper

	// Logger gets what a client has no other way to say: broken connections
	// and messages that were lost. Nil is silent.
	Logger *slog.Logger
}

// Keeper looks after the files of a server that a client adds events to.
type Keeper interface {
	// Room is asked before an event is sent. Its error is that of Add.
	Room() error

	// Persist returns when what the server answered to have stored is on disk.
	// It gets the name of the JetStream stream, and Add returns after it.
	Persist(ctx context.Context, stream string) error
}

// logger is bounded, since peers decide how often they send what cannot be read.
func (o *Options) logger() *slog.Logger { return loglimit.New(o.Logger) }

func (o *Options) keeper() Keeper {
	if o.Keeper == nil {
		return noKeeper{}
	}
	return o.Keeper
}

func (o *Options) prefix() string {
	if o.Prefix == "" {
		return "toolcrib"
	}
	return o.Prefix
}

func (o *Options) check() error {
	prefix := o.prefix()
	for i := range len(prefix) {
		if !isPlain(prefix[i]) || i >= 32 {
			return fmt.Errorf("%w: the prefix %q must be of at most 32 letters, digits, '-' and '_'", stream.ErrInvalid, prefix)
		}
	}
	if o.Inbox != "" {
		if err := stream.CheckName("inbox", o.Inbox); err != nil {
			return err
		}
	}
	if o.Replicas < 0 || o.Replicas > 5 {
		return fmt.Errorf("%w: a stream has from 1 to 5 replicas, not %d", stream.ErrInvalid, o.Replicas)
	}
	return nil
}

// Times of a connection.
const (
	dialTimeout    = 5 * time.Second
	pingInterval   = 10 * time.Second
	reconnectFirst = 50 * time.Millisecond
	reconnectMost  = 2 * time.Second
	closeTimeout   = 5 * time.Second
)

// reconnectBuffer is how many bytes of acknowledgements wait for the connection
// to be made again.
const reconnectBuffer = 16 << 20

// Dial connects to a server by URL, "nats://host:port" or "tls://host:port", or
// to one of several that commas part. It tries until ctx ends, but returns at
// once when the server refuses the credentials, the options are against the
// rules, or the user may not hear answers, which is an ErrForbidden.
func Dial(ctx context.Context, url string, opts *Options) (*Client, error) {
	if opts == nil {
		opts = &Options{}
	}
	if err := opts.check(); err != nil {
		return nil, err
	}
	var client *Client
	hooks := &hooks{log: opts.logger()}
	settings, err := opts.settings(hooks)
	if err != nil {
		return nil, err
	}
	conn, err := dial(ctx, url, settings)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", stream.ErrUnavailable, withoutSecrets(url), err)
	}
	if client, err = newClient(conn, opts); err != nil {
		conn.Close()
		return nil, fmt.Errorf("%s: %w", withoutSecrets(url), err)
	}
	hooks.client.Store(client)
	return client, nil
}

func dial(ctx context.Context, url string, settings []nats.Option) (*nats.Conn, error) {
	for wait := reconnectFirst; ; wait = min(2*wait, reconnectMost) {
		conn, err := nats.Connect(url, settings...)
		if err == nil || isFinal(err) {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", err, ctx.Err())
		case <-time.After(wait):
		}
	}
}

// isFinal reports whether another try gives the same error.
func isFinal(err error) bool {
	return errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) || errors.Is(err, nats.ErrInvalidConnection) ||
		errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) || strings.Contains(err.Error(), "tls: failed to verify certificate") ||
		strings.Contains(err.Error(), "parse ")
}

// withoutSecrets returns URLs without what stands before the host.
func withoutSecrets(urls string) string {
	parts := strings.Split(urls, ",")
	for i, part := range parts {
		scheme, rest, found := strings.Cut(part, "://")
		if !found {
			scheme, rest = "nats", part
		}
		parts[i] = scheme + "://" + rest[strings.LastIndexByte(rest, '@')+1:]
	}
	return strings.Join(parts, ",")
}

func (o *Options) settings(h *hooks) ([]nats.Option, error) {
	name := o.Name
	if name == "" {
		name = "toolcrib"
	}
	settings := []nats.Option{nats.Name(name), nats.Timeout(dialTimeout), nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(),
		nats.PingInterval(pingInterval), nats.MaxPingsOutstanding(maxPings), nats.ReconnectBufSize(reconnectBuffer),
		nats.SetCustomDialer(&dialer{net.Dialer{Timeout: dialTimeout}}),
		nats.CustomReconnectDelay(reconnectDelay), nats.DisconnectErrHandler(h.disconnected), nats.ReconnectHandler(h.reconnected),
		nats.ErrorHandler(h.failed)}
	if o.Inbox != "" {
		settings = append(settings, nats.CustomInboxPrefix(o.prefix()+".inbox."+subjectOf(o.Inbox)))
	}
	if o.InProcess != nil {
		settings = append(settings, nats.InProcessServer(o.InProcess))
	}
	credentials, err := o.credentials()
	if err != nil {
		return nil, err
	}
	return append(append(settings, credentials...), o.tls()...), nil
}

func (o *Options) credentials() ([]nats.Option, error) {
	var settings []nats.Option
	if o.Token != "" {
		settings = append(settings, nats.Token(o.Token))
	}
	if o.TokenFile != "" {
		if _, err := readToken(o.TokenFile); err != nil {
			return nil, err
		}
		settings = append(settings, nats.TokenHandler(func() string {
			token, _ := readToken(o.TokenFile) // An empty token is refused by the server.
			return token
		}))
	}
	if o.CredentialsFile != "" {
		settings = append(settings, nats.UserCredentials(o.CredentialsFile))
	}
	if o.NKeyFile != "" {
		key, err := nats.NkeyOptionFromSeed(o.NKeyFile)
		if err != nil {
			return nil, fmt.Errorf("%w: the nkey in %s cannot be read", stream.ErrInvalid, o.NKeyFile)
		}
		settings = append(settings, key)
	}
	if o.User != "" {
		settings = append(settings, nats.UserInfo(o.User, o.Password))
	}
	if len(settings) > 1 {
		return nil, fmt.Errorf("%w: only one of token, token file, credentials file, nkey file and user may be given", stream.ErrInvalid)
	}
	return settings, nil
}

func readToken(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("%w: the token cannot be read: %w", stream.ErrInvalid, err)
	}
	return strings.TrimSpace(string(data)), nil
}

func (o *Options) tls() []nats.Option {
	var settings []nats.Option
	if o.TLS != nil {
		settings = append(settings, nats.Secure(o.TLS.Clone()))
	}
	if o.CAFile != "" {
		settings = append(settings, nats.RootCAs(o.CAFile))
	}
	if o.CertFile != "" || o.KeyFile != "" {
		settings = append(settings, nats.ClientCert(o.CertFile, o.KeyFile))
	}
	return settings
}
