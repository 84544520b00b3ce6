package redisstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/toolcrib/toolcrib/internal/loglimit"
	"github.com/toolcrib/toolcrib/registry/stream"
)

// Options say how a client connects. The zero value connects as the URL says.
type Options struct {
	// Name is what CLIENT LIST shows as the name of the connections, with '-' for what Redis does not allow there.
	// Default "toolcrib".
	Name string

	// User and Password authenticate; they go before those of the URL. PasswordFile holds the password instead, and is
	// read for each connection.
	User, Password string
	PasswordFile   string

	// Inbox is the name to which others answer this client, so that the ACL of its user can let it hear what is for it
	// alone. With "toolset:weather" answers come to channels that begin with toolcrib:<db>:inbox:toolset:weather:, and
	// without to toolcrib:<db>:inbox:<id>.
	Inbox string

	// TLS is used for URLs that begin with rediss://, and for all when it is not nil. CAFile holds certificates of
	// those who may sign the server's, and CertFile with KeyFile the client's own.
	TLS               *tls.Config
	CAFile            string
	CertFile, KeyFile string

	// MaxPayload is the size in bytes of the largest payload. Default 4 MiB, which is an eighth of what Redis lets wait
	// for a listener before it cuts the connection.
	MaxPayload int

	// Logger gets what a client has no other way to say: broken connections and messages that were lost. Nil is silent.
	Logger *slog.Logger
}

const defaultMaxPayload = 4 << 20

// logger is bounded, since peers decide how often they send what cannot be read.
func (o *Options) logger() *slog.Logger { return loglimit.New(o.Logger) }

func (o *Options) maxPayload() int {
	if o.MaxPayload == 0 {
		return defaultMaxPayload
	}
	return o.MaxPayload
}

// clientName is the name without what Redis does not allow in it.
func (o *Options) clientName() string {
	if o.Name == "" {
		return "toolcrib"
	}
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '-'
		}
		return r
	}, o.Name)
}

// Dial connects to a server by URL: "redis://host:port/database", "rediss://…" with TLS, or "unix:///path". User and
// password may stand before the host. It tries until ctx ends, but returns at once when the server refuses the
// credentials, does not let the user load scripts, is no Redis 7, or would drop streams when its memory is full, and
// when an option is against the rules.
// No error holds a password.
func Dial(ctx context.Context, url string, opts *Options) (*Client, error) {
	if opts == nil {
		opts = &Options{}
	}
	settings, err := opts.settings(url)
	if err != nil {
		return nil, err
	}
	client := newClient(settings, opts)
	var pause backoff
	for {
		err := check(ctx, client.redis)
		if err == nil {
			return client, nil
		}
		final := errors.Is(err, stream.ErrInvalid) || errors.Is(err, stream.ErrForbidden) || untrusted(err)
		if final || !pause.wait(ctx) {
			client.cancel()
			return nil, errors.Join(fmt.Errorf("%w: %s: %w", kind(err), settings.Addr, err), client.Close())
		}
	}
}

// kind is the sentinel of an error of Dial.
func kind(err error) error {
	for _, kind := range []error{stream.ErrInvalid, stream.ErrForbidden} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	return stream.ErrUnavailable
}

// untrusted reports whether the server's certificate is refused, which another try does not change.
func untrusted(err error) bool {
	var verify *tls.CertificateVerificationError
	return errors.As(err, &verify)
}

// settings makes those of go-redis.
func (o *Options) settings(address string) (*redis.Options, error) {
	if o.Inbox != "" {
		if err := stream.CheckName("inbox", o.Inbox); err != nil {
			return nil, err
		}
	}
	if o.MaxPayload < 0 {
		return nil, fmt.Errorf("%w: MaxPayload may not be negative", stream.ErrInvalid)
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("%w: the URL of the Redis server cannot be read; it is redis://host:port, rediss://host:port with TLS, or unix:///path", stream.ErrInvalid)
	}
	// What go-redis says of a URL may quote it, so that it gets one without the password.
	user := u.User
	u.User = nil
	parsed, err := redis.ParseURL(u.String())
	if err != nil {
		return nil, fmt.Errorf("%w: the URL of the Redis server: %s", stream.ErrInvalid, strings.TrimPrefix(err.Error(), "redis: "))
	}
	if err := o.secure(parsed); err != nil {
		return nil, err
	}
	if err := o.authenticate(parsed, user); err != nil {
		return nil, err
	}
	o.tune(parsed)
	return parsed, nil
}

// tune sets how connections behave. A command is sent once: whether it may be sent again, its sender knows.
func (o *Options) tune(r *redis.Options) {
	r.ClientName = o.clientName()
	r.Protocol = 2
	r.DisableIdentity = true
	r.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	r.MaxRetries = -1
	r.DialerRetries = 1
	r.DialTimeout = 2 * dialTimeout // the dialer has its own for each step
	r.ReadTimeout, r.WriteTimeout = readTimeout, writeTimeout
	r.PoolSize = 16
	r.PipelinePoolSize = -1
}

func (o *Options) authenticate(r *redis.Options, user *url.Userinfo) error {
	if user != nil {
		r.Username = user.Username()
		r.Password, _ = user.Password()
	}
	if o.User != "" {
		r.Username = o.User
	}
	if o.Password != "" && o.PasswordFile != "" {
		return fmt.Errorf("%w: only one of password and password file may be given", stream.ErrInvalid)
	}
	if o.Password != "" {
		r.Password = o.Password
	}
	if o.PasswordFile == "" {
		return nil
	}
	if _, err := readPassword(o.PasswordFile); err != nil {
		return err
	}
	name := r.Username
	r.CredentialsProviderContext = func(context.Context) (string, string, error) {
		password, err := readPassword(o.PasswordFile)
		return name, password, err
	}
	return nil
}

func readPassword(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("%w: the password cannot be read: %w", stream.ErrInvalid, err)
	}
	return strings.TrimSpace(string(data)), nil
}

// secure sets the TLS of the connections.
func (o *Options) secure(r *redis.Options) error {
	if o.TLS != nil {
		name := ""
		if r.TLSConfig != nil {
			name = r.TLSConfig.ServerName
		}
		r.TLSConfig = o.TLS.Clone()
		if r.TLSConfig.ServerName == "" {
			r.TLSConfig.ServerName = name
		}
	}
	if o.CAFile == "" && o.CertFile == "" && o.KeyFile == "" {
		return nil
	}
	if r.TLSConfig == nil {
		return fmt.Errorf("%w: certificates are given, but the URL does not begin with rediss://", stream.ErrInvalid)
	}
	return o.certificates(r.TLSConfig)
}

func (o *Options) certificates(config *tls.Config) error {
	if o.CAFile != "" {
		data, err := os.ReadFile(o.CAFile)
		if err != nil {
			return fmt.Errorf("%w: the CA file cannot be read: %w", stream.ErrInvalid, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(data) {
			return fmt.Errorf("%w: %s holds no certificate in PEM", stream.ErrInvalid, o.CAFile)
		}
	}
	if o.CertFile == "" && o.KeyFile == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
	if err != nil {
		return fmt.Errorf("%w: the certificate of the client cannot be read: %w", stream.ErrInvalid, err)
	}
	config.Certificates = []tls.Certificate{pair}
	return nil
}

// check returns ErrInvalid for a server that cannot keep what a stream promises, and what the network said when there
// is no server.
func check(ctx context.Context, client *redis.Client) error {
	info, err := client.Info(ctx, "server", "memory").Result()
	switch {
	case judge(err) == unsent || judge(err) == broken:
		return err
	case errors.Is(err, stream.ErrForbidden):
		return err
	case err != nil && strings.HasPrefix(err.Error(), noPermission):
		return nil // The user may not ask; the first use tells.
	case err != nil:
		return fmt.Errorf("%w: the server refused: %s", stream.ErrInvalid, err.Error())
	}
	return checkInfo(info)
}

func checkInfo(info string) error {
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields[name] = value
	}
	major, _, _ := strings.Cut(fields["redis_version"], ".")
	if n, err := strconv.Atoi(major); err == nil && n < 7 {
		return fmt.Errorf("%w: the server is Redis %s, and 7.0 or newer is needed", stream.ErrInvalid, fields["redis_version"])
	}
	if fields["maxmemory"] != "0" && strings.HasPrefix(fields["maxmemory_policy"], "allkeys-") {
		return fmt.Errorf("%w: the server drops calls that wait when its memory is full (maxmemory-policy %s); set noeviction",
			stream.ErrInvalid, fields["maxmemory_policy"])
	}
	return nil
}
