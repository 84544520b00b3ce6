package exec

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/toolcrib/toolcrib/tools"
)

// Progress tells the caller of a composed tool how far it is: one part after the
// other, and what a part says of itself as a share of it. What is told only grows.
// It is safe for concurrent use.
type Progress struct {
	call  context.Context // of the composed tool
	total float64

	mu    sync.Mutex
	done  float64
	parts map[int]float64 // shares of the parts that run
	last  float64
}

// NewProgress returns the progress of the tool that runs on ctx, which has total
// parts. Where nobody listens it is nil, and does nothing.
func NewProgress(ctx context.Context, total int) *Progress {
	if tools.CallFrom(ctx).Peer() == nil {
		return nil
	}
	return &Progress{call: ctx, total: float64(total), parts: map[int]float64{}}
}

// Within returns a context for the calls that part i makes. What they say goes to
// the caller; how far they are is told as a share of the part.
func (p *Progress) Within(ctx context.Context, i int, name string) context.Context {
	if p == nil {
		return ctx
	}
	call := tools.CallFrom(ctx)
	peer := part{call.Peer(), p, i, name}
	e := tools.Entrance{Peer: peer, Capabilities: call.Capabilities, Client: call.Client, ClientGone: call.ClientGone, LogLevel: call.LogLevel}
	if _, ok := peer.Peer.(tools.ClientPeer); ok {
		e.Peer = clientPart{peer}
	}
	return tools.WithEntrance(ctx, e)
}

// Settle notes that part i is over.
func (p *Progress) Settle(i int, name string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.parts, i)
	p.done++
	p.tell(name)
}

// share notes how much of part i is over.
func (p *Progress) share(i int, name string, n tools.ProgressNote) {
	if n.Progress <= 0 {
		return
	}
	share := n.Progress / (1 + n.Progress) // of what has no known end
	if n.Total > 0 {
		share = min(n.Progress/n.Total, 1)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if share <= p.parts[i] {
		return
	}
	p.parts[i] = share
	if n.Message != "" {
		name += ": " + n.Message
	}
	p.tell(name)
}

// tell says how far the tool is, if that is farther than what was said last. The
// caller holds the lock, so that what is told is in order.
func (p *Progress) tell(message string) {
	now := p.done
	for _, share := range p.parts {
		now += share
	}
	if now <= p.last {
		return
	}
	p.last = now
	// A caller that does not listen misses nothing that it waits for.
	_ = tools.Progress(p.call, now, p.total, message)
}

// part is the caller as the calls of one part see it.
type part struct {
	tools.Peer
	of   *Progress
	i    int
	name string
}

// Progress implements tools.Peer.
func (p part) Progress(_ context.Context, n tools.ProgressNote) error {
	p.of.share(p.i, p.name, n)
	return nil
}

// AskAll implements tools.BatchPeer.
func (p part) AskAll(ctx context.Context, list []tools.Question) ([]tools.Answer, error) {
	if batch, ok := p.Peer.(tools.BatchPeer); ok {
		return batch.AskAll(ctx, list)
	}
	answers := make([]tools.Answer, len(list))
	for i, q := range list {
		var err error
		if answers[i], err = p.Ask(ctx, q); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// Notify implements tools.NotifiedPeer.
func (p part) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if told, ok := p.Peer.(tools.NotifiedPeer); ok {
		return told.Notify(ctx, method, params)
	}
	return nil
}

// clientPart is part where the caller is a tools.ClientPeer.
type clientPart struct{ part }

// OnClientNote implements tools.ClientPeer.
func (p clientPart) OnClientNote(f func(method string, params json.RawMessage)) (stop func()) {
	return p.Peer.(tools.ClientPeer).OnClientNote(f)
}
