// Package identity says who calls: the tenant, user and session of a caller,
// the run it belongs to, and the scopes it was granted. All of it rides on a
// context under one key, so that it is set at an entrance and read anywhere.
package identity

import (
	"context"
	"errors"
	"slices"
)

// ErrMissing is the value that MustQuadrupleFrom panics with when the context
// carries no identity.
var ErrMissing = errors.New("identity: no identity on the context")

// Identity names a caller. Each part is an opaque string chosen by whoever
// authenticated the caller.
type Identity struct {
	TenantID  string `json:"tenant_id"`
	UserID    string `json:"user_id"`
	SessionID string `json:"session_id"`
}

// Complete reports whether all three parts are present.
func (i Identity) Complete() bool {
	return i.TenantID != "" && i.UserID != "" && i.SessionID != ""
}

// Quadruple is an identity and the run that it acts in. The run may be empty.
type Quadruple struct {
	Identity
	RunID string `json:"run_id,omitempty"`
}

// Scopes is a set of granted scopes, kept sorted and without repeats.
type Scopes []string

// NewScopes returns the sorted set of the given names; empty names are left out.
func NewScopes(names ...string) Scopes {
	if len(names) == 0 {
		return nil
	}
	s := make(Scopes, 0, len(names))
	for _, n := range names {
		if n != "" {
			s = append(s, n)
		}
	}
	slices.Sort(s)
	return slices.Compact(s)
}

// Has reports whether scope is in the set.
func (s Scopes) Has(scope string) bool {
	_, ok := slices.BinarySearch(s, scope)
	return ok
}

// HasAll reports whether every one of the required scopes is in the set. No
// required scope is always satisfied.
func (s Scopes) HasAll(required []string) bool {
	for _, r := range required {
		if !s.Has(r) {
			return false
		}
	}
	return true
}

type key struct{}

// caller is what the one context key holds. It is never changed once stored.
type caller struct {
	quad   Quadruple
	scopes Scopes
}

// With returns a context that carries id and the scopes granted to it. It
// replaces an identity that is already there, including its run and scopes.
func With(ctx context.Context, id Identity, scopes ...string) context.Context {
	return WithQuadruple(ctx, Quadruple{Identity: id}, scopes...)
}

// WithQuadruple is With for a caller whose run is known.
func WithQuadruple(ctx context.Context, q Quadruple, scopes ...string) context.Context {
	return context.WithValue(ctx, key{}, &caller{quad: q, scopes: NewScopes(scopes...)})
}

// WithRun returns a context whose caller acts in the given run. Identity and
// scopes stay as they are.
func WithRun(ctx context.Context, runID string) context.Context {
	next := caller{}
	if c := from(ctx); c != nil {
		next = *c
	}
	next.quad.RunID = runID
	return context.WithValue(ctx, key{}, &next)
}

// From returns the caller's identity, and false when the context carries none
// or one whose three parts are all empty.
func From(ctx context.Context) (Identity, bool) {
	q, ok := QuadrupleFrom(ctx)
	return q.Identity, ok
}

// QuadrupleFrom returns the caller's identity and run, and false when the
// context carries no identity.
func QuadrupleFrom(ctx context.Context) (Quadruple, bool) {
	c := from(ctx)
	if c == nil {
		return Quadruple{}, false
	}
	return c.quad, c.quad.Identity != (Identity{})
}

// MustQuadrupleFrom is QuadrupleFrom for code that runs only behind a door
// which demands identity. It panics with ErrMissing when there is none.
func MustQuadrupleFrom(ctx context.Context) Quadruple {
	q, ok := QuadrupleFrom(ctx)
	if !ok {
		panic(ErrMissing)
	}
	return q
}

// ScopesFrom returns the scopes granted to the caller. The set belongs to the
// context: it must not be changed.
func ScopesFrom(ctx context.Context) Scopes {
	if c := from(ctx); c != nil {
		return c.scopes
	}
	return nil
}

func from(ctx context.Context) *caller {
	c, _ := ctx.Value(key{}).(*caller)
	return c
}
