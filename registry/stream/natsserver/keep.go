package natsserver

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/toolcrib/toolcrib/internal/disk"
	"github.com/toolcrib/toolcrib/registry/stream"
)

// reserve is what must be free on the disk for an event to be taken. The server
// needs it for acknowledgements, and does not recover by itself when a write fails.
const reserve = 64 << 20

// retryOpening is how long the store is left alone before it is opened again.
const retryOpening = time.Second

// keeper looks after the files of the server. It is the natsstream.Keeper of the
// clients in this process.
type keeper struct {
	*groups
	dir    string
	nats   *server.Server
	config server.JetStreamConfig
	log    *slog.Logger

	looked atomic.Int64  // when the disk was looked at, in Unix nanoseconds
	left   atomic.Uint64 // bytes that were free there then
	failed atomic.Bool   // a write failed, and the store was not opened again yet
	kick   chan struct{} // wakes tend
	stop   context.CancelFunc
	ended  sync.WaitGroup
}

func newKeeper(dir string, g *groups, to *slog.Logger, settings *server.Options) *keeper {
	return &keeper{groups: g, dir: dir, log: to, kick: make(chan struct{}, 1), config: server.JetStreamConfig{
		StoreDir: settings.StoreDir, MaxMemory: settings.JetStreamMaxMemory, MaxStore: settings.JetStreamMaxStore,
		SyncAlways: settings.SyncAlways, SyncInterval: settings.SyncInterval, Strict: true,
	}}
}

// start begins to look after a server.
func (k *keeper) start(s *server.Server) {
	k.nats = s
	ctx, cancel := context.WithCancel(context.Background())
	k.stop = cancel
	k.ended.Go(func() { k.tend(ctx) })
}

func (k *keeper) end() {
	k.stop()
	k.ended.Wait()
}

// Room refuses events that the disk has no room for, or the store is not open for.
func (k *keeper) Room() error {
	if k.failed.Load() {
		return fmt.Errorf("%w: a write failed, and the store is being opened again", stream.ErrUnavailable)
	}
	if left := k.free(); left < reserve {
		return fmt.Errorf("%w: the disk has %d MiB left, and %d are kept free", stream.ErrNoRoom, left>>20, reserve>>20)
	}
	return nil
}

// lookEvery is how often the disk is looked at while it has plenty of room. In that
// time the fastest of disks takes less than the reserve.
const lookEvery = 10 * time.Millisecond

// free is how much room there is on the disk, or was a moment ago.
func (k *keeper) free() uint64 {
	now := time.Now().UnixNano()
	if left := k.left.Load(); left > 2*reserve && now-k.looked.Load() < int64(lookEvery) {
		return left
	}
	left := disk.Free(k.dir)
	k.left.Store(left)
	k.looked.Store(now)
	return left
}

// heard takes what the server reports as an error. A store that could not be written
// stays as it is, and a server that ran out of space disables it.
func (k *keeper) heard(report string) {
	report = strings.ToLower(report)
	if !strings.Contains(report, "critical write error") && !strings.Contains(report, "will be disabled") {
		return
	}
	k.failed.Store(true)
	select {
	case k.kick <- struct{}{}:
	default:
	}
}

// tend opens the store again after a write failed, once there is room.
func (k *keeper) tend(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.kick:
		}
		k.mend(ctx)
	}
}

// mend opens the store again until that succeeds. What is in the way is logged once.
func (k *keeper) mend(ctx context.Context) {
	for said := ""; k.failed.Load(); {
		select {
		case <-ctx.Done():
			return
		case <-time.After(retryOpening):
		}
		if disk.Free(k.dir) < reserve {
			continue
		}
		if err := k.reopen(); err != nil && err.Error() != said {
			said = err.Error()
			k.log.Error("the store of streams cannot be opened again yet", "error", err)
		}
	}
}

// reopen reads the store from what is on disk, as a restart of the server would.
func (k *keeper) reopen() error {
	k.failed.Store(false) // A write that fails from here on sets it again.
	err := k.nats.ShutdownJetStream()
	if err == nil {
		config := k.config
		err = k.nats.EnableJetStream(&config)
	}
	if err != nil {
		k.failed.Store(true)
		if cause := disk.Cause(k.dir); cause != nil { // The server names none.
			err = fmt.Errorf("%w: %w", err, cause)
		}
		return err
	}
	k.log.Warn("the store of streams was opened again after a failed write")
	k.reconnect()
	return nil
}

// reconnect breaks the connections of clients. They wait for events of consumers
// that are not the ones they asked, and ask anew when they connect again.
func (k *keeper) reconnect() {
	conns, err := k.nats.Connz(&server.ConnzOptions{Limit: k.nats.NumClients() + 64})
	if err != nil {
		return
	}
	for _, conn := range conns.Conns {
		k.nats.DisconnectClientByID(conn.Cid) //nolint:errcheck // It went by itself.
	}
}
