// Package connect makes a client of the backend that a URL names.
package connect

import (
	"context"
	"fmt"
	"log/slog"
	neturl "net/url"
	"os"
	"strconv"
	"strings"

	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/registry/stream/natsstream"
	"github.com/toolcrib/toolcrib/registry/stream/redisstream"
)

// Options are what a connection needs beside its URL. What the backend of the
// URL has no use for is refused.
type Options struct {
	// Name is what the backend shows as the name of the connection.
	Name string

	// Inbox is the name to which this client is answered, by which permissions
	// of the backend tell it from others: registry.GatewayInbox or
	// registry.WorkerInbox. Empty is one that all clients have in common.
	Inbox string

	// User and Password authenticate. PasswordFile holds the password instead.
	User, Password string
	PasswordFile   string

	// Token authenticates with NATS, or TokenFile holds it and is read for
	// each connection.
	Token, TokenFile string
	// CredentialsFile is a .creds file of NATS, and NKeyFile a file with the
	// seed of an nkey.
	CredentialsFile, NKeyFile string

	// CAFile holds certificates of those who may sign the server's, and
	// CertFile with KeyFile the client's own.
	CAFile, CertFile, KeyFile string

	// Logger hears of broken connections. Nil is silent.
	Logger *slog.Logger
}

// Client connects to the backend of a URL: nats:// or tls:// for NATS, where
// commas part the servers of a cluster, and redis:// or rediss:// for Redis. It
// tries until ctx ends, but returns at once what another try would not mend.
func Client(ctx context.Context, url string, opts *Options) (stream.Client, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if err := Check(url, &o); err != nil {
		return nil, err
	}
	if isRedis(url) {
		client, err := redisstream.Dial(ctx, url, &redisstream.Options{Name: o.Name, Inbox: o.Inbox, User: o.User, Password: o.Password,
			PasswordFile: o.PasswordFile, CAFile: o.CAFile, CertFile: o.CertFile, KeyFile: o.KeyFile, Logger: o.Logger})
		if err != nil {
			return nil, err // and not a nil client in an interface
		}
		return client, nil
	}
	if o.PasswordFile != "" {
		password, err := os.ReadFile(o.PasswordFile)
		if err != nil {
			return nil, fmt.Errorf("%w: the password cannot be read: %w", stream.ErrInvalid, err)
		}
		o.Password = strings.TrimSpace(string(password))
	}
	client, err := natsstream.Dial(ctx, url, &natsstream.Options{Name: o.Name, Inbox: o.Inbox, Token: o.Token, TokenFile: o.TokenFile,
		CredentialsFile: o.CredentialsFile, NKeyFile: o.NKeyFile, User: o.User, Password: o.Password, CAFile: o.CAFile,
		CertFile: o.CertFile, KeyFile: o.KeyFile, Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	return client, nil
}

// Check returns ErrInvalid for a URL of no backend, and for options that its
// backend has no use for.
func Check(url string, o *Options) error {
	scheme, rest, found := strings.Cut(url, "://")
	switch {
	case !found || rest == "":
		return fmt.Errorf("%w: the address of a stream server begins with nats://, tls://, redis:// or rediss://", stream.ErrInvalid)
	case scheme == "nats" || scheme == "tls":
		return checkServers(url)
	case !isRedis(url):
		return fmt.Errorf("%w: the address of a stream server begins with nats://, tls://, redis:// or rediss://, and not with %.16q", stream.ErrInvalid, scheme+"://")
	case o.Token != "" || o.TokenFile != "" || o.CredentialsFile != "" || o.NKeyFile != "":
		return fmt.Errorf("%w: Redis takes a user and a password, and no token, credentials file or nkey", stream.ErrInvalid)
	}
	return nil
}

// checkServers checks each server of a NATS cluster, and quotes none, as a part that
// cannot be read may be one of a password.
func checkServers(urls string) error {
	for i, part := range strings.Split(urls, ",") {
		scheme, _, found := strings.Cut(part, "://")
		if !found {
			part = "nats://" + part
		} else if scheme != "nats" && scheme != "tls" {
			return fmt.Errorf("%w: server %d of the address is none of nats:// or tls://, as the first one is", stream.ErrInvalid, i+1)
		}
		u, err := neturl.Parse(part)
		if err != nil || u.Hostname() == "" {
			return fmt.Errorf("%w: server %d of the address is not of the form nats://host:port", stream.ErrInvalid, i+1)
		}
		if port, err := strconv.ParseUint(u.Port(), 10, 16); u.Port() != "" && (err != nil || port == 0) {
			return fmt.Errorf("%w: the port of server %d of the address is not from 1 to 65535", stream.ErrInvalid, i+1)
		}
	}
	return nil
}

func isRedis(url string) bool {
	return strings.HasPrefix(url, "redis://") || strings.HasPrefix(url, "rediss://")
}
