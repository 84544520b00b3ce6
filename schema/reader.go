package schema

import (
	"bytes"
	"strings"
	"sync"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// reader makes the graph of a schema's text.
//
// Without a linker it is for the schemas that use only what most do: drafts
// 2020-12 and 7, keywords without a scope of their own, and references into the
// schema itself. It then finds out at once whether the schema is valid, which
// costs a small part of what a check against the meta-schema takes, and gives up
// where it meets anything else, or anything that is not as the meta-schema wants
// it.
//
// With a linker it reads whatever the drafts know, leaves references to the
// linker, and fails only for what no meta-schema should have let pass.
type reader struct {
	draft Draft
	dated bool // the draft is that of the root's $schema
	root  []byte
	// known are the schemas by where their text starts, which is what a
	// reference finds. It is nil for a schema without references.
	known map[*byte]*subschema
	refs  []reference

	// dry reads without making anything.
	dry     bool
	scratch subschema // stands for every schema then
	// early says that a dry reader met what is only known to be valid once it
	// is made: a reference or a pattern.
	early bool

	ends map[int]int // of long values, by where they start; nil: not known
	link *linker     // nil: read what is common
	home *resource   // of what is being read
	// nested says that parts of the text may be resources or have anchors.
	nested bool
	err    error // why reading with a linker stopped
}

// reference is a $ref to be resolved once all schemas are known.
type reference struct {
	from   *subschema
	target string
}

// verdict is what can be said of a schema without making its graph.
type verdict int

const (
	unusual verdict = iota // it has to be linked, and checked against its meta-schema
	early                  // it may be common, which making its graph will tell
	common                 // it is valid and common
)

// survey looks a well-formed schema over.
func survey(raw []byte, opts *Options) verdict {
	r := surveyors.Get().(*reader)
	defer func() {
		*r = reader{}
		surveyors.Put(r)
	}()
	r.root, r.dry = raw, true
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

// surveyors lends readers to survey.
var surveyors = sync.Pool{New: func() any { return new(reader) }}

// readCommon returns the graph of a well-formed schema, and reports whether it
// could be made without a linker.
func readCommon(raw []byte, opts *Options) (*subschema, bool) {
	r := reader{root: raw}
	if !r.chooseDraft(opts) {
		return nil, false
	}
	if bytes.Contains(raw, []byte(`ref"`)) {
		r.known = map[*byte]*subschema{}
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
		r.draft = Draft2020
	case Draft7:
		r.draft = Draft7
	default:
		return false
	}
	if !bytes.Contains(r.root, []byte(`$schema"`)) {
		return true // or the key has escapes, which is not common
	}
	v, ok := rawjson.Get(r.root, "$schema")
	if !ok {
		return true
	}
	r.dated = true
	switch url, _ := rawjson.Unquote(v); strings.TrimSuffix(url, "#") {
	case "https://json-schema.org/draft/2020-12/schema":
		r.draft = Draft2020
	case "http://json-schema.org/draft-07/schema":
		r.draft = Draft7
	default:
		return false
	}
	return true
}

// resolve gives references their targets.
func (r *reader) resolve() bool {
	places := places{doc: r.root}
	for _, ref := range r.refs {
		at := 0
		if ref.target != "#" {
			path, ok := strings.CutPrefix(ref.target, "#/")
			if !ok || strings.ContainsFunc(path, unusualInPointer) {
				return false
			}
			for token := range strings.SplitSeq(path, "/") {
				if at, ok = places.member(at, token); !ok {
					return false
				}
			}
		}
		target := r.known[&r.root[at]]
		if target == nil {
			return false
		}
		ref.from.refer(target)
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

// refer makes s refer to target. Before draft 2019-09 nothing beside a reference
// counts.
func (s *subschema) refer(target *subschema) {
	if s.draft < Draft2019 {
		*s = subschema{draft: s.draft, home: s.home}
	}
	s.ref = target
}

// fresh returns the schema to read the text at i into.
func (r *reader) fresh(i int) *subschema {
	if r.dry {
		return &r.scratch
	}
	s := &subschema{draft: r.draft, home: r.home}
	if r.known != nil {
		r.known[&r.root[i]] = s
	}
	return s
}

// schema reads the schema at i. The text is well-formed and read once, so that
// every function which reads a part of it returns where that ends, or -1 to give
// up.
func (r *reader) schema(i int) (*subschema, int) {
	if r.link != nil {
		return r.linked(i)
	}
	return r.plain(i)
}

// plain reads the schema at i as one of the resource that is being read.
func (r *reader) plain(i int) (*subschema, int) {
	s := r.fresh(i)
	switch r.root[i] {
	case 't', 'f':
		yes := r.root[i] == 't'
		s.always = &yes
		return s, r.skip(i)
	case '{':
	default:
		return nil, r.fail(i, "expected an object or a boolean")
	}
	members := 0
	end := r.members(i, func(key []byte, at int) int {
		members++
		return r.member(s, key, at, i == 0)
	})
	if members == 0 {
		yes := true
		s.always = &yes
	}
	if s.cond == nil {
		s.then, s.orElse = nil, nil
	}
	return s, end
}

// fail gives up at i and, with a linker, says why.
func (r *reader) fail(i int, reason string) int {
	if r.link != nil && r.err == nil {
		r.err = &CompileError{Path: rawjson.PointerTo(r.root, i), Reason: reason}
	}
	return -1
}

// members calls read for the key and the place of each member of the object at
// i; read returns where the member ends.
func (r *reader) members(i int, read func(key []byte, at int) int) int {
	if r.root[i] != '{' {
		return r.fail(i, "expected an object")
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
	if end, ok := r.ends[i]; ok {
		return end
	}
	end, err := rawjson.End(r.root, i)
	if err != nil {
		return -1
	}
	return end
}

// member reads the member of a schema whose value is at i. It gives up on one
// that is not known or not valid; with a linker it skips what is not known.
func (r *reader) member(s *subschema, key []byte, i int, isRoot bool) int {
	if r.link != nil && !r.home.dialect.has(key) {
		return r.skip(i)
	}
	if known, end := r.applicator(s, key, i); known {
		return end
	}
	end := r.skip(i)
	if end < 0 || !r.keyword(s, key, r.root[i:end], isRoot) {
		return r.fail(i, "not a value that "+clip(string(key), maxName)+" can have")
	}
	return end
}
