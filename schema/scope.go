package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// scope is what the dynamic anchors mean on the way to a schema: of the
// resources that the way leads through, the first that has an anchor says what
// that means. The scope without any meaning is nil.
type scope struct {
	means map[string]*subschema
	next  map[*resource]*scope
}

// scopes makes scopes, each once.
type scopes struct {
	wanted map[string]bool // the anchors that dynamic references look for
	empty  scope
	all    map[string]*scope // by what they mean
	// meanings counts what all scopes hold.
	meanings int
}

// target returns what a dynamic reference means.
func (s *scope) target(ref *dynamicRef) *subschema {
	if s != nil && ref.floats {
		if target := s.means[ref.anchor]; target != nil {
			return target
		}
	}
	return ref.initial
}

// enter returns the scope of what is reached from another by way of a resource.
func (ss *scopes) enter(from *scope, by *resource) *scope {
	if by == nil || len(ss.wanted) == 0 || len(by.dynamic) == 0 {
		return from
	}
	at := from
	if from == nil {
		at = &ss.empty
	}
	if to, ok := at.next[by]; ok {
		return to
	}
	means := maps.Clone(at.means)
	for name, target := range by.dynamic {
		if ss.wanted[name] && means[name] == nil {
			if means == nil {
				means = map[string]*subschema{}
			}
			means[name] = target
		}
	}
	to := from
	if len(means) > len(at.means) {
		to = ss.meaning(means)
	}
	if at.next == nil {
		at.next = map[*resource]*scope{}
	}
	at.next[by] = to
	return to
}

// meaning returns the one scope that gives anchors their meanings.
func (ss *scopes) meaning(means map[string]*subschema) *scope {
	var key strings.Builder
	for _, name := range slices.Sorted(maps.Keys(means)) {
		fmt.Fprintf(&key, "%q %p ", name, means[name])
	}
	if s := ss.all[key.String()]; s != nil {
		return s
	}
	if ss.all == nil {
		ss.all = map[string]*scope{}
	}
	ss.meanings += len(means)
	s := &scope{means: means}
	ss.all[key.String()] = s
	return s
}
