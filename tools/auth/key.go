package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
)

// Binding says whose token requests go out with.
type Binding string

// The values of Binding.
const (
	// Global: one token serves everybody. It is the default.
	Global Binding = "global"
	// PerTenant: each tenant has a token.
	PerTenant Binding = "tenant"
	// PerUser: each user of a tenant has a token.
	PerUser Binding = "user"
	// PerSession: each session of a user has a token.
	PerSession Binding = "session"
)

// Key names one token: of which service, and whose. Unless it is everybody's it
// always names the tenant.
type Key struct {
	// Source is the name of the service, and Resource its address: a token is
	// not found again for a service that moved.
	Source, Resource string
	// Terms stand for how the token was obtained: the grant, the client, the
	// authorization server, the scopes and further parameters, as configured. A
	// token is not found again where one of them changed.
	Terms                 string
	Binding               Binding
	Tenant, User, Session string
}

// String names the key without ambiguity.
func (k Key) String() string {
	return fmt.Sprintf("%q %q %s %s %q %q %q", k.Source, k.Resource, k.Terms, k.Binding, k.Tenant, k.User, k.Session)
}

// owner is the identity that the key belongs to, without what the binding does
// not tell apart.
func (b Binding) owner(id identity.Identity) identity.Identity {
	switch b {
	case PerTenant:
		return identity.Identity{TenantID: id.TenantID}
	case PerUser:
		return identity.Identity{TenantID: id.TenantID, UserID: id.UserID}
	case PerSession:
		return id
	}
	return identity.Identity{}
}

// keyFor returns the key of whoever a request on ctx is made for. Without an
// identity that is the gateway itself.
func (u *Upstream) keyFor(ctx context.Context) (Key, error) {
	id, ok := identity.From(ctx)
	if !ok {
		id = u.broker.opts.Self
	}
	owner := u.cfg.Binding.owner(id)
	if u.cfg.Binding != Global && owner.TenantID == "" || u.cfg.Binding == PerUser && owner.UserID == "" {
		return Key{}, &tools.Error{Code: tools.ErrIdentityRequired, Class: tools.ErrClassPermanent, Delivery: tools.NotDelivered,
			Message: fmt.Sprintf("%s: its tokens belong to a %s, and the call names none", u.cfg.Source, u.cfg.Binding)}
	}
	return Key{Source: u.cfg.Source, Resource: u.cfg.Resource, Terms: u.terms, Binding: u.cfg.Binding,
		Tenant: owner.TenantID, User: owner.UserID, Session: owner.SessionID}, nil
}

// terms are a digest of what decides which token is obtained. A secret that is
// replaced leaves them as they are.
func (c *Config) terms() string {
	scopes := slices.Sorted(slices.Values(c.Scopes))
	parts := []any{c.Grant, c.Client.ID, c.ClientMetadataURL, c.Issuer, c.AuthURL, c.TokenURL, slices.Compact(scopes), c.Extra}
	if c.Identity != nil {
		parts = append(parts, c.Identity.TokenURL, c.Identity.Client.ID)
	}
	text, err := json.Marshal(parts)
	if err != nil {
		panic(err) // texts always encode
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// mayAuthorize reports whether the caller on ctx may authorize for key: the one
// that it belongs to, whatever the session; for a token that callers share, who
// operates the gateway.
func (b *Broker) mayAuthorize(ctx context.Context, key Key) bool {
	id, ok := identity.From(ctx)
	switch {
	case !ok:
		return false
	case key.Binding == PerUser || key.Binding == PerSession:
		return id.TenantID == key.Tenant && id.UserID == key.User
	}
	return b.opts.Operates(ctx)
}
