package subset

// A form says how a shape is written for a provider.
type form int

const (
	formNever   form = iota
	formAny          // the empty schema
	formScalar       // null, boolean, integer, number or string
	formLiteral      // one of several values
	formArray        // a list of items
	formTuple        // prefixItems
	formSlots        // a tuple as an object with numbered properties
	formObject       // an object with named properties
	formPairs        // an open map as a list of keys and values
	formText         // any JSON as a text
	formUnion        // one of several shapes
)

// A shape is a schema that a provider can say.
type shape struct {
	form        form
	kind        kinds // of a scalar; of the JSON that a text holds; of the original of a literal
	description string
	notes       notes
	limits      []limit

	literals [][]byte // own values of formLiteral
	asText   bool     // a literal's values are written as the text of their JSON

	item     *shape   // of an array, of the values of a map, of what follows a tuple
	branches []*shape // of a union, elements of a tuple
	min      int      // how many slots of a tuple there must be
	props    []property
	sorted   []int  // the places of props, by their wire keys
	closed   bool   // an object takes no further keys
	key      *shape // of the keys of a map
	extra    *shape // the pairs of further keys, under extraWire
	extraKey string // its key
	holds    bool   // the shape holds itself
}

// A limit is a keyword with its value.
type limit struct {
	keyword string
	raw     []byte
}

// A property of an object.
type property struct {
	own, wire string
	required  bool // in the original
	shape     *shape
}

// takesNull reports whether null is a value of the shape.
func (s *shape) takesNull() bool {
	switch s.form {
	case formAny:
		return true
	case formScalar:
		return s.kind == kindNull
	case formLiteral:
		for _, v := range s.literals {
			if string(v) == "null" {
				return true
			}
		}
	case formUnion:
		for _, b := range s.leaves(nil, map[*shape]bool{}) {
			if b.takesNull() {
				return true
			}
		}
	}
	return false
}

// nullable reports whether the provider's form of an optional property is one
// that may be null, for want of a way to leave it out.
func (p *property) nullable(profile *Profile) bool {
	return profile.AllRequired && !p.required && !p.shape.takesNull()
}
