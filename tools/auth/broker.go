package auth

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/toolcrib/toolcrib/identity"
)

const (
	// maxPending bounds the authorizations that wait for a person. The oldest
	// gives way; who still wants it begins again with the next request.
	maxPending = 4096
	// maxAttempts bounds the browsers that are on their way, likewise.
	maxAttempts = 4096
)

// Options are what a Broker works with. The zero value and nil are the defaults.
type Options struct {
	// Store keeps the tokens; nil is one in memory.
	Store Store
	// RedirectURL returns where a person's browser comes back to: the address
	// of the Broker's Handler, with its path "/oauth/callback". Empty, or nil:
	// no browser can come back.
	RedirectURL func() string
	// Self is in whose name requests go out that are made for nobody else,
	// such as those that list tools.
	Self identity.Identity
	// Operates reports whether the caller on ctx may authorize for tokens that
	// callers share. Nil is nobody.
	Operates func(ctx context.Context) bool
	// Authorized is called, from a goroutine of a request, when a person has
	// agreed, with the name of the service.
	Authorized func(source string)
	// Logger hears what happens; nil is silent.
	Logger *slog.Logger
}

// Broker keeps the tokens for all services of a gateway, and the authorizations
// that wait for a person. It is safe for concurrent use.
type Broker struct {
	opts Options
	log  *slog.Logger

	mu       sync.Mutex
	pending  map[string]*pending // by handle
	byKey    map[pendingKey]*pending
	attempts map[string]*attempt // by state
}

// NewBroker returns a broker without services.
func NewBroker(opts *Options) *Broker {
	b := &Broker{pending: map[string]*pending{}, byKey: map[pendingKey]*pending{}, attempts: map[string]*attempt{}}
	if opts != nil {
		b.opts = *opts
	}
	if b.opts.Store == nil {
		b.opts.Store = NewMemoryStore()
	}
	if b.opts.RedirectURL == nil {
		b.opts.RedirectURL = func() string { return "" }
	}
	if b.opts.Operates == nil {
		b.opts.Operates = func(context.Context) bool { return false }
	}
	if b.opts.Authorized == nil {
		b.opts.Authorized = func(string) {}
	}
	if b.log = b.opts.Logger; b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	return b
}

// A pending is an authorization that waits for a person. Its handle is what the
// person's browser begins it with, as often as it takes.
type pending struct {
	upstream *Upstream
	key      Key
	handle   string
	id       string // which may be shown
	since    time.Time

	mu      sync.Mutex
	found   *discovery
	scopes  []string
	over    bool          // it was agreed to, or given up
	failure error         // of the last attempt; of one that is over, why it was given up
	news    chan struct{} // closed and replaced with each outcome
}

type pendingKey struct {
	upstream *Upstream
	key      Key
}

// wait returns the pending authorization for a key, made when there is none, and
// brings it up to date.
func (b *Broker) wait(u *Upstream, key Key, d *discovery, scopes []string) *pending {
	b.mu.Lock()
	at := pendingKey{u, key}
	p := b.byKey[at]
	if p == nil {
		p = &pending{upstream: u, key: key, handle: rand.Text(), id: rand.Text(), since: time.Now(), news: make(chan struct{})}
		if len(b.pending) >= maxPending {
			b.dropOldest()
		}
		b.pending[p.handle], b.byKey[at] = p, p
		b.log.Info("an authorization waits for a person", "source", key.Source, "binding", string(key.Binding))
	}
	b.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.found, p.scopes = d, union(p.scopes, scopes)
	return p
}

// dropOldest makes room. The caller holds the lock.
func (b *Broker) dropOldest() {
	var oldest *pending
	for _, p := range b.pending {
		if oldest == nil || p.since.Before(oldest.since) {
			oldest = p
		}
	}
	b.drop(oldest)
	oldest.settle(errAbandoned(), true)
}

// drop forgets a pending authorization. The caller holds the lock.
func (b *Broker) drop(p *pending) {
	delete(b.pending, p.handle)
	delete(b.byKey, pendingKey{p.upstream, p.key})
}

func errAbandoned() error { return refuse("it is no longer waited for") }

// abandon gives up everything that waits for an upstream.
func (b *Broker) abandon(u *Upstream) {
	b.mu.Lock()
	var gone []*pending
	for _, p := range b.pending {
		if p.upstream == u {
			gone = append(gone, p)
			b.drop(p)
		}
	}
	for state, a := range b.attempts {
		if a.pending.upstream == u {
			delete(b.attempts, state)
		}
	}
	b.mu.Unlock()
	for _, p := range gone {
		p.settle(errAbandoned(), true)
	}
}

// waiting returns the pending authorization for a key, or nil.
func (b *Broker) waiting(u *Upstream, key Key) *pending {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.byKey[pendingKey{u, key}]
}

func (b *Broker) find(handle string) *pending {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pending[handle]
}

// startURL is where the caller on ctx can begin an authorization, or empty.
func (b *Broker) startURL(ctx context.Context, p *pending) string {
	redirect := p.upstream.redirectURL()
	if redirect == "" || !b.mayAuthorize(ctx, p.key) {
		return ""
	}
	u, err := url.Parse(redirect)
	if err != nil {
		return ""
	}
	return u.JoinPath("..", "authorize", p.handle).String()
}

// redirectURL is where browsers come back to for this service.
func (u *Upstream) redirectURL() string {
	if u.cfg.RedirectURL != "" {
		return u.cfg.RedirectURL
	}
	return u.broker.opts.RedirectURL()
}

// settle tells everyone who waits how an attempt ended, and whether there may be
// another.
func (p *pending) settle(err error, over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	p.over, p.failure = over, err
	close(p.news)
	p.news = make(chan struct{})
}

// await returns nil once somebody has agreed, or how the next attempt failed.
func (p *pending) await(ctx context.Context) error {
	p.mu.Lock()
	over, news, failure := p.over, p.news, p.failure
	p.mu.Unlock()
	if over {
		return failure
	}
	select {
	case <-news:
	case <-ctx.Done():
		return ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failure
}

// complete ends a pending authorization that a person has agreed to.
func (b *Broker) complete(p *pending) {
	b.mu.Lock()
	b.drop(p)
	b.mu.Unlock()
	p.settle(nil, true)
	b.log.Info("authorized", "source", p.key.Source, "binding", string(p.key.Binding))
	b.opts.Authorized(p.key.Source)
}
