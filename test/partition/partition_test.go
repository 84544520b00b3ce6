//go:build linux

package partition

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/internal/peertest"
)

const (
	cutVariable    = "TOOLCRIB_CUT"     // for how long the link is cut
	insideVariable = "PARTITION_INSIDE" // set in the process that has a namespace
	password       = "partition"        // of a Redis that only this machine reaches
)

// A timing is for how long the link is cut, and when a worker counts as down.
type timing struct {
	cut, ping, stale time.Duration
}

const missedPings = 3

func timingOf(t *testing.T) *timing {
	t.Helper()
	cut, err := time.ParseDuration(cmp.Or(os.Getenv(cutVariable), "20s"))
	if err != nil || cut < 20*time.Second {
		t.Fatalf("%s: expected a duration of 20s or more", cutVariable)
	}
	if cut < time.Minute {
		return &timing{cut: cut, ping: 2 * time.Second, stale: 8 * time.Second}
	}
	return &timing{cut: cut, ping: 10 * time.Second, stale: 40 * time.Second}
}

// bound is when a worker that gives no answer must be known to be down. It waits for a ping, misses three, and a busy
// machine gets some more.
func (c *timing) bound() time.Duration { return (missedPings+1)*c.ping + 5*time.Second }

// The far worker's link is cut in a namespace where there is one, and by a proxy elsewhere.
func TestCutLink(t *testing.T) {
	if os.Getenv(insideVariable) != "" {
		run(t, "ip", "link", "set", "lo", "up")
		cutLinks(t, func(t *testing.T, n int) link { return plug(t, n) })
		return
	}
	for _, name := range []string{"ip", "tc", "nsenter"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Fatalf("%v; install iproute2 and util-linux (apt-get install iproute2 util-linux)", err)
		}
	}
	t.Parallel()
	peertest.Build(t, "./cmd/toolcrib")
	attr, refused := namespace()
	if refused != nil {
		t.Logf("the link is a proxy, because this kernel grants no network namespace: %v", refused)
		cutLinks(t, func(*testing.T, int) link { return newHose() })
		return
	}
	t.Log("the link leads to a network namespace")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCutLink$", "-test.v", "-test.timeout=10m")
	cmd.Env = append(os.Environ(), insideVariable+"=1")
	cmd.SysProcAttr = attr
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}

// A proxy cuts as well, which is what is left where there are no namespaces.
func TestCutProxy(t *testing.T) {
	t.Parallel()
	c := startCase(t, newHose(), false)
	c.exercise(t)
}

func cutLinks(t *testing.T, lay func(*testing.T, int) link) {
	for n, redis := range []bool{false, true} {
		name := "NATS"
		if redis {
			name = "Redis"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			startCase(t, lay(t, n+1), redis).exercise(t)
		})
	}
}

// A deployment is a gateway, a worker near it and one at the other end of a link.
type deployment struct {
	*timing
	link    link
	binary  string
	dir     string
	client  *api.Client
	connect string   // the stream server's address for the near worker
	login   []string // flags of a worker
	log     string   // of what tools ran
	far     string   // instance of the far worker
}

func startCase(t *testing.T, l link, redis bool) *deployment {
	t.Helper()
	d := &deployment{timing: timingOf(t), link: l, binary: peertest.Build(t, "./cmd/toolcrib"), dir: t.TempDir()}
	d.log = filepath.Join(d.dir, "log")
	backend := d.embedded(t)
	if redis {
		backend = d.redis(t)
	}
	config := filepath.Join(d.dir, "toolcrib.yaml")
	text := fmt.Sprintf("data_dir: data\nworkers:\n  ping_interval: %s\n  missed_pings: %d\n  stale_after: %s\n%s", d.ping, missedPings, d.stale, backend)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	gate := exec.Command(d.binary, "serve", "-c", config, "--listen", "127.0.0.1:0")
	gate.Env = append(os.Environ(), "REDIS_PASSWORD="+password)
	p := peertest.Start(t, gate)
	var err error
	if d.client, err = api.NewClient(p.Line(t, `^listening on (http://\S+)`)[1], nil); err != nil {
		t.Fatal(err)
	}
	d.connect = p.Line(t, `worker --toolset NAME --connect (\S+)`)[1]
	if !redis {
		d.login = append(d.login, "--token-file", p.Line(t, `--token-file (\S+)`)[1])
	}
	return d
}

// embedded configures the stream server in the gateway's process.
func (d *deployment) embedded(t *testing.T) string {
	cert, key := peertest.Certificate(t, d.dir, net.ParseIP(d.link.host()))
	d.login = []string{"--ca-file", cert}
	return fmt.Sprintf("  enabled: true\n  listen: %s:0\n  cert_file: %s\n  key_file: %s\n", d.link.host(), cert, key)
}

// redis starts a Redis that the other end of the link reaches too.
func (d *deployment) redis(t *testing.T) string {
	server := peertest.StartRedis(t, &peertest.RedisOptions{Sync: true, Password: password, Settings: []string{"--bind", "0.0.0.0"}})
	_, port, err := net.SplitHostPort(server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	d.login = nil
	return fmt.Sprintf("  url: redis://%s\n  password: ${REDIS_PASSWORD}\n", net.JoinHostPort(d.link.host(), port))
}

// worker starts a worker.
func (d *deployment) worker(t *testing.T, where string, concurrency int) {
	t.Helper()
	config := filepath.Join(d.dir, where+".yaml")
	text := fmt.Sprintf("tools:\n  mcp_servers:\n    - name: log\n      command: [%q]\n      policy: {timeout_ms: 300000}\n"+
		"      env: {%s: tool, %s: %s, %s: %q, GORACE: atexit_sleep_ms=0}\n", os.Args[0], modeVariable, whereVariable, where, logVariable, d.log)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	address := d.connect
	if where == "far" {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		u.Host = d.link.through(t, u.Port())
		address = u.String()
	}
	cmd := exec.Command(d.binary, append([]string{"worker", "--toolset", "log", "--connect", address, "-c", config,
		"--concurrency", fmt.Sprint(concurrency), "--drain-timeout", "5s"}, d.login...)...)
	cmd.Env = append(os.Environ(), "TOOLCRIB_WORKERS_PASSWORD="+password)
	if where == "far" {
		moved := d.link.far(cmd)
		cmd = moved
	}
	peertest.Start(t, cmd).Line(t, "the worker serves")
}
