package turn

import (
	"context"
	"errors"
	"slices"

	"github.com/toolcrib/toolcrib/tools"
)

// Rule tells tools apart by what is known of them.
type Rule func(tool *tools.Tool) bool

// Fact is one fact of a tool's safety metadata.
type Fact func(s *tools.Safety) tools.Flag

// ReadOnly: a call changes nothing.
func ReadOnly(s *tools.Safety) tools.Flag { return s.ReadOnly }

// Destructive: a call may overwrite or delete.
func Destructive(s *tools.Safety) tools.Flag { return s.Destructive }

// Idempotent: repeating a call has no further effect.
func Idempotent(s *tools.Safety) tools.Flag { return s.Idempotent }

// OpenWorld: a call reaches things outside the tool's own domain, such as the
// network.
func OpenWorld(s *tools.Safety) tools.Flag { return s.OpenWorld }

// Filesystem: a call reads or writes files.
func Filesystem(s *tools.Safety) tools.Flag { return s.Filesystem }

// Process: a call starts processes or runs a shell.
func Process(s *tools.Safety) tools.Flag { return s.Process }

// Spend: a call may cost money.
func Spend(s *tools.Safety) tools.Flag { return s.Spend }

// NeedsConfirmation: a person must agree to each call.
func NeedsConfirmation(s *tools.Safety) tools.Flag { return s.NeedsConfirmation }

// Is holds for tools of which the fact is known to be so.
func Is(fact Fact) Rule {
	return func(t *tools.Tool) bool { return fact(&t.Safety) == tools.Yes }
}

// May holds for tools of which the fact is not known not to be so. A tool that
// says nothing may do anything.
func May(fact Fact) Rule {
	return func(t *tools.Tool) bool { return fact(&t.Safety) != tools.No }
}

// Tagged holds for tools with the tag.
func Tagged(tag string) Rule {
	return func(t *tools.Tool) bool { return slices.Contains(t.Tags, tag) }
}

// Named holds for tools of these canonical names.
func Named(names ...string) Rule {
	return func(t *tools.Tool) bool { return slices.Contains(names, t.Name) }
}

// Not holds where rule does not.
func Not(rule Rule) Rule { return func(t *tools.Tool) bool { return !rule(t) } }

// All holds where every one of the rules does.
func All(rules ...Rule) Rule {
	return func(t *tools.Tool) bool {
		return !slices.ContainsFunc(rules, func(r Rule) bool { return !r(t) })
	}
}

// Any holds where one of the rules does.
func Any(rules ...Rule) Rule {
	return func(t *tools.Tool) bool {
		return slices.ContainsFunc(rules, func(r Rule) bool { return r(t) })
	}
}

// Only selects the tools for which one of the rules holds. Meta-tools, which find
// and call others, are selected as well: what they call is judged by itself.
func Only(rules ...Rule) Selector {
	one := Any(rules...)
	return func(_ context.Context, declared []tools.Tool) ([]string, error) {
		var keep []string
		for i := range declared {
			if t := &declared[i]; t.Kind == tools.KindMeta || one(t) {
				keep = append(keep, t.Name)
			}
		}
		return keep, nil
	}
}

var errNotAllowed = errors.New("the rules of this agent do not allow the tool")

// Allow returns middleware that refuses the calls of all tools but those for
// which one of the rules holds, and meta-tools.
func Allow(rules ...Rule) Middleware {
	one := Any(rules...)
	return Before(func(_ context.Context, inv *Invocation) error {
		if inv.Tool.Kind == tools.KindMeta || one(inv.Tool) {
			return nil
		}
		return errNotAllowed
	})
}

// Deny returns middleware that refuses the calls of tools for which one of the
// rules holds.
func Deny(rules ...Rule) Middleware {
	one := Any(rules...)
	return Before(func(_ context.Context, inv *Invocation) error {
		if one(inv.Tool) {
			return errNotAllowed
		}
		return nil
	})
}
