package store

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/toolcrib/toolcrib/identity"
)

// Scope says how many callers share what a key names.
type Scope uint8

// The Scope values. The zero value is no scope.
const (
	ScopeGlobal Scope = iota + 1
	ScopeTenant
	ScopeUser
	ScopeSession
)

// String returns "global", "tenant", "user" or "session".
func (s Scope) String() string {
	switch s {
	case ScopeGlobal:
		return "global"
	case ScopeTenant:
		return "tenant"
	case ScopeUser:
		return "user"
	case ScopeSession:
		return "session"
	}
	return "no scope"
}

// Owner is whose a key is. Owners are comparable; the zero Owner is refused by
// every method of a store.
type Owner struct {
	scope                 Scope
	tenant, user, session string
}

// Global owns what belongs to the installation and derives from no caller.
func Global() Owner { return Owner{scope: ScopeGlobal} }

// Tenant owns what all users of id's tenant share.
func Tenant(id identity.Identity) Owner { return Owner{scope: ScopeTenant, tenant: id.TenantID} }

// User owns what all sessions of id's user share.
func User(id identity.Identity) Owner {
	return Owner{scope: ScopeUser, tenant: id.TenantID, user: id.UserID}
}

// Session owns what belongs to id's session alone.
func Session(id identity.Identity) Owner {
	return Owner{scope: ScopeSession, tenant: id.TenantID, user: id.UserID, session: id.SessionID}
}

// Scope returns how many callers share the owner's keys.
func (o Owner) Scope() Scope { return o.scope }

// Identity returns the parts that the scope has; the others are empty.
func (o Owner) Identity() identity.Identity {
	return identity.Identity{TenantID: o.tenant, UserID: o.user, SessionID: o.session}
}

// Check returns ErrInvalid when a part that the scope needs is empty or too
// long.
func (o Owner) Check() error {
	if o.scope < ScopeGlobal || o.scope > ScopeSession {
		return fmt.Errorf("%w: a key needs an owner: Global, Tenant, User or Session", ErrInvalid)
	}
	parts := []struct {
		name, value string
		from        Scope
	}{{"tenant", o.tenant, ScopeTenant}, {"user", o.user, ScopeUser}, {"session", o.session, ScopeSession}}
	for _, p := range parts {
		switch {
		case o.scope >= p.from && p.value == "":
			return fmt.Errorf("%w: an owner of scope %s needs a %s", ErrInvalid, o.scope, p.name)
		case len(p.value) > MaxPartBytes:
			return fmt.Errorf("%w: the %s has %d bytes; at most %d are allowed", ErrInvalid, p.name, len(p.value), MaxPartBytes)
		}
	}
	return nil
}

// Compare orders owners by tenant, scope, user and session, bytewise.
func (o Owner) Compare(other Owner) int {
	return cmp.Or(strings.Compare(o.tenant, other.tenant), cmp.Compare(o.scope, other.scope),
		strings.Compare(o.user, other.user), strings.Compare(o.session, other.session))
}

// Key names a record, a log or a lease; these three have separate names.
type Key struct {
	// Collection groups keys of one purpose: 1 to 64 of a–z, 0–9, underscore,
	// dot and dash.
	Collection string
	// Owner is whose the key is.
	Owner Owner
	// Name is any bytes, 1 to MaxPartBytes of them. Names sort bytewise.
	Name string
}

// Limits of keys and values.
const (
	// MaxPartBytes bounds a name, and each part of an owner.
	MaxPartBytes = 512
	// MaxCollectionBytes bounds a collection's name.
	MaxCollectionBytes = 64
	// MaxValueBytes bounds a record's value and a log's entry.
	MaxValueBytes = 16 << 20
	// MaxBatch bounds the writes, checks and leases of one batch together, and
	// the entries of one append.
	MaxBatch = 256
	// MaxPage bounds a page; a larger limit means this one.
	MaxPage = 1000
	// DefaultPage is the size of a page whose limit is zero.
	DefaultPage = 100
)

// Check returns ErrInvalid when the key cannot be used.
func (k Key) Check() error {
	if err := CheckCollection(k.Collection); err != nil {
		return err
	}
	if err := k.Owner.Check(); err != nil {
		return err
	}
	if k.Name == "" || len(k.Name) > MaxPartBytes {
		return fmt.Errorf("%w: a name has 1 to %d bytes, not %d", ErrInvalid, MaxPartBytes, len(k.Name))
	}
	return nil
}

// CheckCollection returns ErrInvalid when name cannot be a collection's.
func CheckCollection(name string) error {
	if name == "" || len(name) > MaxCollectionBytes {
		return fmt.Errorf("%w: a collection's name has 1 to %d characters, not %d", ErrInvalid, MaxCollectionBytes, len(name))
	}
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '.' && c != '-' {
			return fmt.Errorf("%w: a collection's name is made of a-z, 0-9, underscore, dot and dash", ErrInvalid)
		}
	}
	return nil
}

// PageSize returns the size of the page that a limit asks for.
func PageSize(limit int) int {
	if limit <= 0 {
		return DefaultPage
	}
	return min(limit, MaxPage)
}
