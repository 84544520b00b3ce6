package subset

import "slices"

// Profile says which schemas a provider takes. It is not changed once it is in
// use.
type Profile struct {
	// Provider names the provider in reasons.
	Provider string
	// Full says that everything of draft 2020-12 is taken below the root.
	// Otherwise only what the fields under "Subset" name is taken.
	Full bool
	// PlainRoot says that the root must be an object without anyOf, oneOf,
	// allOf, enum, not and $ref.
	PlainRoot bool
	// ArrayItems says that every array must say what its items are.
	ArrayItems bool
	// Keys bounds the keys of properties.
	Keys KeyRule

	// Subset: what is taken by a provider that is not Full.

	// Keywords lists the limits that are taken, such as "minimum".
	Keywords []string
	// Formats lists the values of "format" that are taken for strings.
	Formats []string
	// AllRequired says that every property must be required and every object
	// closed. An optional property then becomes one that may be null.
	AllRequired bool
	// Maps says that additionalProperties with a schema is taken.
	Maps bool
	// Tuples says that prefixItems is taken.
	Tuples bool
	// Refs says that $ref to #/$defs is taken, recursion included.
	Refs bool
	// AnyValue says that the empty schema is taken.
	AnyValue bool
	// OpenAPI says that the dialect is that of OpenAPI 3.0 as Gemini writes it:
	// upper-case types, "nullable", enumerations of strings only, nothing beside
	// anyOf.
	OpenAPI bool

	// MaxDepth bounds how deep objects and arrays nest, MaxProperties the
	// properties of the whole schema, MaxEnum its enumerated values and
	// MaxChars the characters of its keys and enumerated values. 0 stands for
	// a bound that no sensible schema reaches.
	MaxDepth, MaxProperties, MaxEnum, MaxChars int
}

// The bounds that hold where a profile names none, and those of all profiles.
const (
	defaultDepth      = 24
	defaultProperties = 5_000
	defaultEnum       = 5_000
	defaultChars      = 500_000

	maxSource   = 1 << 19 // bytes of a schema
	maxNesting  = 128     // of a schema
	maxOutput   = 1 << 18 // bytes of a provider's schema
	maxShapes   = 3_000   // parts of a provider's schema
	maxWork     = 4 << 20 // bytes of schemas that one attempt reads
	maxUnions   = 12      // unions within unions
	maxBranches = 48      // of one union, once it is spread
	maxUnroll   = 2       // how often a recursion is written out
)

func (p *Profile) depth() int      { return orDefault(p.MaxDepth, defaultDepth) }
func (p *Profile) properties() int { return orDefault(p.MaxProperties, defaultProperties) }
func (p *Profile) enum() int       { return orDefault(p.MaxEnum, defaultEnum) }
func (p *Profile) chars() int      { return orDefault(p.MaxChars, defaultChars) }

func orDefault(n, otherwise int) int {
	if n <= 0 {
		return otherwise
	}
	return n
}

func (p *Profile) takes(keyword string) bool { return slices.Contains(p.Keywords, keyword) }

// KeyRule says which keys properties may have. The zero value takes all.
type KeyRule struct {
	// Marks are the characters beside letters and digits. Empty takes every
	// key.
	Marks string
	// Max bounds a key, in bytes.
	Max int
	// Word says that a key starts with a letter or an underscore.
	Word bool
}
