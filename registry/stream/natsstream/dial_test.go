package natsstream_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/registry/stream/natsstream"
)

// run starts a server with these options, which listens on a free port.
func run(t *testing.T, options *server.Options) string {
	t.Helper()
	options.Host, options.Port, options.NoLog, options.NoSigs = "127.0.0.1", server.RANDOM_PORT, true, true
	options.JetStream, options.StoreDir = true, t.TempDir()
	s, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(startLimit) {
		t.Fatal("the server does not start")
	}
	return s.ClientURL()
}

// use makes sure that a client can add an event.
func use(t *testing.T, url string, opts *natsstream.Options) {
	t.Helper()
	c := dial(t, url, opts)
	defer c.Close() //nolint:errcheck // It never fails.
	s, err := c.Stream(t.Context(), "toolset:a:requests", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Add(t.Context(), "call", nil); err != nil {
		t.Fatal(err)
	}
}

// refuse makes sure that a client is refused at once, and that no secret is told.
func refuse(t *testing.T, url string, opts *natsstream.Options, secret string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	c, err := natsstream.Dial(ctx, url, opts)
	if err == nil {
		c.Close() //nolint:errcheck // It never fails.
		t.Fatalf("Dial with %+v = nil, want an error", opts)
	}
	if after := time.Since(began); after > 20*time.Second {
		t.Errorf("refused only after %v", after)
	}
	if secret != "" && strings.Contains(err.Error(), secret) {
		t.Errorf("the error tells a secret: %v", err)
	}
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTokenOfAServer(t *testing.T) {
	url := run(t, &server.Options{Authorization: "s3cr3t"})
	use(t, url, &natsstream.Options{Token: "s3cr3t"})
	use(t, url, &natsstream.Options{TokenFile: write(t, "token", "s3cr3t\n")})
	use(t, strings.Replace(url, "nats://", "nats://s3cr3t@", 1), nil)
	refuse(t, url, nil, "")
	refuse(t, url, &natsstream.Options{Token: "wr0ng"}, "wr0ng")
	refuse(t, strings.Replace(url, "nats://", "nats://wr0ng@", 1), nil, "wr0ng")
	refuse(t, url, &natsstream.Options{TokenFile: filepath.Join(t.TempDir(), "none")}, "")
}

func TestNKey(t *testing.T) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	url := run(t, &server.Options{Nkeys: []*server.NkeyUser{{Nkey: public}}})
	use(t, url, &natsstream.Options{NKeyFile: write(t, "seed", string(seed))})
	refuse(t, url, &natsstream.Options{NKeyFile: write(t, "seed", "SUno seed")}, "SUno seed")
}

// authority signs certificates for the loopback address.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{cert: &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}}
	var der []byte
	a.key, der = sign(t, a.cert, a.cert, nil)
	a.pem = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return a
}

// sign makes a key and a certificate for it, signed by parent or by itself.
func sign(t *testing.T, cert, parent *x509.Certificate, by *ecdsa.PrivateKey) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if by == nil {
		by = key
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	return key, der
}

// issue writes a certificate for the loopback address and its key to files.
func (a *authority) issue(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, der := sign(t, &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}, a.cert, a.key)
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))),
		write(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})))
}

func TestTLS(t *testing.T) {
	a := newAuthority(t)
	ca := write(t, "ca.pem", a.pem)
	cert, key := a.issue(t)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(a.pem))
	url := run(t, &server.Options{TLS: true, TLSTimeout: 5, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}})
	clientCert, clientKey := a.issue(t)
	use(t, url, &natsstream.Options{CAFile: ca, CertFile: clientCert, KeyFile: clientKey})
	use(t, strings.Replace(url, "nats://", "tls://", 1), &natsstream.Options{CAFile: ca, CertFile: clientCert, KeyFile: clientKey})
	refuse(t, url, &natsstream.Options{CertFile: clientCert, KeyFile: clientKey}, "")
	refuse(t, url, &natsstream.Options{CAFile: filepath.Join(t.TempDir(), "none")}, "")
}

func TestDialRefusesBadOptions(t *testing.T) {
	for _, opts := range []*natsstream.Options{{Prefix: "a.b"}, {Prefix: strings.Repeat("p", 33)}, {Replicas: -1}, {Replicas: 6}, {Token: "a", User: "b"}} {
		if _, err := natsstream.Dial(t.Context(), "nats://127.0.0.1:1", opts); !errors.Is(err, stream.ErrInvalid) {
			t.Errorf("%+v: %v", opts, err)
		}
	}
}

// A worker may be started before the server that it is to reach.
func TestDialWaitsForTheServer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := natsstream.Dial(ctx, "nats://user:s3cr3t@"+freeAddress(t), nil)
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, stream.ErrUnavailable) || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("Dial = %v", err)
	}
}

// Installations that share a server do not meet.
func TestPrefix(t *testing.T) {
	url := run(t, &server.Options{})
	one, two := dial(t, url, &natsstream.Options{Prefix: "one"}), dial(t, url, &natsstream.Options{Prefix: "two"})
	defer one.Close() //nolint:errcheck // It never fails.
	defer two.Close() //nolint:errcheck // It never fails.
	for _, c := range []stream.Client{one, two} {
		for _, opts := range []*stream.Options{nil, {TTL: time.Minute}} {
			s, err := c.Stream(t.Context(), "same", opts)
			if err != nil {
				t.Fatal(err)
			}
			if size, err := s.Size(t.Context()); err != nil || size.Waiting != 0 {
				t.Errorf("Size = %+v, %v; want none of the other's", size, err)
			}
			if _, err := s.Add(t.Context(), "call", nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}
