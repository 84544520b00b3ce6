//go:build unix

package provider_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/registry/stream/natsserver"
	"github.com/toolcrib/toolcrib/registry/stream/natsstream"
	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/store/sqlstore"
	"github.com/toolcrib/toolcrib/tools"
)

// envStore names the store of a test binary that is a gateway, and how many calls it
// makes.
const envStore = "TOOLCRIB_TEST_GATEWAY_STORE"

// writes is how many calls such a gateway makes at once.
const writes = 12

// gateway is the life of a gateway process. It makes its calls when it has the tool,
// and says how many of them failed.
func gateway() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client, err := natsstream.Dial(ctx, os.Getenv(envURL), &natsstream.Options{Token: os.Getenv(envToken)})
	if err != nil {
		return err
	}
	db, err := sqlstore.Open(ctx, os.Getenv(envStore), nil)
	if err != nil {
		return errors.Join(err, client.Close())
	}
	defer func() { err = errors.Join(err, client.Close(), db.Close()) }()
	reg, err := registry.New(ctx, client, db, quick())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(reg.Close(ctx), err) }()
	cat := tools.NewCatalog().(tools.LiveCatalog)
	source := reg.Source()
	if err := source.Connect(ctx); err != nil {
		return err
	}
	swap(cat, source)
	failed := make(chan error, writes)
	for i := range writes {
		go func() {
			_, err := tools.Invoke(registry.Wait(ctx), cat, "demo.write", fmt.Appendf(nil, `{"theirs":%d}`, i))
			failed <- err
		}()
	}
	for range writes {
		err = errors.Join(err, <-failed)
	}
	if err == nil {
		fmt.Println("all answered")
	}
	return err
}

// startGateway starts a gateway process on the crib's server and a store.
func (c *crib) startGateway(file string) (*exec.Cmd, *bufio.Scanner) {
	c.t.Helper()
	self, err := os.Executable()
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), envURL+"="+c.server.URL(), envToken+"="+c.server.Token(), envStore+"="+file)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { kill(cmd) })
	return cmd, bufio.NewScanner(out)
}

// stop stops a gateway process between two of its writes, as a process that is stopped
// while it writes to a file of SQLite keeps all others from writing to it.
func (c *crib) stop(cmd *exec.Cmd, file string) {
	c.t.Helper()
	probe, err := sqlstore.Open(c.t.Context(), file, &sqlstore.Options{BusyTimeout: 100 * time.Millisecond})
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { c.check(probe.Close()) }()
	await(c.t, "a gateway is stopped that writes nothing", func() bool {
		c.check(cmd.Process.Signal(syscall.SIGSTOP))
		_, err := probe.Append(c.t.Context(), store.Key{Collection: "test", Owner: store.Global(), Name: "probe"}, []byte("x"))
		if err != nil {
			c.check(cmd.Process.Signal(syscall.SIGCONT))
		}
		return err == nil
	})
}

// TestGatewayIsStopped: the calls of a gateway whose process is stopped keep no place
// of a worker, so that those of another one run at once; they run when it goes on.
func TestGatewayIsStopped(t *testing.T) {
	file := filepath.Join(t.TempDir(), "store.db")
	c := &crib{t: t}
	var err error
	if c.server, err = natsserver.Start(t.TempDir(), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.check(c.server.Close()) })
	c.client = c.connect()
	if c.store, err = sqlstore.Open(t.Context(), file, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.check(c.store.Close()) })
	c.open(nil)
	busy := make(chan struct{})
	entered := make(chan struct{}, 2)
	c.serve("demo", serving(func(_ context.Context, m registry.ToolCallMessage) (registry.ToolResultMessage, error) {
		if strings.Contains(string(m.Payload), `"n"`) {
			entered <- struct{}{}
			<-busy
		}
		return registry.ToolResultMessage{ResultJSON: m.Payload}, nil
	}), provider.Options{MaxConcurrentToolCalls: 2})
	c.up("demo", 1)
	reads := c.calls(2, "demo.read") // which take both places
	<-entered
	<-entered
	stopped, said := c.startGateway(file)
	await(t, "the worker has the other gateway's calls, which are recorded", func() bool {
		state := c.reg.Toolsets()[0]
		return state.Workers[0].Queued == writes && state.Outstanding >= 2
	})
	c.stop(stopped, file)
	close(busy)
	for range 2 {
		if o := <-reads; o.err != nil {
			t.Error(o.err)
		}
	}
	began := time.Now()
	for i := range 5 {
		if _, err := c.call(caller(t), "demo.write", fmt.Sprintf(`{"ours":%d}`, i)); err != nil {
			t.Error(err)
		}
	}
	// A claim that nobody answers is given up after more than five seconds.
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("five calls took %s beside those of a gateway that hangs", took)
	} else {
		t.Logf("five calls took %s", took)
	}
	c.check(stopped.Process.Signal(syscall.SIGCONT))
	if !said.Scan() || said.Text() != "all answered" {
		t.Errorf("the gateway that went on says %q", said.Text())
	}
}
