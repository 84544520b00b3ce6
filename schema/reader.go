package schema

import (
	"bytes"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// reader makes the graph that the full validator makes of a schema, and finds
// out whether the schema is valid, for schemas that use only what most do:
// drafts 2020-12 and 7, keywords without a scope of their own, and references
// into the schema itself. It costs a small part of what the full validator
// takes.
//
// Where it meets anything else, or anything that is not as its meta-schema
// wants it, it gives up, and the full validator has the word.
type reader struct {
	draft int
	dated bool // the draft is that of the root's $schema
	root  []byte
	// known are the schemas by where their text starts, which is what a
	// reference finds. It is nil for a schema without references.
	known map[*byte]*jsonschema.Schema
	refs  []reference

	// dry reads without making anything.
	dry     bool
	scratch jsonschema.Schema // stands for every schema then
	// early says that a dry reader met what is only known to be valid once it
	// is made: a reference or a pattern.
	early bool
}

// reference is a $ref to be resolved once all schemas are known.
type reference struct {
	from   *jsonschema.Schema
	target string
}

// verdict is what can be said of a schema without making its graph.
type verdict int

const (
	unusual verdict = iota // the full validator has to read it
	early                  // it may be common, which making its graph will tell
	common                 // it is valid and common
)

// survey looks a well-formed schema over.
func survey(raw []byte, opts *Options) verdict {
	r := reader{root: raw, dry: true}
	if !r.chooseDraft(opts) {
		return unusual
	}
	switch _, end := r.schema(0); {
	case end < 0:
		return unusual
	case r.early:
		return early
	}
	return common
}

// readCommon returns the graph of a well-formed schema, and reports whether it
// could be made without the full validator.
func readCommon(raw []byte, opts *Options) (*jsonschema.Schema, bool) {
	r := reader{root: raw}
	if !r.chooseDraft(opts) {
		return nil, false
	}
	if bytes.Contains(raw, []byte(`ref"`)) {
		r.known = map[*byte]*jsonschema.Schema{}
	}
	root, end := r.schema(0)
	if end < 0 || !r.resolve() {
		return nil, false
	}
	return root, true
}

// chooseDraft sets the draft of the root, which is that of all its parts, and
// reports whether a schema can be read with these options.
func (r *reader) chooseDraft(opts *Options) bool {
	if opts.AssertFormat || len(opts.Resources) > 0 {
		return false
	}
	switch opts.Draft {
	case DraftDefault, Draft2020:
		r.draft = int(Draft2020)
	case Draft7:
		r.draft = int(Draft7)
	default:
		return false
	}
	if !bytes.Contains(r.root, []byte(`schema"`)) {
		return true
	}
	v, ok := rawjson.Get(r.root, "$schema")
	if !ok {
		return true
	}
	r.dated = true
	switch url, _ := rawjson.Unquote(v); strings.TrimSuffix(url, "#") {
	case "https://json-schema.org/draft/2020-12/schema":
		r.draft = int(Draft2020)
	case "http://json-schema.org/draft-07/schema":
		r.draft = int(Draft7)
	default:
		return false
	}
	return true
}

// resolve gives references their targets.
func (r *reader) resolve() bool {
	for _, ref := range r.refs {
		at := r.root
		if ref.target != "#" {
			path, ok := strings.CutPrefix(ref.target, "#/")
			if !ok || strings.ContainsFunc(path, unusualInPointer) {
				return false
			}
			if at, ok = rawjson.Get(r.root, strings.Split(path, "/")...); !ok {
				return false
			}
		}
		target := r.known[&at[0]]
		if target == nil {
			return false
		}
		if r.draft < int(Draft2019) {
			*ref.from = jsonschema.Schema{DraftVersion: r.draft} // nothing beside a reference counts
		}
		ref.from.Ref = target
	}
	return true
}

// unusualInPointer reports whether a character of a reference needs more than
// to be taken as it stands.
func unusualInPointer(c rune) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return false
	}
	return !strings.ContainsRune("/_-.$", c)
}

// fresh returns the schema to read the text at i into.
func (r *reader) fresh(i int) *jsonschema.Schema {
	if r.dry {
		return &r.scratch
	}
	s := &jsonschema.Schema{DraftVersion: r.draft}
	if r.known != nil {
		r.known[&r.root[i]] = s
	}
	return s
}

// schema reads the schema at i. The text is well-formed and read once, so that
// every function which reads a part of it returns where that ends, or -1 to give
// up.
func (r *reader) schema(i int) (*jsonschema.Schema, int) {
	s := r.fresh(i)
	switch r.root[i] {
	case 't', 'f':
		yes := r.root[i] == 't'
		s.Bool = &yes
		return s, r.skip(i)
	case '{':
	default:
		return nil, -1
	}
	members := 0
	end := r.members(i, func(key []byte, at int) int {
		members++
		return r.member(s, key, at, i == 0)
	})
	if members == 0 {
		yes := true
		s.Bool = &yes
	}
	if s.If == nil {
		s.Then, s.Else = nil, nil
	}
	return s, end
}

// members calls read for the key and the place of each member of the object at
// i; read returns where the member ends.
func (r *reader) members(i int, read func(key []byte, at int) int) int {
	if r.root[i] != '{' {
		return -1
	}
	i, done, _ := rawjson.FirstElement(r.root, i, '}')
	for !done {
		end, at, plain, _ := rawjson.ScanKey(r.root, i)
		key := r.root[i+1 : end-1]
		if !plain {
			text, _ := rawjson.Unquote(r.root[i:end])
			key = []byte(text)
		}
		if i = read(key, at); i < 0 {
			return -1
		}
		i, done, _ = rawjson.NextElement(r.root, i, '}')
	}
	return i
}

// skip returns where the value at i ends.
func (r *reader) skip(i int) int {
	end, err := rawjson.End(r.root, i)
	if err != nil {
		return -1
	}
	return end
}

// member reads the member of a schema whose value is at i. It gives up on one
// that is not known or not valid.
func (r *reader) member(s *jsonschema.Schema, key []byte, i int, isRoot bool) int {
	if known, end := r.applicator(s, key, i); known {
		return end
	}
	end := r.skip(i)
	if end < 0 || !r.keyword(s, key, r.root[i:end], isRoot) {
		return -1
	}
	return end
}

// keyword reads a keyword that holds no schemas.
func (r *reader) keyword(s *jsonschema.Schema, key, v []byte, isRoot bool) bool {
	if known, ok := r.limit(s, key, v); known {
		return ok
	}
	switch string(key) {
	case "type":
		return r.types(s, v)
	case "enum":
		return r.enum(s, v)
	case "const":
		return r.constant(s, v)
	case "required":
		return r.distinctStrings(&s.Required, v)
	case "pattern":
		return r.pattern(s, v)
	case "uniqueItems":
		s.UniqueItems = v[0] == 't'
		return rawjson.KindOf(v) == rawjson.KindBool
	case "$ref":
		r.early = true
		target, ok := rawjson.Unquote(v)
		r.refs = append(r.refs, reference{s, target})
		return ok
	case "$schema":
		return isRoot && r.dated
	}
	return isAnnotation(key, v)
}

// isAnnotation reports whether a keyword has no effect on what is valid.
func isAnnotation(key, v []byte) bool {
	switch string(key) {
	case "title", "description", "$comment", "format", "contentEncoding", "contentMediaType":
		return rawjson.KindOf(v) == rawjson.KindString
	case "deprecated", "readOnly", "writeOnly":
		return rawjson.KindOf(v) == rawjson.KindBool
	case "examples":
		return rawjson.KindOf(v) == rawjson.KindArray
	case "prefixItems", "additionalItems", "contains", "minContains", "maxContains", "dependencies", "dependentRequired",
		"dependentSchemas", "unevaluatedItems", "unevaluatedProperties", "contentSchema":
		return false
	}
	return len(key) == 0 || key[0] != '$'
}

// applicator reads a keyword that holds schemas.
func (r *reader) applicator(s *jsonschema.Schema, key []byte, i int) (known bool, end int) {
	switch string(key) {
	case "properties":
		s.Properties, end = r.byName(i)
	case "$defs":
		if end = -1; r.draft >= int(Draft2019) {
			_, end = r.byName(i)
		}
	case "definitions":
		_, end = r.byName(i)
	case "patternProperties":
		end = r.byPattern(s, i)
	case "additionalProperties":
		end = r.additional(s, i)
	case "items":
		end = r.items(s, i)
	case "propertyNames":
		s.PropertyNames, end = r.schema(i)
	case "not":
		s.Not, end = r.schema(i)
	case "if":
		if s.If, end = r.schema(i); r.root[i] != '{' {
			end = -1 // a branch that is never taken is not looked at
		}
	case "then":
		s.Then, end = r.schema(i)
	case "else":
		s.Else, end = r.schema(i)
	case "allOf":
		s.AllOf, end = r.list(i)
	case "anyOf":
		s.AnyOf, end = r.list(i)
	case "oneOf":
		s.OneOf, end = r.list(i)
	default:
		return false, -1
	}
	return true, end
}

func (r *reader) byName(i int) (map[string]*jsonschema.Schema, int) {
	var out map[string]*jsonschema.Schema
	if !r.dry {
		out = map[string]*jsonschema.Schema{}
	}
	end := r.members(i, func(key []byte, at int) int {
		s, end := r.schema(at)
		if !r.dry {
			out[string(key)] = s
		}
		return end
	})
	return out, end
}

func (r *reader) byPattern(s *jsonschema.Schema, i int) int {
	r.early = true
	named, end := r.byName(i)
	s.PatternProperties = map[jsonschema.Regexp]*jsonschema.Schema{}
	for source, sub := range named {
		re, err := compilePattern(source)
		if err != nil {
			return -1
		}
		s.PatternProperties[re] = sub
	}
	return end
}

// additional keeps true and false apart from other schemas.
func (r *reader) additional(s *jsonschema.Schema, i int) int {
	sub, end := r.schema(i)
	switch {
	case end < 0:
		return -1
	case r.root[i] == '{':
		s.AdditionalProperties = sub
	default:
		s.AdditionalProperties = *sub.Bool
	}
	return end
}

func (r *reader) items(s *jsonschema.Schema, i int) int {
	sub, end := r.schema(i)
	if r.draft >= int(Draft2020) {
		s.Items2020 = sub
	} else {
		s.Items = sub
	}
	return end
}

func (r *reader) list(i int) (out []*jsonschema.Schema, end int) {
	if r.root[i] != '[' {
		return nil, -1
	}
	i, done, _ := rawjson.FirstElement(r.root, i, ']')
	if done {
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
