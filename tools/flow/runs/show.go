package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/tools/flow"
)

// List implements flow.Runs.
func (l *Log) List(ctx context.Context) ([]flow.RunState, error) {
	who := ownerOn(ctx)
	list := []flow.RunState{}
	err := l.each(ctx, runsIn, who, "", func(record store.Record) error {
		var k kept
		if err := json.Unmarshal(record.Value, &k); err != nil {
			return fmt.Errorf("runs: the record of %q cannot be read: %w", record.Key.Name, err)
		}
		state, err := l.state(ctx, who, k)
		list = append(list, state)
		return err
	})
	slices.SortFunc(list, flow.Latest)
	return list, err
}

func (l *Log) state(ctx context.Context, who store.Owner, k kept) (flow.RunState, error) {
	status, err := l.status(ctx, k)
	return flow.RunState{Run: k.run(who), Status: status, Ended: k.Ended, Error: k.Error}, err
}

// Get implements flow.Runs.
func (l *Log) Get(ctx context.Context, runID string) (flow.RunState, error) {
	who := ownerOn(ctx)
	k, _, err := l.read(ctx, who, runID)
	if err != nil {
		return flow.RunState{}, err
	}
	state, err := l.state(ctx, who, k)
	if err != nil {
		return flow.RunState{}, err
	}
	inputs, nodes, err := l.nodes(ctx, who, runID)
	state.Inputs = inputs
	for _, n := range nodes {
		state.Nodes = append(state.Nodes, n.NodeRecord)
	}
	return state, err
}

// Cancel implements flow.Runs. A run of another process ends soon after.
func (l *Log) Cancel(ctx context.Context, runID string) error {
	who := ownerOn(ctx)
	l.mu.Lock()
	here := l.live[runID]
	l.mu.Unlock()
	if here != nil && here.owner == who {
		here.cancel()
		return nil
	}
	k, _, err := l.read(ctx, who, runID)
	if err != nil {
		return err
	}
	status, err := l.status(ctx, k)
	if err != nil {
		return err
	}
	return l.change(ctx, who, runID, nil, func(now *kept) bool {
		switch {
		case now.Keeper != k.Keeper || now.Status != k.Status:
			return false // it went on, or ended, meanwhile
		case status == flow.RunRunning:
			now.Cancel = true
		case status == flow.RunInterrupted:
			now.Status, now.Ended, now.Error = flow.RunCanceled, time.Now(), flow.ErrCanceled.Error()
		default:
			return false
		}
		return true
	})
}

// trimEvery is after how many runs the oldest are looked for.
const trimEvery = 64

// trim forgets the oldest ended runs of an owner beyond those that are kept.
func (l *Log) trim(ctx context.Context, who store.Owner) {
	var ended []kept
	err := l.each(ctx, runsIn, who, "", func(record store.Record) error {
		var k kept
		if json.Unmarshal(record.Value, &k) == nil && k.Status != flow.RunRunning {
			ended = append(ended, k)
		}
		return nil
	})
	slices.SortFunc(ended, func(a, b kept) int { return b.Began.Compare(a.Began) })
	for _, k := range ended[min(len(ended), l.most):] {
		if err = l.forget(ctx, who, k.ID); err != nil {
			break
		}
	}
	if err != nil {
		l.log.Warn("old runs of flows cannot be removed", "error", err)
	}
}

// forget removes a run: its own record first, so that none is left without its
// nodes.
func (l *Log) forget(ctx context.Context, who store.Owner, id string) error {
	if err := store.Delete(ctx, l.st, runKey(who, id), store.Any); err != nil {
		return err
	}
	var gone []store.Write
	err := l.each(ctx, nodesIn, who, id+"/", func(record store.Record) error {
		gone = append(gone, store.Write{Key: record.Key, Delete: true})
		return nil
	})
	for part := range slices.Chunk(gone, store.MaxBatch) {
		if err == nil {
			_, err = l.st.Apply(ctx, store.Batch{Writes: part})
		}
	}
	return err
}
