package natsstream_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/registry/stream/natsstream"
	"github.com/toolcrib/toolcrib/registry/stream/streamtest"
)

func TestMain(m *testing.M) {
	if file := os.Getenv(serverVariable); file != "" {
		serve(file)
	}
	goleak.VerifyTestMain(m)
}

// dial connects as the suite does.
func dial(t *testing.T, url string, opts *natsstream.Options) stream.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c, err := natsstream.Dial(ctx, url, opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// freeAddress is one on which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // It was only to learn the port.
	return l.Addr().String()
}

// A server in a process of its own, with a configuration file as an operator
// writes it.
func TestExternalServer(t *testing.T) {
	streamtest.Run(t, func(t *testing.T) *streamtest.Backend {
		address := freeAddress(t)
		config := filepath.Join(t.TempDir(), "nats.conf")
		text := fmt.Sprintf("listen: %q\nauthorization { user: toolcrib, password: secret }\nmax_payload: 4MB\njetstream { store_dir: %q, max_mem: 64MB, max_file: 1GB, sync_interval: always }\n", address, t.TempDir())
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		process := startProcess(t, config)
		return &streamtest.Backend{
			Client: func(t *testing.T) stream.Client {
				return dial(t, "nats://"+address, &natsstream.Options{User: "toolcrib", Password: "secret"})
			},
			Restart: func(t *testing.T) { process.restart(t, os.Interrupt) },
			Kill:    func(t *testing.T) { process.restart(t, os.Kill) },
		}
	})
}

// Three servers in this process, each of which is restarted in turn.
func TestCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("three servers take a while")
	}
	streamtest.Run(t, func(t *testing.T) *streamtest.Backend {
		c := startCluster(t)
		return &streamtest.Backend{
			Client:   func(t *testing.T) stream.Client { return dial(t, c.urls(), nil) },
			Restart:  c.restart,
			Relays:   true,
			Received: c.received,
		}
	})
}

// cluster is three servers.
type cluster struct {
	options [3]server.Options
	servers [3]*server.Server
}

func startCluster(t *testing.T) *cluster {
	c := &cluster{}
	var routes, ports [3]string
	for i := range c.servers {
		routes[i], ports[i] = freeAddress(t), freeAddress(t)
	}
	for i := range c.servers {
		c.options[i] = server.Options{
			ServerName: fmt.Sprint("n", i), Host: "127.0.0.1", Port: portOf(t, ports[i]), NoSigs: true, NoLog: true,
			JetStream: true, StoreDir: t.TempDir(), JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 1 << 30,
			Cluster:   server.ClusterOpts{Name: "toolcrib-test", Host: "127.0.0.1", Port: portOf(t, routes[i])},
			RoutesStr: "nats://" + routes[0] + ",nats://" + routes[1] + ",nats://" + routes[2],
		}
		c.options[i].Routes = server.RoutesFromStr(c.options[i].RoutesStr)
		c.start(t, i)
	}
	t.Cleanup(func() {
		for _, s := range c.servers {
			s.Shutdown()
			s.WaitForShutdown()
		}
	})
	c.ready(t)
	return c
}

func portOf(t *testing.T, address string) int {
	t.Helper()
	resolved, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return resolved.Port
}

func (c *cluster) start(t *testing.T, i int) {
	t.Helper()
	s, err := server.NewServer(c.options[i].Clone())
	if err != nil {
		t.Fatal(err)
	}
	c.servers[i] = s
	s.Start()
}

// ready waits until the servers have chosen one of them to place streams, and all
// have what the streams hold.
func (c *cluster) ready(t *testing.T) {
	t.Helper()
	deadline := time.After(60 * time.Second)
	for tick := time.NewTicker(50 * time.Millisecond); ; {
		err := c.check()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal(err)
		}
	}
}

func (c *cluster) check() error {
	leaders := 0
	for i, s := range c.servers {
		if !s.ReadyForConnections(time.Second) || !s.JetStreamIsCurrent() {
			return fmt.Errorf("server %d is not ready", i)
		}
		if s.JetStreamIsLeader() {
			leaders++
			if peers := len(s.JetStreamClusterPeers()); peers != len(c.servers) {
				return fmt.Errorf("the cluster has %d servers", peers)
			}
		}
	}
	if leaders != 1 {
		return fmt.Errorf("the cluster has %d leaders", leaders)
	}
	return c.checkStreams()
}

func (c *cluster) checkStreams() error {
	conn, err := nats.Connect(c.urls())
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	streams := js.ListStreams(ctx)
	for info := range streams.Info() {
		if err := caughtUp(info.Config.Name, info.Cluster); err != nil {
			return err
		}
		s, err := js.Stream(ctx, info.Config.Name)
		if err != nil {
			return err
		}
		consumers := s.ListConsumers(ctx)
		for consumer := range consumers.Info() {
			if err := caughtUp(consumer.Name, consumer.Cluster); err != nil {
				return err
			}
		}
		if err := consumers.Err(); err != nil {
			return err
		}
	}
	return streams.Err()
}

func caughtUp(name string, info *jetstream.ClusterInfo) error {
	if info == nil || info.Leader == "" {
		return fmt.Errorf("nobody leads %s", name)
	}
	for _, replica := range info.Replicas {
		if !replica.Current || replica.Offline {
			return fmt.Errorf("%s lags on %s", name, replica.Name)
		}
	}
	return nil
}

func (c *cluster) restart(t *testing.T) {
	for i := range c.servers {
		c.servers[i].Shutdown()
		c.servers[i].WaitForShutdown()
		c.start(t, i)
		c.ready(t)
	}
}

func (c *cluster) urls() string {
	return fmt.Sprintf("nats://127.0.0.1:%d,nats://127.0.0.1:%d,nats://127.0.0.1:%d", c.options[0].Port, c.options[1].Port, c.options[2].Port)
}

func (c *cluster) received(t *testing.T) int64 {
	t.Helper()
	var total int64
	for _, s := range c.servers {
		conns, err := s.Connz(&server.ConnzOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, conn := range conns.Conns {
			total += conn.InMsgs
		}
	}
	return total
}
