package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// linker reads a schema of any kind, and of the documents that are at hand those
// that its references lead to.
type linker struct {
	opts *Options
	// meta returns the compiled meta-schema of a draft. It is nil while
	// meta-schemas are compiled, which are trusted.
	meta      func(Draft) *Schema
	resources map[string]*resource // by absolute URL
	known     map[*byte]*subschema // by where their text starts
	pending   map[*subschema]*pending
	dialects  map[string]*dialect
	trail     []string        // the meta-schemas on whose behalf it reads
	wanted    map[string]bool // the dynamic anchors that are looked for
}

// pending is what the references of a schema say, before they are resolved.
type pending struct {
	ref, dynamic, recursive *string
}

// linkedGraph is a graph with all that is reachable from its root resolved.
type linkedGraph struct {
	root   *subschema
	wanted map[string]bool
}

func newLinker(opts *Options, meta func(Draft) *Schema) *linker {
	return &linker{
		opts: opts, meta: meta,
		resources: map[string]*resource{}, known: map[*byte]*subschema{}, pending: map[*subschema]*pending{},
		dialects: map[string]*dialect{}, wanted: map[string]bool{},
	}
}

// link reads a well-formed schema that was found under a URL, and everything
// that it refers to.
func (l *linker) link(at string, raw []byte) (*linkedGraph, error) {
	res, err := l.load(at, raw)
	if err != nil {
		return nil, err
	}
	if err := l.resolve(res.root); err != nil {
		return nil, err
	}
	return &linkedGraph{res.root, l.wanted}, nil
}

// load reads a document.
func (l *linker) load(at string, text []byte) (*resource, error) {
	base, err := url.Parse(at)
	if err != nil {
		return nil, &CompileError{Reason: fmt.Sprintf("%q is not a URL", clip(at, maxName))}
	}
	base.Fragment, base.RawFragment = "", ""
	in, err := l.dialectOf(text)
	if err != nil {
		return nil, err
	}
	doc := &document{url: at, text: text, ends: longValues(text), places: places{doc: text}}
	res := newResource(doc, 0, base, in)
	l.resources[base.String()] = res
	root, err := l.read(res, 0)
	if err != nil {
		return nil, err
	}
	res.root = root
	return res, nil
}

// read reads the schema at i of the document of home, and checks it against the
// meta-schema.
func (l *linker) read(home *resource, i int) (*subschema, error) {
	doc := home.doc
	r := reader{draft: home.dialect.draft, root: doc.text, known: l.known, ends: doc.ends, link: l, home: home}
	r.nested = bytes.Contains(doc.text, []byte(`id"`)) || bytes.Contains(doc.text, []byte(`nchor"`)) ||
		bytes.Contains(doc.text, []byte(`\u`))
	s, end := r.schema(i)
	if end < 0 {
		end, _ = rawjson.End(doc.text, i)
	}
	if err := doc.check(foreign{i, end, home.dialect}); err != nil {
		return nil, err
	}
	for _, f := range doc.foreign {
		if err := doc.check(f); err != nil {
			return nil, err
		}
	}
	doc.foreign = nil
	if r.err != nil {
		return nil, doc.explain(r.err)
	}
	return s, nil
}

// check checks a part of a document against the meta-schema of its dialect.
func (d *document) check(part foreign) error {
	if part.dialect.meta == nil {
		return nil
	}
	opaque := map[int]bool{}
	for _, f := range d.foreign {
		opaque[f.at] = f != part
	}
	err := part.dialect.meta.checkSchema(d.text[part.at:part.end], &spans{d.ends, opaque, part.at})
	if err == nil {
		return nil
	}
	out := metaError(err)
	out.Path = clip(rawjson.PointerTo(d.text, part.at)+out.Path, maxPath)
	return d.explain(out)
}

// explain says which document an error is about, unless it is the schema itself.
func (d *document) explain(err error) error {
	compile, ok := err.(*CompileError)
	if !ok || d.url == baseURL {
		return err
	}
	return &CompileError{Path: compile.Path, Reason: fmt.Sprintf("resource %q: %s", clip(d.url, maxPath), compile.Reason), Err: compile.Err}
}

// metaError turns a violation of a meta-schema into an error: of several the
// one that lies deepest.
func metaError(err error) *CompileError {
	invalid, ok := err.(*Error)
	if !ok {
		return &CompileError{Reason: err.Error(), Err: err}
	}
	v := slices.MaxFunc(invalid.Violations, func(a, b Violation) int {
		return strings.Count(a.Path, "/") - strings.Count(b.Path, "/")
	})
	return &CompileError{Path: v.Path, Reason: v.Expected}
}

// refer notes a reference of s.
func (l *linker) refer(s *subschema, keyword string, v []byte) bool {
	target, ok := rawjson.Unquote(v)
	p := l.pending[s]
	if p == nil {
		p = &pending{}
		l.pending[s] = p
	}
	switch keyword {
	case "$ref":
		p.ref = &target
	case "$dynamicRef":
		p.dynamic = &target
	case "$recursiveRef":
		p.recursive = &target
	}
	return ok
}

// resolve gives the references of everything reachable from root their targets.
func (l *linker) resolve(root *subschema) error {
	seen := map[*subschema]bool{root: true}
	entered := map[*resource]bool{}
	queue := []*subschema{root}
	for i := 0; i < len(queue); i++ {
		s := queue[i]
		if p := l.pending[s]; p != nil {
			if err := l.bind(s, p); err != nil {
				return err
			}
		}
		next := s.next()
		if !entered[s.home] {
			entered[s.home] = true
			for _, name := range slices.Sorted(maps.Keys(s.home.dynamic)) {
				next = append(next, s.home.dynamic[name])
			}
		}
		for _, n := range next {
			if n != nil && !seen[n] {
				seen[n] = true
				queue = append(queue, n)
			}
		}
	}
	return nil
}

// bind gives s the targets of its references.
func (l *linker) bind(s *subschema, p *pending) error {
	if p.ref != nil {
		target, _, err := l.lookup(s.home, *p.ref)
		if err != nil {
			return err
		}
		s.refer(target)
	}
	if p.dynamic != nil {
		target, anchor, err := l.lookup(s.home, *p.dynamic)
		if err != nil {
			return err
		}
		l.float(s, target, anchor, anchor != "")
	}
	if p.recursive != nil {
		target, _, err := l.lookup(s.home, *p.recursive)
		if err != nil {
			return err
		}
		l.float(s, target, recursiveAnchor, true)
	}
	return nil
}

// float gives s a dynamic reference. It floats if what it means at first has the
// anchor as a dynamic one.
func (l *linker) float(s, initial *subschema, anchor string, named bool) {
	floats := named && initial.home.dynamic[anchor] == initial
	s.dynamic = &dynamicRef{initial, anchor, floats}
	if floats {
		l.wanted[anchor] = true
	}
}

// lookup finds what a reference leads to, and returns the anchor that the
// reference names, if it does.
func (l *linker) lookup(from *resource, ref string) (target *subschema, anchor string, err error) {
	before, fragment, _ := strings.Cut(ref, "#")
	res := from
	if before != "" {
		if res, err = l.resourceAt(from, before); err != nil {
			return nil, "", err
		}
	}
	anchor, err = url.PathUnescape(fragment)
	switch {
	case err != nil:
	case anchor == "":
		return res.root, "", nil
	case anchor[0] == '/':
		target, err = l.point(res, anchor)
		return target, "", err
	case res.anchors[anchor] != nil:
		return res.anchors[anchor], anchor, nil
	}
	return nil, "", pointsToNothing(res, fragment)
}

func pointsToNothing(res *resource, fragment string) error {
	return &CompileError{Reason: fmt.Sprintf("$ref %q points to nothing", local(res.base.String()+"#"+fragment))}
}

// resourceAt returns the resource that a reference without its fragment means.
func (l *linker) resourceAt(from *resource, ref string) (*resource, error) {
	u, err := from.base.Parse(ref)
	if err != nil {
		return nil, &CompileError{Reason: fmt.Sprintf("$ref %q is not a URI reference", clip(ref, maxName))}
	}
	at := u.String()
	if res := l.resources[at]; res != nil {
		return res, nil
	}
	text, ok := l.textOf(at)
	if !ok {
		return nil, notGiven("$ref", at)
	}
	return l.load(at, text)
}

func notGiven(keyword, url string) error {
	return &CompileError{Reason: fmt.Sprintf("%s %q is not among the given resources, and nothing is loaded from elsewhere", keyword, local(url))}
}

// textOf returns the document that a URL stands for, if it is at hand.
func (l *linker) textOf(at string) (json.RawMessage, bool) {
	if text, ok := metaText(at); ok {
		return text, true
	}
	for _, name := range []string{at, at + "#"} {
		if text, ok := l.opts.Resources[name]; ok {
			return rawjson.Trim(text), true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.opts.Resources)) {
		if u, err := url.Parse(name); err == nil && strings.TrimSuffix(u.String(), "#") == at {
			return rawjson.Trim(l.opts.Resources[name]), true
		}
	}
	return nil, false
}

// point returns the schema that a JSON Pointer leads to in a resource.
func (l *linker) point(res *resource, pointer string) (*subschema, error) {
	doc, at, home := res.doc, res.at, res
	for token := range strings.SplitSeq(pointer[1:], "/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		var ok bool
		if at, ok = doc.places.child(at, token); !ok {
			return nil, pointsToNothing(res, pointer)
		}
		if s := l.known[&doc.text[at]]; s != nil {
			home = s.home
		}
	}
	if s := l.known[&doc.text[at]]; s != nil {
		return s, nil
	}
	return l.read(home, at)
}
