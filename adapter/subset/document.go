package subset

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// A place is one schema of a document, named by its JSON Pointer.
type place struct {
	at  string
	raw []byte
}

func (p place) child(tokens ...string) string {
	at := p.at
	for _, t := range tokens {
		at += "/" + rawjson.EscapePointer(t)
	}
	return at
}

// A document is a whole schema with the names that references can use.
type document struct {
	root  []byte
	ids   map[string]string // of resources, absolute or as written, to pointers
	bases map[string]string // pointers of resources to what their ids come to
	names map[string]string // of anchors, after their resource's id and '#', to pointers
	keys  map[string]bool   // of all properties
	refs  []reference
	known map[reference]place // what the references come to

	pointers  int               // bytes of all pointers
	scanned   int               // bytes that were read to find what references lead to
	elsewhere map[string][]byte // by pointer, what references lead to that is under no keyword of schemas

	places     map[string]location          // by pointer, all schemas
	properties map[string]map[string][]byte // by pointer, those of a schema
}

// A location is a schema of a document: what stands there, below which schema,
// under which keyword, and which of several it is.
type location struct {
	raw             []byte
	parent, keyword string
	token           string
	inside          bool // of several
}

// A reference stands at a place of a document.
type reference struct{ ref, at string }

// refersToDefs reports whether all references lead to definitions of the root.
func (d *document) refersToDefs() bool {
	for _, r := range d.refs {
		target, err := d.resolve(r.ref, r.at)
		if err != nil || !strings.HasPrefix(target.at, "/$defs/") && !strings.HasPrefix(target.at, "/definitions/") {
			return false
		}
	}
	return true
}

// refersToRoot reports whether a reference leads to the root.
func (d *document) refersToRoot() bool {
	for _, target := range d.known {
		if target.at == "" {
			return true
		}
	}
	return false
}

// newDocument reads the ids, anchors and property keys of a schema, which is
// well-formed.
func newDocument(raw []byte) *document {
	d := &document{
		root: raw, ids: map[string]string{}, bases: map[string]string{}, names: map[string]string{}, keys: map[string]bool{},
		places: map[string]location{"": {raw: raw}}, properties: map[string]map[string][]byte{},
		elsewhere: map[string][]byte{},
	}
	d.index(place{"", raw}, "")
	d.known = make(map[reference]place, len(d.refs))
	for _, r := range d.refs {
		if target, err := d.find(r.ref, r.at); err == nil {
			d.known[r] = target
		}
	}
	return d
}

func (d *document) index(p place, base string) {
	if rawjson.KindOf(p.raw) != rawjson.KindObject {
		return
	}
	base = d.identify(p, base)
	for it := rawjson.Object(p.raw); it.Next(); {
		keyword, value := it.Key(), it.Value()
		switch keyword {
		case "$anchor", "$dynamicAnchor":
			if name, ok := rawjson.Unquote(value); ok {
				d.names[base+"#"+name] = p.at
				d.pointers += len(base)
			}
		case "$ref", "$dynamicRef", "$recursiveRef":
			d.refs = append(d.refs, reference{text(value), p.at})
			d.pointers += len(base)
		case "required":
			d.learn(words(value))
		case "dependentRequired", "dependencies":
			d.learnDependencies(value)
		}
		inside := classOf(keyword, value) != classSchema
		for child := range children(p, keyword, value) {
			if d.pointers += len(child.at); d.oversize() {
				return
			}
			d.places[child.at] = location{child.raw, p.at, keyword, lastToken(child.at), inside}
			if keyword == "properties" {
				d.setProperty(p.at, lastToken(child.at), child.raw)
			}
			if keyword == "properties" || keyword == "dependentSchemas" || keyword == "dependencies" {
				d.keys[lastToken(child.at)] = true
			}
			d.index(child, base)
		}
	}
}

// maxPointers bounds the pointers of all schemas of a document together, in bytes:
// each of those below a long key repeats it.
const maxPointers = 16 << 20

// maxScanned bounds how much is read to find what references lead to, in bytes.
const maxScanned = 256 << 20

func (d *document) oversize() bool { return d.pointers > maxPointers }

func (d *document) setProperty(at, name string, raw []byte) {
	if d.properties[at] == nil {
		d.properties[at] = map[string][]byte{}
	}
	d.properties[at][name] = raw
}

// property returns the schema that the schema p has for a property.
func (d *document) property(p place, name string) (place, bool) {
	raw, ok := d.properties[p.at][name]
	if !ok {
		return place{}, false
	}
	return place{p.child("properties", name), raw}, true
}

// identify records the id of a resource and returns the base URI within it.
func (d *document) identify(p place, base string) string {
	for _, keyword := range []string{"$id", "id"} {
		v, ok := member(p.raw, keyword)
		id, isText := rawjson.Unquote(v)
		if !ok || !isText || id == "" {
			continue
		}
		if name, isAnchor := strings.CutPrefix(id, "#"); isAnchor {
			d.names[base+"#"+name] = p.at
			return base
		}
		base = strings.TrimSuffix(resolveURL(base, id), "#")
		d.ids[base], d.bases[p.at] = p.at, base
		return base
	}
	return base
}

func (d *document) learn(keys []string) {
	for _, k := range keys {
		d.keys[k] = true
	}
}

func (d *document) learnDependencies(v []byte) {
	for it := rawjson.Object(v); it.Next(); {
		d.keys[it.Key()] = true
		d.learn(words(it.Value()))
	}
}

// children yields the schemas under one keyword of the schema p.
func children(p place, keyword string, v []byte) func(func(place) bool) {
	return func(yield func(place) bool) {
		switch classOf(keyword, v) {
		case classSchema:
			yield(place{p.child(keyword), v})
		case classList:
			n := 0
			for it := rawjson.Array(v); it.Next(); n++ {
				if isSchema(it.Value()) && !yield(place{p.child(keyword, strconv.Itoa(n)), it.Value()}) {
					return
				}
			}
		case classMap:
			for it := rawjson.Object(v); it.Next(); {
				if isSchema(it.Value()) && !yield(place{p.child(keyword, it.Key()), it.Value()}) {
					return
				}
			}
		}
	}
}

func lastToken(pointer string) string {
	return unescape(pointer[strings.LastIndexByte(pointer, '/')+1:])
}

func unescape(token string) string {
	return strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
}

func resolveURL(base, ref string) string {
	b, err := url.Parse(base)
	if err != nil {
		return ref
	}
	r, err := url.Parse(ref)
	if err != nil {
		return ref
	}
	return b.ResolveReference(r).String()
}

// baseAt returns the base URI that holds at a pointer, and the pointer of its
// resource.
func (d *document) baseAt(at string) (base, resource string) {
	for {
		if base, ok := d.bases[at]; ok {
			return base, at
		}
		cut := strings.LastIndexByte(at, '/')
		if cut < 0 {
			return "", ""
		}
		at = at[:cut]
	}
}

// resolve returns the schema that a reference at a place means.
func (d *document) resolve(ref, at string) (place, error) {
	if target, ok := d.known[reference{ref, at}]; ok {
		return target, nil
	}
	return d.find(ref, at)
}

func (d *document) find(ref, at string) (place, error) {
	base, resource := d.baseAt(at)
	target, fragment, _ := strings.Cut(ref, "#")
	if target != "" {
		base = strings.TrimSuffix(resolveURL(base, target), "#")
		var known bool
		if resource, known = d.ids[base]; !known {
			return place{}, fmt.Errorf("the reference %q at %q leads outside the schema", clip(ref), "#"+at)
		}
	}
	if decoded, err := url.PathUnescape(fragment); err == nil {
		fragment = decoded
	}
	if fragment != "" && fragment[0] != '/' {
		pointer, known := d.names[base+"#"+fragment]
		if !known {
			return place{}, fmt.Errorf("the reference %q at %q names no anchor of the schema", clip(ref), "#"+at)
		}
		return d.at(pointer)
	}
	return d.at(resource + fragment)
}

// at returns the schema at a pointer.
func (d *document) at(pointer string) (place, error) {
	if known, ok := d.places[pointer]; ok {
		return place{pointer, known.raw}, nil
	}
	if raw, ok := d.elsewhere[pointer]; ok {
		return place{canonical(pointer), raw}, nil
	}
	raw := d.root
	if d.scanned += len(raw); d.scanned > maxScanned {
		return place{}, fmt.Errorf("too many references lead to other places than those of schemas, such as %q", "#"+clip(pointer))
	}
	for _, token := range split(pointer) {
		var ok bool
		if raw, ok = step(raw, token); !ok {
			return place{}, fmt.Errorf("nothing stands at %q", "#"+clip(pointer))
		}
	}
	if !isSchema(raw) {
		return place{}, fmt.Errorf("no schema stands at %q", "#"+clip(pointer))
	}
	d.elsewhere[pointer] = raw
	return place{canonical(pointer), raw}, nil
}

// step returns the member or element that a token of a pointer names.
func step(raw []byte, token string) ([]byte, bool) {
	if rawjson.KindOf(raw) != rawjson.KindArray {
		return member(raw, token)
	}
	want, err := strconv.Atoi(token)
	if err != nil {
		return nil, false
	}
	for it := rawjson.Array(raw); it.Next(); want-- {
		if want == 0 {
			return it.Value(), true
		}
	}
	return nil, false
}

// split returns the unescaped tokens of a pointer.
func split(pointer string) []string {
	if pointer == "" {
		return nil
	}
	tokens := strings.Split(pointer[1:], "/")
	for i, t := range tokens {
		tokens[i] = unescape(t)
	}
	return tokens
}

// canonical returns the one spelling of a pointer.
func canonical(pointer string) string {
	p := place{}
	return p.child(split(pointer)...)
}

// clip bounds what an error quotes.
func clip(s string) string {
	if len(s) > 80 {
		return strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}
