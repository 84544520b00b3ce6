package redisstream_test

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/registry/stream/redisstream"
)

const secret = "s3cret/with?odd#parts"

// roundTrip puts an event through a stream, and a question through the bus.
func roundTrip(t *testing.T, c *redisstream.Client) {
	t.Helper()
	ctx := peertest.Bounded(t)
	s := open(t, c, "round", nil)
	sink := openSink(t, s, "provider", nil)
	defer sink.Close()
	if _, err := s.Add(ctx, "call", []byte("1")); err != nil {
		t.Fatal(err)
	}
	ack(t, receive(t, sink))
	answering, err := c.Respond(ctx, "ask", func(_ context.Context, m stream.Message) stream.Message { return m })
	if err != nil {
		t.Fatal(err)
	}
	defer answering.Close()
	if got, err := c.Request(ctx, "ask", stream.Message{Name: "x"}); err != nil || got.Name != "x" {
		t.Errorf("Request = %+v, %v", got, err)
	}
}

func TestTLSAndPassword(t *testing.T) {
	server := peertest.StartRedis(t, &peertest.RedisOptions{TLS: true, Password: secret})
	c, err := redisstream.Dial(peertest.Bounded(t), server.URL(), &redisstream.Options{TLS: server.TLS()})
	if err != nil {
		t.Fatal(err)
	}
	roundTrip(t, c)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestCertificateFile(t *testing.T) {
	server := peertest.StartRedis(t, &peertest.RedisOptions{TLS: true})
	c, err := redisstream.Dial(peertest.Bounded(t), server.URL(), &redisstream.Options{CAFile: server.CAFile()})
	if err != nil {
		t.Fatal(err)
	}
	roundTrip(t, c)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestClientName(t *testing.T) {
	server := peertest.StartRedis(t, nil)
	c, err := redisstream.Dial(peertest.Bounded(t), server.URL(), &redisstream.Options{Name: "größe of\nworker 1"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if list := observe(t, server).ClientList(t.Context()).Val(); !strings.Contains(list, "name=gr--e-of-worker-1 ") {
		t.Errorf("the clients are %s", list)
	}
}

func TestPasswordFile(t *testing.T) {
	server := peertest.StartRedis(t, &peertest.RedisOptions{Password: secret})
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := redisstream.Dial(peertest.Bounded(t), "redis://"+server.Addr(), &redisstream.Options{PasswordFile: file})
	if err != nil {
		t.Fatal(err)
	}
	roundTrip(t, c)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestRefused(t *testing.T) {
	guarded := peertest.StartRedis(t, &peertest.RedisOptions{Password: "other"})
	secure := peertest.StartRedis(t, &peertest.RedisOptions{TLS: true})
	evicting := peertest.StartRedis(t, &peertest.RedisOptions{Settings: []string{"--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru"}})
	for _, tt := range []struct {
		name, url string
		options   redisstream.Options
		want      error
		says      string
	}{
		{"wrong password", "redis://" + guarded.Addr(), redisstream.Options{Password: secret}, stream.ErrInvalid, "WRONGPASS"},
		{"no password", "redis://" + guarded.Addr(), redisstream.Options{}, stream.ErrInvalid, "NOAUTH"},
		{"unknown certificate", secure.URL(), redisstream.Options{}, stream.ErrUnavailable, "certificate"},
		{"server that evicts", evicting.URL(), redisstream.Options{}, stream.ErrInvalid, "allkeys-lru"},
		{"no URL", "://" + secret, redisstream.Options{}, stream.ErrInvalid, "redis://host:port"},
		{"another scheme", "http://user:" + secret + "@host", redisstream.Options{}, stream.ErrInvalid, "redis"},
		{"no number of a database", "redis://u:p%40" + "s3cret@h/x", redisstream.Options{}, stream.ErrInvalid, "database"},
		{"password twice", "redis://h", redisstream.Options{Password: secret, PasswordFile: "x"}, stream.ErrInvalid, "only one"},
		{"no password file", "redis://h", redisstream.Options{PasswordFile: "/nowhere"}, stream.ErrInvalid, "/nowhere"},
		{"certificate without TLS", "redis://h", redisstream.Options{CAFile: "x"}, stream.ErrInvalid, "rediss://"},
		{"no certificate file", "rediss://h", redisstream.Options{CAFile: "/nowhere"}, stream.ErrInvalid, "/nowhere"},
		{"no key", "rediss://h", redisstream.Options{CertFile: "/nowhere"}, stream.ErrInvalid, "certificate of the client"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := redisstream.Dial(peertest.Bounded(t), tt.url, &tt.options)
			if err == nil {
				c.Close()
				t.Fatal("connected")
			}
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("Dial = %v", err)
			}
			if strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error holds the password: %v", err)
			}
		})
	}
}

func TestNobodyThere(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := redisstream.Dial(ctx, "redis://user:"+"s3cret@"+peertest.FreeAddr(t), nil)
	if !errors.Is(err, stream.ErrUnavailable) || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("Dial = %v", err)
	}
}

func TestTLSConfigIsKept(t *testing.T) {
	config := &tls.Config{MinVersion: tls.VersionTLS13}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := redisstream.Dial(ctx, "rediss://"+peertest.FreeAddr(t), &redisstream.Options{TLS: config}); err == nil {
		t.Fatal("connected")
	}
	if config.ServerName != "" {
		t.Errorf("the caller's configuration was changed: %q", config.ServerName)
	}
}

// The permissions that docs/design/streams.md names are enough; a server that may not be asked what it is, is believed.
func TestUserWithLimits(t *testing.T) {
	server := peertest.StartRedis(t, nil)
	operator := observe(t, server)
	for _, tt := range []struct{ name, info string }{{"may ask", "+info"}, {"may not ask", "-info"}} {
		t.Run(tt.name, func(t *testing.T) {
			err := operator.Do(t.Context(), "ACL", "SETUSER", "worker", "reset", "on", ">"+secret, "~pulse:stream:*", "~{pulse:stream:*",
				"&toolcrib:*", "+@stream", "+@hash", "+@sortedset", "+@scripting", "+@pubsub", "+@connection",
				"+del", "+exists", "+pexpire", "+pttl", "+time", tt.info).Err()
			if err != nil {
				t.Fatal(err)
			}
			c, err := redisstream.Dial(peertest.Bounded(t), "redis://"+server.Addr(), &redisstream.Options{User: "worker", Password: secret})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			roundTrip(t, c)
			s := open(t, c, "limits", nil)
			sink := openSink(t, s, "provider", nil)
			defer sink.Close()
			if _, err := s.Add(t.Context(), "call", nil); err != nil {
				t.Fatal(err)
			}
			event := receive(t, sink)
			if err := errors.Join(event.Extend(t.Context()), event.Nack(t.Context(), 0)); err != nil {
				t.Fatal(err)
			}
			event = receive(t, sink)
			if event.Deliveries != 2 {
				t.Errorf("delivery %d", event.Deliveries)
			}
			ack(t, event)
			answer := open(t, c, "result:1", &stream.Options{TTL: time.Minute})
			if _, err := answer.Add(t.Context(), "result", nil); err != nil {
				t.Error(err)
			}
			if err := errors.Join(s.RemoveSink(t.Context(), "provider"), s.Destroy(t.Context())); err != nil {
				t.Error(err)
			}
		})
	}
}
