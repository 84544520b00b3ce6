package set

import (
	"context"

	"github.com/toolcrib/toolcrib/tools"
)

// Policy has the last word about each tool of a set. Allow must be safe for
// concurrent use, and must not change the tool.
type Policy interface {
	Allow(tool *tools.Tool) bool
}

// CallerPolicy is a Policy whose word depends on who asks: on the identity and
// scopes on the context and on nothing else there. For sees the decision of
// AllowCaller; where there is no caller, Allow decides.
type CallerPolicy interface {
	Policy
	AllowCaller(ctx context.Context, tool *tools.Tool) bool
}

// PolicyFunc is a function as a Policy. A nil one denies.
type PolicyFunc func(tool *tools.Tool) bool

// Allow implements Policy.
func (f PolicyFunc) Allow(tool *tools.Tool) bool { return f != nil && tool != nil && f(tool) }

// AllowAll allows every tool that is not nil.
func AllowAll() Policy { return PolicyFunc(func(*tools.Tool) bool { return true }) }

// DenyAll denies every tool.
func DenyAll() Policy { return PolicyFunc(nil) }

// AllowNamespaces allows tools of the namespaces. With none it denies all.
func AllowNamespaces(namespaces ...string) Policy { return PolicyFunc(NamespaceFilter(namespaces...)) }

// DenyTags denies tools that have one of the tags.
func DenyTags(tags ...string) Policy { return PolicyFunc(TagsNone(tags...)) }

// AllowScopes allows tools whose every required scope is among those allowed.
// With none it allows those that require none.
func AllowScopes(allowed ...string) Policy {
	allowed = sorted(allowed)
	return PolicyFunc(func(t *tools.Tool) bool {
		for _, scope := range t.AuthScopes {
			if !has(allowed, scope) {
				return false
			}
		}
		return true
	})
}
