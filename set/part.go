package set

import (
	"context"
	"crypto/rand"
	"slices"
	"strconv"
	"strings"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
)

// ClassedPolicy is a CallerPolicy that says which callers it treats alike, so
// that what is kept for one of them serves all. Without it callers are alike
// whose identity and scopes are the same.
type ClassedPolicy interface {
	CallerPolicy
	// CallerClass names what the policy reads of the caller on ctx. Callers of
	// one class are allowed the same tools.
	CallerClass(ctx context.Context) string
}

// Part returns what the set leaves of a catalog for the caller on ctx. It is what
// narrows a catalog to the set:
//
//	ctx = tools.WithPart(ctx, ts.Part)
//
// Of a set with tools of its own, the catalog's tools of the same names are in
// the part.
func (t *Toolset) Part(ctx context.Context) tools.Part {
	return tools.Part{Class: t.class(ctx), Holds: func(tool *tools.Tool) bool { return t.holds(ctx, tool) }}
}

func (t *Toolset) holds(ctx context.Context, tool *tools.Tool) bool {
	if tool == nil {
		return false
	}
	t.mu.RLock()
	own := t.own[tool.Name] != nil
	t.mu.RUnlock()
	if own {
		return allows(ctx, t.policy, tool)
	}
	return t.registry != nil && t.Permits(ctx, tool)
}

// class names what decides about the tools of the set.
func (t *Toolset) class(ctx context.Context) string {
	edition := t.editionNow()
	switch p := t.policy.(type) {
	case ClassedPolicy:
		return edition + strconv.Quote(p.CallerClass(ctx))
	case CallerPolicy:
		return edition + callerClass(ctx)
	}
	return edition
}

// editionNow names the set as it is until something is added to it or removed. No
// other set has the name.
func (t *Toolset) editionNow() string {
	t.mu.RLock()
	now := t.edition
	t.mu.RUnlock()
	if now != "" {
		return now
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.edition == "" {
		t.edition = rand.Text()
	}
	return t.edition
}

func callerClass(ctx context.Context) string {
	who, _ := identity.From(ctx)
	parts := append([]string{who.TenantID, who.UserID, who.SessionID}, slices.Sorted(slices.Values(identity.ScopesFrom(ctx)))...)
	for i, p := range parts {
		parts[i] = strconv.Quote(p)
	}
	return strings.Join(parts, " ")
}
