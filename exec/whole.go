package exec

import (
	"errors"
	"slices"

	"github.com/toolcrib/toolcrib/tools"
)

// ErrNoTenant: the parts of a composed tool have no tenant in common, so that
// nobody could call it.
var ErrNoTenant = errors.New("exec: the parts have no tenant in common")

// Whole returns what is to be said of a tool that is composed of others: the
// strongest of their side effects, the dangers of each, the scopes of all, and
// the tenants that see every one. What is not known of one part is not known of
// the whole. Confirmation stays with the parts, each of which asks for its own.
func Whole(parts []tools.Tool) (tools.Tool, error) {
	whole := tools.Tool{SideEffects: tools.SideEffectPure, Transport: tools.TransportFlow}
	restricted := false
	for _, part := range parts {
		whole.SideEffects = stronger(whole.SideEffects, part.SideEffects)
		whole.AuthScopes = append(whole.AuthScopes, part.AuthScopes...)
		if len(part.Tenants) == 0 {
			continue
		}
		if !restricted {
			whole.Tenants, restricted = slices.Clone(part.Tenants), true
			continue
		}
		whole.Tenants = slices.DeleteFunc(whole.Tenants, func(t string) bool { return !slices.Contains(part.Tenants, t) })
	}
	if restricted && len(whole.Tenants) == 0 {
		return tools.Tool{}, ErrNoTenant
	}
	slices.Sort(whole.AuthScopes)
	whole.AuthScopes = slices.Compact(whole.AuthScopes)
	whole.Safety = dangers(parts)
	return whole, nil
}

// stronger returns the more consequential of two effects; one that nobody
// classified is never taken for safe.
func stronger(a, b tools.SideEffect) tools.SideEffect {
	order := []tools.SideEffect{tools.SideEffectPure, tools.SideEffectRead, tools.SideEffectWrite, tools.SideEffectExternal, tools.SideEffectStateful, ""}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

func dangers(parts []tools.Tool) tools.Safety {
	var s tools.Safety
	for _, danger := range []struct {
		whole *tools.Flag
		part  func(*tools.Safety) tools.Flag
	}{
		{&s.Destructive, func(s *tools.Safety) tools.Flag { return s.Destructive }},
		{&s.OpenWorld, func(s *tools.Safety) tools.Flag { return s.OpenWorld }},
		{&s.Filesystem, func(s *tools.Safety) tools.Flag { return s.Filesystem }},
		{&s.Process, func(s *tools.Safety) tools.Flag { return s.Process }},
		{&s.Spend, func(s *tools.Safety) tools.Flag { return s.Spend }},
	} {
		*danger.whole = anyOf(parts, danger.part)
	}
	s.ReadOnly = opposite(anyOf(parts, func(s *tools.Safety) tools.Flag { return opposite(s.ReadOnly) }))
	return s
}

// anyOf is Yes if one part says so, No if all say no, and Unset otherwise.
func anyOf(parts []tools.Tool, flag func(*tools.Safety) tools.Flag) tools.Flag {
	all := len(parts) > 0
	for i := range parts {
		switch flag(&parts[i].Safety) {
		case tools.Yes:
			return tools.Yes
		case tools.Unset:
			all = false
		}
	}
	if all {
		return tools.No
	}
	return tools.Unset
}

func opposite(f tools.Flag) tools.Flag {
	switch f {
	case tools.Yes:
		return tools.No
	case tools.No:
		return tools.Yes
	}
	return tools.Unset
}
