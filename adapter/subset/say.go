package subset

import (
	"fmt"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// short returns a value as text that fits into a sentence.
func short(v []byte) string {
	compact, err := rawjson.Compact(v)
	if err != nil {
		return "?"
	}
	return clipped(string(compact))
}

func clipped(s string) string {
	if len(s) > 120 {
		return strings.ToValidUTF8(s[:120], "") + "…"
	}
	return s
}

func shortList(list [][]byte, n int) string {
	var said []string
	for i, v := range list {
		if i == n {
			said = append(said, "…")
			break
		}
		said = append(said, short(v))
	}
	return strings.Join(said, ", ")
}

// limitText says what a limit means.
func limitText(keyword string, v []byte) string {
	said := short(v)
	switch keyword {
	case "minimum":
		return "At least " + said + "."
	case "maximum":
		return "At most " + said + "."
	case "exclusiveMinimum":
		return "Greater than " + said + "."
	case "exclusiveMaximum":
		return "Less than " + said + "."
	case "multipleOf":
		return "A multiple of " + said + "."
	case "minLength":
		return "At least " + said + " characters."
	case "maxLength":
		return "At most " + said + " characters."
	case "minItems":
		return "At least " + said + " items."
	case "maxItems":
		return "At most " + said + " items."
	case "minProperties":
		return "At least " + said + " properties."
	case "maxProperties":
		return "At most " + said + " properties."
	case "pattern":
		return "Matches the pattern " + clipped(text(v)) + "."
	case "format":
		return "Format: " + clipped(text(v)) + "."
	}
	return keyword + ": " + said + "."
}

// unenforced says in words what a keyword demands that no profile takes, and
// reports it.
func (b *builder) unenforced(m *merged, at, keyword string, v []byte, p part) {
	var said string
	switch keyword {
	case "not":
		if required, ok := member(v, "required"); ok && rawjson.Len(v) == 1 {
			said = "Must not have all of: " + strings.Join(words(required), ", ") + "."
			break
		}
		said = "Must not match the JSON Schema " + short(v) + "."
	case "if":
		said = conditionText(p, v)
	case "dependentRequired", "dependencies":
		said = dependencyText(v)
	case "dependentSchemas":
		said = "Where a property is given, its part of this applies: " + short(v) + "."
	case "contains":
		if said = containsText(p, v); said == "" {
			return
		}
	case "uniqueItems":
		if !isTrue(v) {
			return
		}
		said = "No two items are equal."
	}
	m.notes.add(said)
	b.losses.add(at, keyword, b.p.Provider+" does not take it; the description says it")
}

// containsText says how many items must match, or nothing when any number of them
// may.
func containsText(p part, v []byte) string {
	least, hasLeast := member(p.raw, "minContains")
	most, hasMost := member(p.raw, "maxContains")
	match := " items must match the JSON Schema " + short(v) + "."
	switch {
	case hasMost && hasLeast:
		return "At least " + short(least) + " and at most " + short(most) + match
	case hasMost:
		return "At least 1 and at most " + short(most) + match
	case !hasLeast:
		return "Some item must match the JSON Schema " + short(v) + "."
	case numeric(least) <= 0:
		return ""
	}
	return "At least " + short(least) + match
}

func conditionText(p part, condition []byte) string {
	said := "If it matches the JSON Schema " + short(condition)
	if then, ok := member(p.raw, "then"); ok {
		said += ", it must match " + short(then)
	}
	if otherwise, ok := member(p.raw, "else"); ok {
		said += ", otherwise it must match " + short(otherwise)
	}
	return said + "."
}

func dependencyText(v []byte) string {
	var said []string
	for it := rawjson.Object(v); it.Next() && len(said) < 8; {
		if needs := words(it.Value()); len(needs) > 0 {
			said = append(said, fmt.Sprintf("With %s there must be %s.", it.Key(), strings.Join(needs, ", ")))
		} else if rawjson.KindOf(it.Value()) == rawjson.KindObject {
			said = append(said, fmt.Sprintf("With %s the whole must match %s.", it.Key(), short(it.Value())))
		}
	}
	return strings.Join(said, " ")
}
