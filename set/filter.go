package set

import (
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/tools"
)

// FilterFunc chooses tools. It is called with tools that are not nil, must not
// change them, and must be safe for concurrent use if the set is shared. A nil
// one rejects every tool.
type FilterFunc func(tool *tools.Tool) bool

func (f FilterFunc) accepts(tool *tools.Tool) bool { return f != nil && tool != nil && f(tool) }

// some makes a filter that rejects nil tools whatever else it does.
func some(f FilterFunc) FilterFunc { return f.accepts }

// NamespaceFilter accepts tools of the namespaces. With none it rejects all.
func NamespaceFilter(namespaces ...string) FilterFunc {
	wanted := sorted(namespaces)
	return some(func(t *tools.Tool) bool { return has(wanted, namespace(t)) })
}

// namespace is the tool's own, or what stands before the last dot of its name.
func namespace(t *tools.Tool) string {
	if t.Namespace != "" {
		return t.Namespace
	}
	if dot := strings.LastIndexByte(t.Name, '.'); dot > 0 {
		return t.Name[:dot]
	}
	return ""
}

// CategoryFilter accepts tools of the categories. With none it rejects all.
func CategoryFilter(categories ...string) FilterFunc {
	wanted := sorted(categories)
	return some(func(t *tools.Tool) bool { return has(wanted, t.Category) })
}

// AllowIDs accepts the tools of these names. With none it rejects all.
func AllowIDs(ids ...string) FilterFunc {
	wanted := sorted(ids)
	return some(func(t *tools.Tool) bool { return has(wanted, t.Name) })
}

// DenyIDs accepts all tools but those of these names.
func DenyIDs(ids ...string) FilterFunc { return not(AllowIDs(ids...)) }

// TagsAny accepts tools that have one of the tags. With none it rejects all.
func TagsAny(tags ...string) FilterFunc {
	wanted := sorted(tags)
	return some(func(t *tools.Tool) bool {
		return slices.ContainsFunc(t.Tags, func(tag string) bool { return has(wanted, tag) })
	})
}

// TagsAll accepts tools that have every one of the tags. With none it accepts
// all.
func TagsAll(tags ...string) FilterFunc {
	wanted := sorted(tags)
	return some(func(t *tools.Tool) bool {
		return !slices.ContainsFunc(wanted, func(tag string) bool { return !slices.Contains(t.Tags, tag) })
	})
}

// TagsNone accepts tools that have none of the tags. With none it accepts all.
func TagsNone(tags ...string) FilterFunc { return not(TagsAny(tags...)) }

func not(f FilterFunc) FilterFunc { return some(func(t *tools.Tool) bool { return !f(t) }) }

func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}

// has reports whether a sorted list holds s.
func has(sorted []string, s string) bool {
	_, found := slices.BinarySearch(sorted, s)
	return found
}
