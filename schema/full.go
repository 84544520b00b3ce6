package schema

import (
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// full checks the trusted value between i and end with the full validator.
func (c *checker) full(s *jsonschema.Schema, i, end int) bool {
	raw := c.doc[i:end]
	if at := unboundedNumber(raw); at >= 0 {
		return c.failAt(i+at, "number", "expected a number of at most 4096 digits before and after the point")
	}
	v, err := decode(raw)
	if err != nil {
		return false
	}
	err = c.validate(s, v)
	var verr *jsonschema.ValidationError
	if err == nil {
		return true
	}
	if c.report == nil || !errors.As(err, &verr) {
		return false
	}
	return c.leaves(verr, rawjson.PointerTo(c.doc, i))
}

// validate runs the full validator. A pattern that takes too long ends the
// check, as it does outside of it.
func (c *checker) validate(s *jsonschema.Schema, v any) (err error) {
	defer outOfTime(func() {
		c.budget, c.exhausted = 0, true
		err = errUnmatchable
	})
	return s.Validate(v)
}

var errUnmatchable = errors.New("a pattern cannot be matched with bounded effort")

func (c *checker) failAt(at int, kw, expected string) bool {
	if c.report == nil {
		return false
	}
	return c.report.append(Violation{Path: rawjson.PointerTo(c.doc, at), Keyword: kw, Expected: expected})
}

// leaves records the causes that have no further causes. Those of alternatives
// are summed up, since any of them would do.
func (c *checker) leaves(verr *jsonschema.ValidationError, base string) bool {
	_, anyOf := verr.ErrorKind.(*kind.AnyOf)
	_, oneOf := verr.ErrorKind.(*kind.OneOf)
	if len(verr.Causes) == 0 || anyOf || oneOf {
		kw, text := describe(verr)
		return c.report.append(Violation{Path: clip(base+pointer(verr.InstanceLocation), 256), Keyword: kw, Expected: text})
	}
	for _, cause := range verr.Causes {
		if !c.leaves(cause, base) {
			return false
		}
	}
	return true
}

// describe says what an error of the full validator asks for, without anything
// of the value.
func describe(verr *jsonschema.ValidationError) (kw, text string) {
	path := verr.ErrorKind.KeywordPath()
	if len(path) > 0 {
		kw = path[0]
	}
	switch k := verr.ErrorKind.(type) {
	case *kind.Type:
		return kw, fmt.Sprintf("expected %s, got %s", strings.Join(k.Want, " or "), k.Got)
	case *kind.Required:
		return kw, "missing required property " + quoteNames(k.Missing)
	case *kind.DependentRequired:
		return kw, "missing required property " + quoteNames(k.Missing)
	case *kind.AdditionalProperties:
		return kw, "unexpected property " + quoteNames(k.Properties)
	case *kind.FalseSchema:
		return lastToken(verr.SchemaURL), "no value is allowed here"
	case *kind.Enum:
		var texts []string
		for _, v := range k.Want {
			texts = append(texts, string(encode(v)))
		}
		return kw, "expected one of " + listText(texts)
	case *kind.Not:
		return "not", "expected a value that the schema under \"not\" does not accept"
	case *kind.AnyOf, *kind.OneOf:
		return kw, "expected a match for an alternative of " + kw
	case *kind.Format:
		return kw, "expected the format " + quoteName(k.Want)
	case *kind.RefCycle:
		return "$ref", "the schema refers to itself without end"
	}
	return kw, limitText(kw, verr.ErrorKind)
}

func limitText(kw string, k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.MinLength:
		return "expected at least " + count(k.Want, "character")
	case *kind.MaxLength:
		return "expected at most " + count(k.Want, "character")
	case *kind.MinItems:
		return "expected at least " + count(k.Want, "item")
	case *kind.MaxItems:
		return "expected at most " + count(k.Want, "item")
	case *kind.Pattern:
		return "expected a match for the pattern " + quoteName(k.Want)
	case *kind.Minimum:
		return "expected a number >= " + clip(k.Want.RatString(), maxName)
	case *kind.Maximum:
		return "expected a number <= " + clip(k.Want.RatString(), maxName)
	}
	return "does not satisfy " + clip(kw, maxName)
}

func quoteNames(names []string) string {
	var quoted []string
	for i, n := range names {
		if i == MaxViolations {
			quoted = append(quoted, "…")
			break
		}
		quoted = append(quoted, quoteName(n))
	}
	return strings.Join(quoted, ", ")
}

func lastToken(url string) string {
	return clip(url[strings.LastIndexAny(url, "/#")+1:], maxName)
}
