package schema

import (
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func compareStrings(a, b string) int { return strings.Compare(a, b) }

// reachable returns every schema that can be reached from root.
func reachable(root *jsonschema.Schema) []*jsonschema.Schema {
	seen := map[*jsonschema.Schema]bool{root: true}
	all := []*jsonschema.Schema{root}
	for i := 0; i < len(all); i++ {
		for _, next := range append(sameValue(all[i]), parts(all[i])...) {
			if next != nil && !seen[next] {
				seen[next] = true
				all = append(all, next)
			}
		}
	}
	return all
}

// sameValue returns the schemas that s applies to the value it is applied to.
func sameValue(s *jsonschema.Schema) []*jsonschema.Schema {
	out := []*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else}
	if s.DynamicRef != nil {
		out = append(out, s.DynamicRef.Ref)
	}
	out = append(out, s.AllOf...)
	out = append(out, s.AnyOf...)
	out = append(out, s.OneOf...)
	for _, dep := range s.DependentSchemas {
		out = append(out, dep)
	}
	for _, dep := range s.Dependencies {
		if sub, ok := dep.(*jsonschema.Schema); ok {
			out = append(out, sub)
		}
	}
	return out
}

// parts returns the schemas that s applies to parts of its value.
func parts(s *jsonschema.Schema) []*jsonschema.Schema {
	out := []*jsonschema.Schema{
		s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems, s.ContentSchema,
	}
	for _, p := range s.Properties {
		out = append(out, p)
	}
	for _, p := range s.PatternProperties {
		out = append(out, p)
	}
	for _, v := range []any{s.AdditionalProperties, s.AdditionalItems, s.Items} {
		switch v := v.(type) {
		case *jsonschema.Schema:
			out = append(out, v)
		case []*jsonschema.Schema:
			out = append(out, v...)
		}
	}
	return append(out, s.PrefixItems...)
}

// hasInPlaceCycle reports whether some schema applies itself to the same value,
// directly or by way of others, as {"$ref": "#"} does.
func hasInPlaceCycle(all []*jsonschema.Schema) bool {
	const open, done = 1, 2
	state := make(map[*jsonschema.Schema]int, len(all))
	var visit func(s *jsonschema.Schema) bool
	visit = func(s *jsonschema.Schema) bool {
		if s == nil || state[s] == done {
			return false
		}
		if state[s] == open {
			return true
		}
		state[s] = open
		for _, next := range sameValue(s) {
			if visit(next) {
				return true
			}
		}
		state[s] = done
		return false
	}
	for _, s := range all {
		if visit(s) {
			return true
		}
	}
	return false
}
