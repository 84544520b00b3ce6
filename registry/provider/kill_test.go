package provider_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/registry/stream/natsstream"
	"github.com/toolcrib/toolcrib/tools"
)

// The environment of a test binary that is a worker: the server's URL and token,
// and the file to which the tool writes each of its runs.
const (
	envURL   = "TOOLCRIB_TEST_WORKER_URL"
	envToken = "TOOLCRIB_TEST_WORKER_TOKEN"
	envFile  = "TOOLCRIB_TEST_WORKER_FILE"
)

const killGrace = 500 * time.Millisecond

// work is the life of a worker process, which ends when it is killed.
func work() error {
	if os.Getenv(envStore) != "" {
		return gateway()
	}
	client, err := natsstream.Dial(context.Background(), os.Getenv(envURL), &natsstream.Options{Token: os.Getenv(envToken)})
	if err != nil {
		return err
	}
	book := serving(func(ctx context.Context, m registry.ToolCallMessage) (registry.ToolResultMessage, error) {
		f, err := os.OpenFile(os.Getenv(envFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return registry.ToolResultMessage{}, err
		}
		if _, err := fmt.Fprintf(f, "%s %s\n", m.Tool, m.Payload); err != nil {
			return registry.ToolResultMessage{}, err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return registry.ToolResultMessage{}, errors.Join(ctx.Err(), f.Close())
		}
		return registry.ToolResultMessage{ResultJSON: m.Payload}, f.Close()
	})
	return provider.Serve(context.Background(), client, "demo", book, provider.Options{SinkAckGracePeriod: killGrace, Pong: provider.Pong(client, "")})
}

// startWorker starts a worker process.
func (c *crib) startWorker(file string) *exec.Cmd {
	c.t.Helper()
	self, err := os.Executable()
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), envURL+"="+c.server.URL(), envToken+"="+c.server.Token(), envFile+"="+file)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	return cmd
}

func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
}

// Worker processes are killed while calls run. A call with effects is run once,
// or its caller is told that its outcome is not known; a harmless one is run by
// another worker.
func TestKilledWorkers(t *testing.T) {
	c := newCrib(t, nil)
	file := t.TempDir() + "/runs"
	workers := []*exec.Cmd{c.startWorker(file), c.startWorker(file), c.startWorker(file)}
	defer func() {
		for _, w := range workers {
			kill(w)
		}
	}()
	c.up("demo", 3)
	const n = 200
	var done, unknown atomic.Int64
	out := make(chan error, 2*n)
	ctx := registry.Wait(caller(t))
	for i := range 2 * n {
		tool := []string{"demo.read", "demo.write"}[i%2]
		go func() {
			_, err := c.call(ctx, tool, fmt.Sprintf(`{"n":%d}`, i))
			done.Add(1)
			if errors.Is(err, tools.ErrOutcomeUnknown) && tool == "demo.write" {
				unknown.Add(1)
				err = nil
			}
			out <- err
		}()
	}
	for i := range 2 {
		await(t, "some calls are done", func() bool { return done.Load() > int64(50*(i+1)) })
		kill(workers[i])
		workers[i] = c.startWorker(file)
	}
	for range 2 * n {
		if err := <-out; err != nil {
			t.Error(err)
		}
	}
	ran := runs(t, file)
	for i := range 2 * n {
		payload := fmt.Sprintf(`{"n":%d}`, i)
		if times := ran["demo.write "+payload]; i%2 == 1 && times > 1 {
			t.Errorf("call %d ran %d times", i, times)
		}
		if ran["demo.read "+payload] == 0 && i%2 == 0 {
			t.Errorf("call %d was answered and never ran", i)
		}
	}
	if unknown.Load() > 40 { // those that ran in two workers, and whose answers were under way
		t.Errorf("the outcome of %d calls is not known, and two workers with four calls at a time were killed", unknown.Load())
	}
	t.Logf("the outcome of %d calls of %d is not known", unknown.Load(), n)
}

// runs counts the lines of the file that workers write.
func runs(t *testing.T, file string) map[string]int {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, line := range strings.Split(string(bytes.TrimSpace(b)), "\n") {
		counts[line]++
	}
	return counts
}
