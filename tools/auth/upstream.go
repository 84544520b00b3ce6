package auth

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
)

// flightLimit bounds one search for a token, which many may wait for.
const flightLimit = time.Minute

// Upstream is one protected service. It is safe for concurrent use.
type Upstream struct {
	broker *Broker
	cfg    *Config
	terms  string // of its keys
	net    *network
	sent   sent
	// flights makes one exchange of all that are asked for at the same time.
	flights singleflight.Group

	mu            sync.Mutex
	registrations map[string]registration
}

// Upstream describes a service to the broker. The error says what is wrong with
// cfg, in the words of a configuration file.
func (b *Broker) Upstream(cfg *Config) (*Upstream, error) {
	c, err := cfg.resolved()
	if err != nil {
		return nil, err
	}
	return &Upstream{broker: b, cfg: c, terms: c.terms(), net: newNetwork(policyFor(c)), registrations: map[string]registration{}}, nil
}

// Close gives up the authorizations that wait for a person and the connections
// to authorization servers. Tokens stay in the store.
func (u *Upstream) Close() error {
	u.broker.abandon(u)
	u.net.transport.CloseIdleConnections()
	return nil
}

// Revoke forgets the token of the caller on ctx, and reports whether there was
// one.
func (u *Upstream) Revoke(ctx context.Context) (bool, error) {
	key, err := u.keyFor(ctx)
	if err != nil {
		return false, err
	}
	token, err := u.load(ctx, key)
	if err != nil || token == nil {
		return false, err
	}
	return token.AccessToken != "", u.broker.opts.Store.Delete(ctx, key)
}

// Hide returns text without the access tokens that were sent to the service
// lately, in whatever form they stand there. It is for texts that repeat what the
// service said.
func (u *Upstream) Hide(text string) string { return u.sent.mask().Clean(text) }

// AuthorizationURL is where the caller on ctx can agree, in a browser, to what a
// request made for it needed and had not, else to what a request of the gateway
// itself did, if the caller may. It is empty when nothing is waited for.
func (u *Upstream) AuthorizationURL(ctx context.Context) string {
	for _, whose := range []context.Context{ctx, identity.With(ctx, u.broker.opts.Self)} {
		key, err := u.keyFor(whose)
		if err != nil {
			continue
		}
		if p := u.broker.waiting(u, key); p != nil {
			return u.broker.startURL(ctx, p)
		}
	}
	return ""
}

func (u *Upstream) load(ctx context.Context, key Key) (*Token, error) {
	t, err := u.broker.opts.Store.Load(ctx, key)
	if err != nil {
		return nil, fail(tools.ErrClassTransient, nil, "the token cannot be read: %v", err)
	}
	return t, nil
}

func (u *Upstream) save(ctx context.Context, key Key, t *Token) error {
	if err := u.broker.opts.Store.Save(ctx, key, t); err != nil {
		return fail(tools.ErrClassTransient, nil, "the token cannot be kept: %v", err)
	}
	return nil
}

// fly runs f, or joins a run of the same name that is under way. A run goes on
// when those who wait for it give up.
func (u *Upstream) fly(ctx context.Context, name string, f func(ctx context.Context) error) error {
	done := u.flights.DoChan(name, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flightLimit)
		defer cancel()
		return nil, f(ctx)
	})
	select {
	case r := <-done:
		return r.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// token returns the token for a request, renewed when it is at its end, or nil
// when there is none: the service then says what it wants.
func (u *Upstream) token(ctx context.Context, key Key) (*Token, error) {
	t, err := u.load(ctx, key)
	if err != nil || t == nil || !t.expired() {
		return t, err
	}
	if t.RefreshToken == "" && u.cfg.Grant == AuthorizationCode {
		return nil, nil
	}
	if err := u.flyRenewal(ctx, key, t); err != nil {
		if time.Now().Before(t.Expiry) && ctx.Err() == nil {
			return t, nil // it still holds for a moment
		}
		return nil, err
	}
	return u.load(ctx, key)
}

// flyRenewal renews a token together with all who want the same: a refresh token
// is often good for one use.
func (u *Upstream) flyRenewal(ctx context.Context, key Key, old *Token) error {
	return u.fly(ctx, "renew "+key.String(), func(ctx context.Context) error { return u.renew(ctx, key, old) })
}

// renew puts a new token in the place of old, unless that has been done. Of one
// whose refresh token no longer holds only its scopes are left.
func (u *Upstream) renew(ctx context.Context, key Key, old *Token) error {
	now, err := u.load(ctx, key)
	if err != nil || now != old && (now == nil || now.AccessToken != old.AccessToken) {
		return err
	}
	next, err := u.renewed(ctx, old)
	switch {
	case err == nil:
		return u.save(ctx, key, next)
	case u.cfg.Grant == AuthorizationCode && revokedBy(err):
		u.broker.log.Info("the refresh token no longer holds", "source", u.cfg.Source)
		return u.save(ctx, key, old.spent())
	}
	return err
}

func (u *Upstream) renewed(ctx context.Context, old *Token) (*Token, error) {
	if u.cfg.Grant == AuthorizationCode {
		return u.refresh(ctx, old)
	}
	return u.machineToken(ctx, old.Server, u.clientOf(old), old.Asked)
}

// answer does what a service demanded that refused a request with the token
// used, which may be nil. It reports whether the request is worth another try.
func (u *Upstream) answer(ctx context.Context, key Key, used *Token, c challenge) (again bool, err error) {
	if u.overtaken(ctx, key, used) {
		return true, nil
	}
	if used == nil {
		c.insufficient = false
	}
	if c.insufficient && within(c.scopes, used.Asked) {
		return false, nil // they were asked for, and the service is not content
	}
	name := "answer "
	if c.insufficient {
		name = "widen "
	}
	return true, u.fly(ctx, name+key.String(), func(ctx context.Context) error {
		if u.overtaken(ctx, key, used) {
			return nil
		}
		return u.obtain(ctx, key, used, c)
	})
}

// overtaken reports whether another request has brought a token meanwhile.
func (u *Upstream) overtaken(ctx context.Context, key Key, used *Token) bool {
	now, err := u.load(ctx, key)
	return err == nil && now != nil && !now.expired() && (used == nil || now.AccessToken != used.AccessToken)
}

// obtain gets a token that answers a challenge, or says that a person must help.
func (u *Upstream) obtain(ctx context.Context, key Key, used *Token, c challenge) error {
	d, err := u.discover(ctx, c)
	if err != nil {
		return err
	}
	last := used
	if last == nil {
		if last, err = u.load(ctx, key); err != nil {
			return err
		}
	}
	scopes := u.scopesFor(last, c, d)
	if used != nil && !c.insufficient && used.RefreshToken != "" && d.isFrom(used) {
		if err := u.flyRenewal(ctx, key, used); err != nil {
			return err
		}
		if u.overtaken(ctx, key, used) {
			return nil
		}
	}
	if u.cfg.Grant == AuthorizationCode {
		return u.required(u.broker.wait(u, key, d, scopes))
	}
	client, err := u.clientFor(ctx, d, "")
	if err != nil {
		return err
	}
	server, err := serverOf(d)
	if err != nil {
		return err
	}
	t, err := u.machineToken(ctx, server, client, scopes)
	if err != nil {
		return err
	}
	return u.save(ctx, key, t)
}

// scopesFor are the scopes to ask for: those that the service demands now, else
// those that the operator or the service list; those that were asked for before,
// so that nothing is lost; and, where a person agrees and the server knows it,
// what gives a refresh token.
func (u *Upstream) scopesFor(last *Token, c challenge, d *discovery) []string {
	scopes := c.scopes
	if len(u.cfg.Scopes) > 0 {
		scopes = union(u.cfg.Scopes, c.scopes)
	} else if len(scopes) == 0 {
		scopes = d.scopes
	}
	if last != nil && d.isFrom(last) {
		scopes = union(last.Asked, scopes)
	}
	const offline = "offline_access"
	if u.cfg.Grant == AuthorizationCode && within([]string{offline}, d.server.ScopesSupported) {
		scopes = union(scopes, []string{offline})
	}
	return scopes
}
