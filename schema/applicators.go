package schema

import "github.com/toolcrib/toolcrib/internal/rawjson"

// applicator reads a keyword that holds schemas.
func (r *reader) applicator(s *subschema, key []byte, i int) (known bool, end int) {
	switch string(key) {
	case "properties":
		s.properties, end = r.byName(i)
	case "$defs":
		if end = -1; r.draft >= Draft2019 {
			_, end = r.byName(i)
		}
	case "definitions":
		_, end = r.byName(i)
	case "patternProperties":
		end = r.byPattern(s, i)
	case "additionalProperties":
		s.additional, end = r.schema(i)
	case "items":
		end = r.items(s, i)
	case "propertyNames":
		s.names, end = r.schema(i)
	case "not":
		s.not, end = r.schema(i)
	case "if":
		if s.cond, end = r.schema(i); r.link == nil && r.root[i] != '{' {
			end = -1 // a branch that is never taken is not looked at
		}
	case "then":
		s.then, end = r.schema(i)
	case "else":
		s.orElse, end = r.schema(i)
	case "allOf":
		s.allOf, end = r.list(i)
	case "anyOf":
		s.anyOf, end = r.list(i)
	case "oneOf":
		s.oneOf, end = r.list(i)
	default:
		return r.rareApplicator(s, key, i)
	}
	return true, end
}

// rareApplicator reads the keywords with schemas that take a linker.
func (r *reader) rareApplicator(s *subschema, key []byte, i int) (known bool, end int) {
	if r.link == nil {
		return false, -1
	}
	switch string(key) {
	case "prefixItems":
		s.prefix, end = r.list(i)
	case "additionalItems":
		s.rest, end = r.schema(i)
	case "contains":
		s.contains, end = r.schema(i)
	case "dependencies":
		end = r.dependencies(s, i)
	case "dependentSchemas":
		s.dependentSchemas, end = r.byName(i)
	case "unevaluatedItems":
		s.unevaluatedItems, end = r.schema(i)
	case "unevaluatedProperties":
		s.unevaluatedProperties, end = r.schema(i)
	case "contentSchema":
		_, end = r.schema(i)
	default:
		return false, -1
	}
	return true, end
}

// dependencies reads what the drafts up to 7 have for dependentRequired and
// dependentSchemas.
func (r *reader) dependencies(s *subschema, i int) int {
	return r.members(i, func(key []byte, at int) int {
		if r.root[at] != '[' {
			sub, end := r.schema(at)
			s.dependentSchemas = append(s.dependentSchemas, namedSchema{string(key), sub})
			return end
		}
		return r.dependentNames(s, key, at)
	})
}

// dependentNames reads the names that a property needs.
func (r *reader) dependentNames(s *subschema, key []byte, i int) int {
	end := r.skip(i)
	d := dependentNames{name: string(key)}
	if end < 0 || !r.distinctStrings(&d.needs, r.root[i:end]) {
		return r.fail(i, "expected a list of names")
	}
	s.dependentRequired = append(s.dependentRequired, d)
	return end
}

func (r *reader) byName(i int) ([]namedSchema, int) {
	var out []namedSchema
	end := r.members(i, func(key []byte, at int) int {
		s, end := r.schema(at)
		if !r.dry {
			out = append(out, namedSchema{string(key), s})
		}
		return end
	})
	return out, end
}

func (r *reader) byPattern(s *subschema, i int) int {
	r.early = true
	return r.members(i, func(key []byte, at int) int {
		sub, end := r.schema(at)
		if end < 0 || r.dry {
			return end
		}
		re, err := compilePattern(string(key))
		if err != nil {
			return r.fail(at, err.Error())
		}
		s.patterns = append(s.patterns, patternMember{re, sub})
		return end
	})
}

// items reads one schema for all items, or before draft 2020-12 a list of
// schemas for the first ones.
func (r *reader) items(s *subschema, i int) (end int) {
	if r.link != nil && r.root[i] == '[' && r.draft < Draft2020 {
		s.listed = true
		s.prefix, end = r.list(i)
		return end
	}
	s.items, end = r.schema(i)
	return end
}

func (r *reader) list(i int) (out []*subschema, end int) {
	if r.root[i] != '[' {
		return nil, r.fail(i, "expected an array")
	}
	i, done, _ := rawjson.FirstElement(r.root, i, ']')
	if done && r.link == nil {
		return nil, -1
	}
	for !done {
		s, end := r.schema(i)
		if end < 0 {
			return nil, -1
		}
		if !r.dry {
			out = append(out, s)
		}
		i, done, _ = rawjson.NextElement(r.root, end, ']')
	}
	return out, i
}
