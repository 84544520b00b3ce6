package schema

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// document is a text that holds schemas.
type document struct {
	url    string // it was found under
	text   []byte
	ends   map[int]int // of long values, by where they start
	places places
	// foreign are the parts in another dialect than that around them, which
	// the meta-schema of that says nothing about.
	foreign []foreign
}

// foreign is a part of a document in a dialect of its own.
type foreign struct {
	at, end int
	dialect *dialect
}

// resource is a schema with an identity of its own, or the root of a document,
// with all that it holds but other resources.
type resource struct {
	doc     *document
	at      int      // where it stands in the document
	base    *url.URL // what references resolve against
	dialect *dialect
	root    *subschema
	anchors map[string]*subschema
	// dynamic are the anchors that dynamic references look for. That of
	// $recursiveAnchor has no name.
	dynamic map[string]*subschema
}

// identity is what a schema says about itself.
type identity struct {
	id, anchor, dynamicAnchor string
	dialect                   string // $schema
	recursive                 bool
}

// linked reads the schema at i, which may be a resource or have anchors.
func (r *reader) linked(i int) (*subschema, int) {
	if s := r.known[&r.root[i]]; s != nil {
		return s, r.skip(i)
	}
	if r.root[i] != '{' || !r.nested {
		return r.plain(i)
	}
	self := r.identify(i)
	home, draft := r.home, r.draft
	defer func() { r.home, r.draft = home, draft }()
	if self.id != "" {
		if err := r.enter(i, self); err != nil {
			return nil, r.failWith(i, err)
		}
	}
	if r.home.dialect != home.dialect {
		r.home.doc.foreign = append(r.home.doc.foreign, foreign{i, r.skip(i), r.home.dialect})
	}
	s, end := r.plain(i)
	if end < 0 {
		return nil, -1
	}
	if i == r.home.at {
		r.home.root = s
	}
	if err := r.home.name(self, s); err != nil {
		return nil, r.failWith(i, err)
	}
	return s, end
}

// enter makes the schema at i the resource that it says it is. The root of a
// document is one already, and has only been found under another URL.
func (r *reader) enter(i int, self identity) error {
	base, err := r.home.base.Parse(self.id)
	if err != nil {
		return fmt.Errorf("%q is not a URI reference", clip(self.id, maxName))
	}
	old := r.link.resources[base.String()]
	if i == r.home.at {
		if r.home.base = base; old == nil {
			r.link.resources[base.String()] = r.home
		}
		return nil
	}
	if old != nil && old.doc == r.home.doc {
		return fmt.Errorf("a second schema with the id %q", clip(self.id, maxName))
	}
	in := r.home.dialect
	if self.dialect != "" {
		if in, err = r.link.dialect(self.dialect); err != nil {
			return err
		}
	}
	r.home = newResource(r.home.doc, i, base, in)
	r.draft = in.draft
	if old == nil {
		r.link.resources[base.String()] = r.home
	}
	return nil
}

// failWith gives up at i because of err.
func (r *reader) failWith(i int, err error) int {
	if compile, ok := err.(*CompileError); ok {
		return r.fail(i, compile.Reason)
	}
	return r.fail(i, err.Error())
}

// identify reads what the schema at i says about itself.
func (r *reader) identify(i int) identity {
	var self identity
	var id, oldID string
	refers := false
	r.members(i, func(key []byte, at int) int {
		end := r.skip(at)
		switch v := r.root[at:end]; string(key) {
		case "$ref":
			refers = true
		case "$schema":
			self.dialect, _ = rawjson.Unquote(v)
		case "id":
			oldID, _ = rawjson.Unquote(v)
		case "$id":
			id, _ = rawjson.Unquote(v)
		case "$anchor":
			self.anchor, _ = rawjson.Unquote(v)
		case "$dynamicAnchor":
			self.dynamicAnchor, _ = rawjson.Unquote(v)
		case "$recursiveAnchor":
			self.recursive = string(v) == "true"
		}
		return end
	})
	draft := r.draft
	if own, ok := standardDraft(self.dialect); ok && (id != "" || oldID != "") {
		draft = own
	}
	if draft == Draft4 {
		id = oldID
	}
	if draft < Draft2019 && refers {
		return identity{} // nothing beside a reference counts
	}
	var fragment string
	if self.id, fragment, _ = strings.Cut(id, "#"); draft < Draft2019 {
		self.anchor = fragment
	}
	if draft < Draft2020 {
		self.dynamicAnchor = ""
	}
	self.recursive = self.recursive && draft == Draft2019
	return self
}

// name gives s the anchors that it says it has.
func (res *resource) name(self identity, s *subschema) error {
	for _, anchor := range []string{self.anchor, self.dynamicAnchor} {
		if old := res.anchors[anchor]; old != nil && old != s {
			return fmt.Errorf("a second anchor %q", clip(anchor, maxName))
		}
		if anchor != "" {
			res.anchors[anchor] = s
		}
	}
	if self.dynamicAnchor != "" {
		res.dynamic[self.dynamicAnchor] = s
	}
	if self.recursive && res.root == s {
		res.dynamic[recursiveAnchor] = s
	}
	return nil
}

func newResource(doc *document, at int, base *url.URL, in *dialect) *resource {
	return &resource{
		doc: doc, at: at, base: base, dialect: in,
		anchors: map[string]*subschema{}, dynamic: map[string]*subschema{},
	}
}
