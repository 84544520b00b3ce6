//go:build unix

package peertest

import (
	"crypto/tls"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// RedisEnv names the environment variable that holds the redis-server or valkey-server which tests start. Unset, it is
// the redis-server on the PATH.
const RedisEnv = "TOOLCRIB_REDIS_SERVER"

// RedisOptions say how a Redis keeps and guards its data. The zero value keeps them in memory alone and admits everyone.
type RedisOptions struct {
	// Sync keeps an append-only file that is synced before a write is answered.
	Sync bool
	// Password is what clients must name.
	Password string
	// TLS makes the server speak TLS only, with a certificate for its loopback address.
	TLS bool
	// Settings are more of the server's own, such as "--maxmemory", "8mb".
	Settings []string
}

// Redis is a Redis server of a test's own, on a loopback port. Its data outlive its process, so that it can be killed
// and started again.
type Redis struct {
	t        testing.TB
	options  RedisOptions
	dir      string
	host     string
	port     string
	identity *identity
	process  *Process
}

// StartRedis starts a Redis and waits until it serves. It is stopped when the test ends. The test fails where no
// server is installed.
func StartRedis(t testing.TB, o *RedisOptions) *Redis {
	t.Helper()
	if o == nil {
		o = &RedisOptions{}
	}
	r := &Redis{t: t, options: *o, dir: t.TempDir()}
	var err error
	if r.host, r.port, err = net.SplitHostPort(FreeAddr(t)); err != nil {
		t.Fatalf("peertest: %v", err)
	}
	if o.TLS {
		r.identity = newIdentity(t, r.dir)
	}
	r.Start()
	return r
}

// Start starts the server again, with its data, after Stop or Kill.
func (r *Redis) Start() {
	r.t.Helper()
	r.process = Start(r.t, exec.Command(redisBinary(r.t), r.arguments()...))
	r.process.Line(r.t, "Ready to accept connections")
}

func redisBinary(t testing.TB) string {
	t.Helper()
	name := os.Getenv(RedisEnv)
	if name == "" {
		name = "redis-server"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("peertest: no Redis: %v; install redis-server 7 or newer (apt-get install redis-server), or name one in %s", err, RedisEnv)
	}
	return path
}

func (r *Redis) arguments() []string {
	args := []string{"--bind", r.host, "--dir", r.dir, "--save", "", "--daemonize", "no"}
	if r.options.Sync {
		args = append(args, "--appendonly", "yes", "--appendfsync", "always")
	}
	if r.options.Password != "" {
		args = append(args, "--requirepass", r.options.Password)
	}
	if r.identity == nil {
		args = append(args, "--port", r.port)
	} else {
		args = append(args, "--port", "0", "--tls-port", r.port, "--tls-auth-clients", "no",
			"--tls-cert-file", filepath.Join(r.dir, certFile), "--tls-key-file", filepath.Join(r.dir, keyFile),
			"--tls-ca-cert-file", filepath.Join(r.dir, certFile))
	}
	return append(args, r.options.Settings...)
}

// Addr returns the server's host and port.
func (r *Redis) Addr() string { return net.JoinHostPort(r.host, r.port) }

// URL returns the server's address as clients take it, with the password.
func (r *Redis) URL() string {
	u := url.URL{Scheme: "redis", Host: r.Addr()}
	if r.options.TLS {
		u.Scheme = "rediss"
	}
	if r.options.Password != "" {
		u.User = url.UserPassword("", r.options.Password)
	}
	return u.String()
}

// TLS returns what a client needs to trust the server, nil for one that does not speak TLS.
func (r *Redis) TLS() *tls.Config {
	if r.identity == nil {
		return nil
	}
	return &tls.Config{RootCAs: r.identity.roots, ServerName: r.host, MinVersion: tls.VersionTLS12}
}

// CAFile is a file that holds the certificate of a server that speaks TLS.
func (r *Redis) CAFile() string { return filepath.Join(r.dir, certFile) }

// Stop ends the server in order, as an upgrade does.
func (r *Redis) Stop() { r.process.Stop() }

// Kill ends the server at once, as a lost machine does, but for what the system has written of its files.
func (r *Redis) Kill() {
	r.process.signal(syscall.SIGKILL)
	<-r.process.done
}

// Pause stops the server's clock: connections stay open, and nothing is answered before Resume.
func (r *Redis) Pause() { r.process.signal(syscall.SIGSTOP) }

// Resume lets a paused server go on.
func (r *Redis) Resume() { r.process.signal(syscall.SIGCONT) }
