package provider_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/tools"
)

// As long as nobody knows that the only worker was killed, a call waits for another
// one, and no longer than its own time; who made it hears when a worker was last
// heard of. Once it is known, the call ends.
func TestTheOnlyWorkerIsKilled(t *testing.T) {
	for _, o := range []struct {
		name string
		opts *registry.Options
		time time.Duration
		want string
		err  error
	}{
		{"before it is known", &registry.Options{PingInterval: time.Minute}, time.Second, "in time; the last of the workers of toolset \"demo\" to answer a ping did so ", context.DeadlineExceeded},
		{"when it is known", quick(), patience, "no worker serves toolset \"demo\": the last one answered ", tools.ErrUnavailable},
	} {
		t.Run(o.name, func(t *testing.T) {
			c := newCrib(t, o.opts)
			worker := c.startWorker(filepath.Join(t.TempDir(), "runs"))
			c.up("demo", 1)
			await(t, "the tools are listed", func() bool {
				_, ok := c.cat.Resolve("demo.write")
				return ok
			})
			kill(worker)
			for _, tool := range []string{"demo.write", "demo.read"} {
				ctx, cancel := context.WithTimeout(caller(t), o.time)
				defer cancel()
				began := time.Now()
				_, err := c.call(ctx, tool, `{}`)
				var failed *tools.Error
				if !errors.As(err, &failed) || !strings.Contains(failed.SafeMessage(), o.want) || failed.OutcomeUnknown || o.err != nil && !errors.Is(err, o.err) {
					t.Errorf("%s: %v (%+v)", tool, err, failed)
				}
				if took := time.Since(began); took > o.time+10*time.Second {
					t.Errorf("%s took %s", tool, took)
				}
			}
		})
	}
}
