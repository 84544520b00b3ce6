package expr

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// Fits reports what keeps every value of shape s from being one that want
// describes, as far as both are known: a type that is never right, a required
// member that is missing, a member that there must not be. The error names the
// place as a JSON Pointer.
func (s Shape) Fits(want Shape) error { return fits(s, want, "", 0) }

// maxFitDepth bounds how deep shapes are compared; recursive ones have no end.
const maxFitDepth = 32

func fits(s, want Shape, at string, depth int) error {
	s, want = s.resolved(), want.resolved()
	if s.node == nil || want.open() || depth > maxFitDepth {
		return nil
	}
	have, expected := s.Types(), want.Types()
	if have != nil && expected != nil && !overlap(have, expected) {
		return &Misplaced{at, fmt.Errorf("expected %s, got %s", strings.Join(expected, " or "), strings.Join(have, " or "))}
	}
	if slices.Equal(have, []string{"object"}) {
		return membersFit(s, want, at, depth)
	}
	if slices.Equal(have, []string{"array"}) && expected != nil {
		element, _ := s.Element()
		wanted, _ := want.Element()
		return fits(element, wanted, at+"/0", depth+1)
	}
	return nil
}

func membersFit(s, want Shape, at string, depth int) error {
	properties, _ := s.node["properties"].(map[string]any)
	if err := requiredFit(s, want, at, properties); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		below := at + "/" + rawjson.EscapePointer(name)
		wanted, err := want.Member(name)
		if err != nil && s.closed() {
			return &Misplaced{below, fmt.Errorf("unexpected: %w", err)}
		}
		member, _ := s.Member(name)
		if err := fits(member, wanted, below, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// requiredFit demands of an object whose members are all known that it has the
// required ones.
func requiredFit(s, want Shape, at string, properties map[string]any) error {
	if !s.closed() {
		return nil
	}
	required, _ := want.node["required"].([]any)
	for _, r := range required {
		name, _ := r.(string)
		if _, ok := properties[name]; !ok {
			return &Misplaced{at, fmt.Errorf("missing required property %q", name)}
		}
	}
	return nil
}

// closed reports whether the shape is of an object that has its properties and
// no others.
func (s Shape) closed() bool {
	more, ok := s.node["additionalProperties"].(bool)
	return ok && !more && !s.open()
}

// overlap reports whether two sets of JSON types have a value in common.
func overlap(a, b []string) bool {
	for _, t := range a {
		if slices.Contains(b, t) || t == "integer" && slices.Contains(b, "number") || t == "number" && slices.Contains(b, "integer") {
			return true
		}
	}
	return false
}
