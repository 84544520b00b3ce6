package runs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/tools/flow"
)

func keeperKey(name string) store.Key {
	return store.Key{Collection: keepersIn, Owner: store.Global(), Name: name}
}

// errClosing: the log was closed.
var errClosing = errors.New("runs: the log is closed")

// held returns the lease of this process, and acquires it for the first run.
func (l *Log) held(ctx context.Context) (store.Lease, error) {
	l.leasing.Lock()
	defer l.leasing.Unlock()
	l.mu.Lock()
	lease, closing := l.lease, l.closing
	l.mu.Unlock()
	if closing {
		return store.Lease{}, errClosing
	}
	if lease.Token != 0 {
		return lease, nil
	}
	name := rand.Text() // one that lost its lease is known to be dead by that name
	lease, err := l.st.Acquire(ctx, keeperKey(name), name, l.ttl)
	if err != nil {
		return store.Lease{}, fmt.Errorf("runs: %w", err)
	}
	l.mu.Lock()
	l.lease = lease
	l.mu.Unlock()
	if l.stop == nil {
		beat, stop := context.WithCancel(context.Background())
		l.stop = stop
		l.beating.Go(func() { l.beat(beat) })
	}
	return lease, nil
}

// beat keeps the lease, and looks whether other processes want runs to end.
func (l *Log) beat(ctx context.Context) {
	ticker := time.NewTicker(l.ttl / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			l.renew(ctx)
			l.listen(ctx)
		}
	}
}

// renew makes the lease last. Once it is lost, others may take the runs of this
// process over, which therefore end; the next run begins with a new lease.
func (l *Log) renew(ctx context.Context) {
	l.mu.Lock()
	lease := l.lease
	l.mu.Unlock()
	if lease.Token == 0 {
		return
	}
	_, err := l.st.Renew(ctx, lease, l.ttl)
	if err == nil || ctx.Err() != nil {
		return
	}
	if !errors.Is(err, store.ErrLeaseLost) {
		l.log.Warn("the lease on runs of flows cannot be renewed", "error", err)
		return
	}
	l.mu.Lock()
	l.lease = store.Lease{}
	all := maps.Clone(l.live)
	l.mu.Unlock()
	for id, run := range all {
		l.log.Warn("a run of a flow ends, as this process was out of touch for too long", "run", id)
		run.cancel()
	}
}

// listen ends the runs that another process was asked to cancel.
func (l *Log) listen(ctx context.Context) {
	l.mu.Lock()
	all := maps.Clone(l.live)
	l.mu.Unlock()
	for id, run := range all {
		if k, _, err := l.read(ctx, run.owner, id); err == nil && k.Cancel && k.Keeper == run.lease.Holder {
			run.cancel()
		}
	}
}

// status is how a run is doing: one that is recorded as running is interrupted when
// its process is gone.
func (l *Log) status(ctx context.Context, k kept) (flow.RunStatus, error) {
	if k.Status != flow.RunRunning {
		return k.Status, nil
	}
	l.mu.Lock()
	here := l.live[k.ID]
	own, begins := k.Keeper == l.lease.Holder, l.begins[k.ID]
	l.mu.Unlock()
	switch {
	case here != nil && here.lease.Holder == k.Keeper, own && begins:
		return flow.RunRunning, nil
	case own:
		return flow.RunInterrupted, nil
	}
	alive, err := l.alive(ctx, k.Keeper)
	if err != nil || alive {
		return flow.RunRunning, err
	}
	return flow.RunInterrupted, nil
}

// alive reports whether the process of that name holds its lease. One that does
// not never will again.
func (l *Log) alive(ctx context.Context, keeper string) (bool, error) {
	l.mu.Lock()
	known := l.dead[keeper]
	l.mu.Unlock()
	if known {
		return false, nil
	}
	lease, err := l.st.Acquire(ctx, keeperKey(keeper), rand.Text(), l.ttl)
	if errors.Is(err, store.ErrLeaseHeld) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("runs: %w", err)
	}
	l.mu.Lock()
	l.dead[keeper] = true
	l.mu.Unlock()
	if err := l.st.Release(ctx, lease); err != nil {
		return false, fmt.Errorf("runs: %w", err)
	}
	return false, nil
}

// Closing says that the process is about to end: runs that are cut off from now on
// are interrupted, and none begins.
func (l *Log) Closing() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closing = true
}

// Close ends the use of the store. Runs must have ended before.
func (l *Log) Close(ctx context.Context) error {
	l.Closing()
	l.leasing.Lock()
	defer l.leasing.Unlock()
	if l.stop == nil {
		return nil
	}
	l.stop()
	l.beating.Wait()
	l.mu.Lock()
	lease := l.lease
	l.lease = store.Lease{}
	l.mu.Unlock()
	if lease.Token == 0 {
		return nil
	}
	return l.st.Release(ctx, lease)
}
