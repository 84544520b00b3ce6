package mcpserver

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/tools"
)

// parking keeps the calls that wait for their client to come back. What a
// client gets to come back with is sealed, is good for one return, and only in
// the process that gave it out.
type parking struct {
	limit int
	ttl   time.Duration
	log   *slog.Logger
	seal  cipher.AEAD
	ctx   context.Context
	end   context.CancelFunc
	work  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	calls  map[string]*parked // by the content of the state
	count  map[string]int     // by principal
}

// parked is an errand that waits. The timer ends it.
type parked struct {
	errand *errand
	timer  *time.Timer
}

func (p *parking) start(limit int, ttl time.Duration, log *slog.Logger) {
	p.limit, p.ttl, p.log = limit, ttl, log
	p.calls, p.count = map[string]*parked{}, map[string]int{}
	p.ctx, p.end = context.WithCancel(context.Background())
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails
	block, err := aes.NewCipher(key[:])
	if err == nil {
		p.seal, err = cipher.NewGCMWithRandomNonce(block)
	}
	if err != nil {
		panic(fmt.Errorf("mcpserver: a key of 32 bytes is refused: %w", err))
	}
}

// stop ends every errand and waits until their tools have returned.
func (p *parking) stop() {
	p.mu.Lock()
	p.closed = true
	for _, w := range p.calls {
		w.timer.Stop()
	}
	p.mu.Unlock()
	p.end()
	p.work.Wait()
}

// begin starts an errand. It ends with the request that attends to it, with its
// time, and with the server.
func (p *parking) begin(ctx context.Context, r *mcpwire.Request, params *callParams, peer *peer, entrance tools.Entrance, run runner) *errand {
	e := &errand{peer: peer, parking: p, owner: ownerOf(ctx, r, params),
		asked: make(chan struct{}, 1), done: make(chan struct{})}
	own, cancel := context.WithCancel(p.ctx)
	e.cancel = cancel
	e.accept(r, params.responses)
	entrance.Peer = e
	ctx = tools.WithEntrance(&detached{Context: own, values: ctx}, entrance)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		cancel()
	}
	p.work.Go(func() {
		defer cancel()
		e.run(ctx, run, p.log)
	})
	return e
}

// run brings an errand to its end, which has an answer whatever becomes of the
// goroutine: the one of the request, where the wire would see to that, is another.
func (e *errand) run(ctx context.Context, run runner, log *slog.Logger) {
	ended := false
	defer close(e.done)
	defer func() {
		if ended {
			return
		}
		e.result, e.err = nil, mcpwire.Errorf(mcpwire.CodeInternalError, "internal error")
		log.Error("a call ended its goroutine", "in", e.owner.method, "panic", recover(), "stack", string(debug.Stack()))
	}()
	e.result, e.err = run(ctx)
	ended = true
}

// detached is a context with the values of another, which it outlives.
type detached struct {
	context.Context
	values context.Context
}

// Value looks at its own context first, where cancellation finds its way.
func (d *detached) Value(key any) any {
	if v := d.Context.Value(key); v != nil {
		return v
	}
	return d.values.Value(key)
}

// keep parks an errand and returns the state for the client to come back with.
func (p *parking) keep(e *errand) (state string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.calls) >= p.limit || p.count[e.owner.principal] >= max(p.limit/4, 1) {
		return "", mcpwire.Errorf(mcpwire.CodeInternalError, "too many calls wait for input: answer or let go of some, and try again later")
	}
	id := rand.Text()
	p.calls[id] = &parked{errand: e, timer: time.AfterFunc(p.ttl, func() {
		if p.take(id, e.owner) != nil {
			e.cancel()
		}
	})}
	p.count[e.owner.principal]++
	sealed := p.seal.Seal(nil, nil, []byte(id), e.owner.bytes())
	return base64.RawURLEncoding.EncodeToString(sealed), nil
}

// bytes is what the state of an errand is sealed together with.
func (o *owner) bytes() []byte {
	raw, _ := json.Marshal([]string{o.principal, o.identity.TenantID, o.identity.UserID, o.identity.SessionID, o.method, o.name})
	return raw
}

// resume returns the errand that a client comes back to.
func (p *parking) resume(ctx context.Context, r *mcpwire.Request, params *callParams) (*errand, error) {
	who := ownerOf(ctx, r, params)
	sealed, err := base64.RawURLEncoding.DecodeString(params.state)
	if err == nil {
		sealed, err = p.seal.Open(nil, nil, sealed, who.bytes())
	}
	if err != nil {
		return nil, mcpwire.Errorf(mcpwire.CodeInvalidParams, "invalid requestState: it is not one that this server gave out for this request")
	}
	e := p.take(string(sealed), who)
	if e == nil {
		return nil, mcpwire.Errorf(mcpwire.CodeInvalidParams, "invalid requestState: it was used already, or has expired")
	}
	return e, nil
}

// dismiss ends the errand that a client comes back to, if it does, when the
// client no longer sees what it is about.
func (p *parking) dismiss(ctx context.Context, r *mcpwire.Request, params *callParams) {
	if params.state == "" {
		return
	}
	if e, err := p.resume(ctx, r, params); err == nil {
		e.cancel()
	}
}

// take removes a parked errand and returns it, nil if it is not there.
func (p *parking) take(id string, who owner) *errand {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.calls[id]
	if w == nil || w.errand.owner != who {
		return nil
	}
	w.timer.Stop()
	delete(p.calls, id)
	if p.count[who.principal]--; p.count[who.principal] == 0 {
		delete(p.count, who.principal)
	}
	return w.errand
}
