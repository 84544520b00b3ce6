package httptool

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/toolcrib/toolcrib/internal/netguard"
	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// deref follows a node's $ref, and that of what it leads to, to a node without
// one.
func (l *library) deref(n node) (node, error) {
	for range maxRefHops {
		ref := n.text("$ref")
		if ref == "" {
			return n, nil
		}
		next, err := l.follow(n, ref)
		if err != nil {
			return node{}, err
		}
		n = next
	}
	return node{}, n.errorf("the $ref leads in a circle")
}

// follow returns what a $ref at n leads to.
func (l *library) follow(n node, ref string) (node, error) {
	location, fragment, _ := strings.Cut(ref, "#")
	at := n.child("$ref")
	doc, start := n.doc, ""
	if location != "" {
		var err error
		if doc, start, err = l.resource(doc, location); err != nil {
			return node{}, at.errorf("cannot resolve $ref %q: %v", ref, err)
		}
	}
	pointer, err := url.PathUnescape(fragment)
	if err != nil {
		return node{}, at.errorf("cannot resolve $ref %q: expected a JSON pointer or the name of an anchor after #", ref)
	}
	if pointer != "" && pointer[0] != '/' {
		anchor, ok := doc.named().anchors[pointer]
		if !ok {
			return node{}, at.errorf("cannot resolve $ref %q: %s has no such anchor", ref, doc.name)
		}
		start, pointer = anchor, ""
	}
	raw, ok := doc.at(start + pointer)
	if !ok {
		return node{}, at.errorf("cannot resolve $ref %q: %s has no such place", ref, doc.name)
	}
	return node{doc, start + pointer, raw}, nil
}

// resource returns the document that a location stands for, and the pointer of
// the schema in it that has the location as its $id, or "".
func (l *library) resource(from *document, location string) (*document, string, error) {
	if doc := l.selfNamed(from, location); doc != nil {
		return doc, "", nil
	}
	if at, ok := from.named().ids[location]; ok {
		return from, at, nil
	}
	doc, err := l.related(from, location)
	return doc, "", err
}

// selfNamed returns the document whose $self a location names, or nil.
func (l *library) selfNamed(from *document, location string) *document {
	ref, err := url.Parse(location)
	if err != nil {
		return nil
	}
	if base := from.address(); base != nil {
		ref = base.ResolveReference(ref)
	}
	for _, doc := range l.docs {
		if doc.self != nil && doc.address() != nil && doc.address().String() == ref.String() {
			return doc
		}
	}
	return nil
}

// address returns the URL that what is relative in a document is relative to:
// its $self, else where it came from; nil for a file that does not say.
func (d *document) address() *url.URL {
	switch {
	case d.self == nil:
		return d.base
	case d.base != nil:
		return d.base.ResolveReference(d.self)
	case d.self.IsAbs():
		return d.self
	}
	return nil
}

// marks are the places of a document that have names: by $anchor and $id.
type marks struct{ anchors, ids map[string]string }

// named returns the marks of a document. They are looked for once.
func (d *document) named() *marks {
	if d.marks == nil {
		d.marks = &marks{anchors: map[string]string{}, ids: map[string]string{}}
		d.marks.collect(d.raw, "")
	}
	return d.marks
}

func (m *marks) collect(raw json.RawMessage, pointer string) {
	switch rawjson.KindOf(raw) {
	case rawjson.KindObject:
		for it := rawjson.Object(raw); it.Next(); {
			key, value := it.Key(), it.Value()
			if text, ok := rawjson.Unquote(value); ok {
				m.note(key, text, pointer)
				continue
			}
			m.collect(value, pointer+"/"+rawjson.EscapePointer(key))
		}
	case rawjson.KindArray:
		i := 0
		for it := rawjson.Array(raw); it.Next(); i++ {
			m.collect(it.Value(), fmt.Sprintf("%s/%d", pointer, i))
		}
	}
}

// note keeps the first place of a name.
func (m *marks) note(key, text, pointer string) {
	into := m.anchors
	switch key {
	case "$anchor", "$dynamicAnchor":
	case "$id":
		into = m.ids
	default:
		return
	}
	if _, known := into[text]; !known {
		into[text] = pointer
	}
}

// related returns the document that another one refers to. Files must lie in
// the folder of the first document, and URLs at its origin.
func (l *library) related(from *document, location string) (*document, error) {
	next, err := from.locate(location)
	if err != nil {
		return nil, err
	}
	if known, ok := l.docs[next.key()]; ok {
		return known, nil
	}
	if len(l.docs) >= maxDocuments {
		return nil, fmt.Errorf("more than %d documents", maxDocuments)
	}
	content, err := l.read(next)
	if err != nil {
		return nil, err
	}
	return next, l.add(next, content)
}

func (l *library) read(next *document) ([]byte, error) {
	switch {
	case next.base == nil && l.folder != nil:
		return l.readFile(next.file)
	case next.base == nil:
		return nil, errors.New("the document was not read from a file")
	case l.root.base == nil || netguard.Origin(next.base) != netguard.Origin(l.root.base):
		return nil, errors.New("it is at another origin than the document")
	}
	return l.fetch(next.base)
}

// locate returns an empty document for a location relative to d.
func (d *document) locate(location string) (*document, error) {
	ref, err := url.Parse(location)
	if err != nil {
		return nil, errors.New("malformed")
	}
	if d.base != nil {
		base := d.address().ResolveReference(ref)
		return &document{name: shownLocation(base.String()), base: base}, nil
	}
	relative := ref.Path
	if ref.Scheme != "" || ref.Host != "" {
		var ok bool
		if relative, ok = d.beside(ref); !ok {
			return &document{name: shownLocation(location), base: ref}, nil
		}
	}
	file := path.Join(path.Dir(d.file), relative)
	folder := strings.TrimSuffix(d.name, d.file)
	return &document{name: folder + file, file: file}, nil
}

// beside returns the path from a file to what an absolute URL names below the
// folder of the file's $self.
func (d *document) beside(ref *url.URL) (string, bool) {
	if d.self == nil || !d.self.IsAbs() {
		return "", false
	}
	folder := *d.self
	folder.Path = strings.TrimSuffix(path.Dir(folder.Path), "/") + "/"
	return strings.CutPrefix(ref.String(), folder.String())
}
