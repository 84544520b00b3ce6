package a2atool

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"sync"

	"github.com/a2aproject/a2a-go/v2/a2aclient"

	"github.com/toolcrib/toolcrib/tools"
)

// Peer is one agent whose skills are offered. It implements
// [tools.ToolProvider], [tools.ChangeNotifier] and [tools.Refuser], and is safe
// for concurrent use.
type Peer struct {
	cfg     Config
	url     *url.URL
	id      tools.ToolSourceID
	log     *slog.Logger
	net     *network
	factory *a2aclient.Factory
	options tools.ResolvedDescriptorConfig
	memory  *memory
	refresh refresh

	life context.Context // ends when the peer is closed
	end  context.CancelFunc

	mu      sync.Mutex // guards what follows
	name    string     // the agent's, once known
	agent   *agent     // nil before the card was read
	unread  bool       // Discover has not returned the agent yet
	count   int
	refused []tools.Refusal
	lastErr string
	closed  bool
	work    sync.WaitGroup // what goes on beside the calls
}

var (
	_ tools.ToolProvider   = (*Peer)(nil)
	_ tools.ChangeNotifier = (*Peer)(nil)
	_ tools.Refuser        = (*Peer)(nil)
)

// New returns the agent that cfg describes, without connecting to it. The
// error says everything that is wrong with cfg.
func New(cfg Config) (*Peer, error) {
	cfg, u, err := cfg.resolved()
	if err != nil {
		return nil, err
	}
	p := &Peer{
		cfg:     cfg,
		url:     u,
		id:      cfg.sourceID(u),
		name:    cfg.Name,
		options: tools.ResolveOptions(cfg.Options...),
		memory:  newMemory(maxSessions),
	}
	p.log = cfg.Logger.With("agent", string(p.id))
	p.net = newNetwork(&p.cfg, u)
	p.factory = newFactory(p.net)
	p.life, p.end = context.WithCancel(context.Background())
	return p, nil
}

// SourceID returns "a2a:" and the configured name, or the agent's host and path
// when none is configured.
func (p *Peer) SourceID() tools.ToolSourceID { return p.id }

// OnChange sets the function that is called, from a goroutine of its own, when
// the card was read again and has changed. It must not call Close.
func (p *Peer) OnChange(f func()) { p.refresh.onChange(f) }

// Connect reads the agent's card. The error is a *[tools.Error]. A later
// Discover tries again.
func (p *Peer) Connect(ctx context.Context) error {
	a, err := p.readAgent(ctx)
	if err != nil {
		p.note(err)
		return err
	}
	p.adopt(a)
	return nil
}

// Discover returns a tool for each of the agent's skills. It reads the card,
// unless that has just been done.
func (p *Peer) Discover(ctx context.Context) ([]tools.ToolDescriptor, error) {
	a := p.take()
	if a == nil {
		var err error
		if a, err = p.readAgent(ctx); err != nil {
			p.note(err)
			return nil, err
		}
		p.adopt(a)
		if now := p.take(); now != nil {
			a = now
		}
	}
	list, refused := p.describe(a)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count, p.refused = len(list), refused
	return list, nil
}

// take returns the agent if Discover has not yet returned it.
func (p *Peer) take() *agent {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.unread {
		return nil
	}
	p.unread = false
	return p.agent
}

// adopt makes a the agent and reports whether its card is another one than
// before.
func (p *Peer) adopt(a *agent) (changed bool) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		a.retire()
		return false
	}
	old := p.agent
	changed = old == nil || old.digest != a.digest
	if p.name == "" {
		p.name = slug(a.card.Name)
	}
	spare := a // an agent that is not needed
	if changed {
		spare = old
		p.agent = a
	}
	p.unread = p.unread || changed
	p.lastErr = ""
	p.mu.Unlock()
	if spare != nil {
		spare.retire()
	}
	p.schedule()
	return changed
}

// current returns the agent, which the caller releases, and reads its card when
// that was never done.
func (p *Peer) current(ctx context.Context) (*agent, error) {
	p.mu.Lock()
	a, closed := p.agent, p.closed
	if a != nil {
		a.use()
	}
	p.mu.Unlock()
	switch {
	case closed && a != nil:
		a.release()
		return nil, p.closedFailure()
	case closed:
		return nil, p.closedFailure()
	case a != nil:
		return a, nil
	}
	if err := p.Connect(ctx); err != nil {
		return nil, err
	}
	return p.current(ctx)
}

func (p *Peer) closedFailure() error {
	return &tools.Error{Class: tools.ErrClassPermanent, Delivery: tools.NotDelivered, Message: p.message("the peer is closed")}
}

// note keeps the last error for Status.
func (p *Peer) note(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastErr = err.Error()
}

// Refused returns the skills that the last Discover left out because they
// cannot be described.
func (p *Peer) Refused() []tools.Refusal {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]tools.Refusal(nil), p.refused...)
}

// Close ends what goes on beside the calls, such as cancelling tasks that
// nobody waits for, and returns when nothing is left of it or ctx ends. It may
// be called more than once.
func (p *Peer) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.refresh.stop()
	p.end()
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.work.Wait()
		p.let()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("a2atool: %s: closing goes on in the background: %w", p.id, ctx.Err())
	}
}

// let lets go of the agent and of idle connections.
func (p *Peer) let() {
	p.mu.Lock()
	a := p.agent
	p.agent = nil
	p.mu.Unlock()
	if a != nil {
		a.retire()
	}
	p.net.close()
}

// aside runs f beside the calls, unless the peer is closed.
func (p *Peer) aside(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.work.Go(f)
	}
}

// Status is what an operator wants to know of an agent.
type Status struct {
	// Name and Version are the agent's own, or empty before its card was read.
	Name, Version string
	// Binding and Protocol say how the agent is called: "JSONRPC" and "1.0".
	Binding, Protocol string
	// Streaming tells whether the agent streams what it does.
	Streaming bool
	// Card is the card as published, signatures included, or nil. The
	// signatures are not verified.
	Card json.RawMessage
	// Tools is how many tools the last Discover returned.
	Tools int
	// Sessions is how many sessions have a conversation.
	Sessions int
	// LastError is why the card could not be read; empty when all is well.
	LastError string
}

// Status returns the state of the agent at this moment.
func (p *Peer) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	st := Status{Tools: p.count, LastError: p.lastErr, Sessions: p.memory.len()}
	if a := p.agent; a != nil {
		st.Name, st.Version, st.Streaming, st.Card = a.card.Name, a.card.Version, a.card.Capabilities.Streaming, a.raw
		st.Binding, st.Protocol = string(a.via.ProtocolBinding), string(a.via.ProtocolVersion)
	}
	return st
}
