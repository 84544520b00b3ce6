//go:build linux

package provider_test

import (
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/registry/stream/natsserver"
	"github.com/toolcrib/toolcrib/store/sqlstore"
	"github.com/toolcrib/toolcrib/tools"
)

// TestDiskOfTheServerIsNearlyFull: callers and the log are told that the server has
// no room, which is something else than a queue that is full.
func TestDiskOfTheServerIsNearlyFull(t *testing.T) {
	disk := peertest.SmallDisk(t, "60m")
	c := &crib{t: t}
	var err error
	if c.server, err = natsserver.Start(filepath.Join(disk, "streams"), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.check(c.server.Close()) })
	c.client = c.connect()
	if c.store, err = sqlstore.OpenMemory(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.check(c.store.Close()) })
	var log peertest.Log
	opts := quick()
	opts.Logger = log.Logger(slog.LevelInfo)
	c.open(opts)
	c.serve("demo", serving(echo), provider.Options{})
	c.up("demo", 1)
	for _, tool := range []string{"demo.read", "demo.write"} {
		_, err := c.call(caller(t), tool, `{}`)
		var failed *tools.Error
		if !errors.Is(err, tools.ErrUnavailable) || errors.Is(err, tools.ErrOverloaded) || !errors.As(err, &failed) ||
			failed.Delivery != tools.NotDelivered || !failed.Retryable || !strings.Contains(failed.SafeMessage(), "the disk has ") {
			t.Errorf("%s: %v, %+v", tool, err, failed)
		}
	}
	if n := strings.Count(log.String(), "the stream server has no room"); n != 1 {
		t.Errorf("the log tells it %d times: %s", n, log.String())
	}
}
