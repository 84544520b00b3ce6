package artifacts

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// shape says how much of a JSON document a preview shows.
type shape struct {
	depth int // nested containers
	items int // elements of an array
	keys  int // members of an object
	text  int // bytes of a string
}

// shapes are tried one after the other until a preview fits.
var shapes = []shape{
	{8, 20, 100, 500}, {6, 10, 60, 300}, {6, 5, 40, 200}, {5, 4, 30, 120}, {5, 3, 20, 80}, {4, 2, 15, 60}, {3, 2, 10, 40}, {2, 1, 8, 30}, {1, 1, 5, 20},
}

const (
	// shortField is the size up to which a member of a large object is shown
	// before others.
	shortField = 80
	// maxMembers bounds the members of an object that are chosen among.
	maxMembers = 2000
	// maxNumber bounds what is shown of a number.
	maxNumber = 40
)

// previewJSON shows the structure of a document in at most budget bytes: small
// fields as they are, long texts and arrays in part, with what is left out. It
// reports false when doc is no JSON. partial says that doc is only the beginning
// of the document.
func previewJSON(doc []byte, budget int, partial bool) (string, bool) {
	if partial {
		doc = repair(doc)
	}
	if kind := rawjson.KindOf(doc); kind != rawjson.KindObject && kind != rawjson.KindArray || !rawjson.Valid(doc) {
		return "", false
	}
	for _, s := range shapes {
		p := previewer{shape: s, partial: partial, budget: budget}
		p.value(rawjson.Trim(doc), s.depth)
		if len(p.out) <= budget {
			return string(p.out), true
		}
	}
	return "", false
}

type previewer struct {
	shape
	partial bool
	budget  int
	out     []byte
}

func (p *previewer) full() bool { return len(p.out) > p.budget }

func (p *previewer) value(v []byte, depth int) {
	switch rawjson.KindOf(v) {
	case rawjson.KindString:
		p.string(v)
	case rawjson.KindArray:
		p.array(v, depth)
	case rawjson.KindObject:
		p.object(v, depth)
	default:
		if len(v) > maxNumber {
			p.note("%s… (%d digits)", v[:maxNumber], len(v))
			return
		}
		p.out = append(p.out, v...)
	}
}

// note writes a string that stands for what is left out.
func (p *previewer) note(format string, args ...any) {
	p.out = rawjson.AppendQuoted(p.out, fmt.Sprintf(format, args...))
}

func (p *previewer) string(v []byte) {
	if len(v)-2 <= p.text {
		p.out = append(p.out, v...)
		return
	}
	inner := v[1 : len(v)-1]
	p.out = append(append(p.out, '"'), inner[:escapedPrefix(inner, p.text)]...)
	p.out = append(p.out, fmt.Sprintf("… (%d bytes)\"", len(inner))...)
}

// escapedPrefix returns where the inside of a JSON string can be cut at n bytes
// or a little before, so that no escape and no rune is cut.
func escapedPrefix(inner []byte, n int) int {
	at := 0
	for at < len(inner) {
		next := at + 1
		switch c := inner[at]; {
		case c == '\\' && inner[at+1] != 'u':
			next = at + 2
		case c == '\\':
			next = at + 6
			if high := inner[at+2:]; len(high) > 8 && (high[0] == 'd' || high[0] == 'D') && high[4] == '\\' {
				next = at + 12 // a pair of surrogates
			}
		case c >= 0x80:
			for next < len(inner) && inner[next]&0xC0 == 0x80 {
				next++
			}
		}
		if next > n {
			return at
		}
		at = next
	}
	return at
}

func (p *previewer) array(v []byte, depth int) {
	if depth == 0 {
		p.note("[… %s]", p.count(rawjson.Len(v), "items"))
		return
	}
	p.out = append(p.out, '[')
	n := 0
	for it := rawjson.Array(v); it.Next(); n++ {
		if n >= p.items || p.full() {
			continue // only counted
		}
		if n > 0 {
			p.out = append(p.out, ',')
		}
		p.value(it.Value(), depth-1)
	}
	if n > p.items {
		p.out = append(p.out, ',')
		p.more(n-p.items, n)
	}
	p.out = append(p.out, ']')
}

func (p *previewer) more(left, all int) {
	if p.partial {
		p.note("… and more")
		return
	}
	p.note("… %d more of %d", left, all)
}

func (p *previewer) count(n int, what string) string {
	if p.partial {
		return what
	}
	return fmt.Sprintf("%d %s", n, what)
}

// member is a member of an object.
type member struct{ key, value []byte }

func (m member) short() bool {
	kind := rawjson.KindOf(m.value)
	return len(m.value) <= shortField && kind != rawjson.KindObject && kind != rawjson.KindArray
}

func (p *previewer) object(v []byte, depth int) {
	if depth == 0 {
		p.note("{… %s}", p.count(rawjson.Len(v), "keys"))
		return
	}
	var members []member
	n := 0
	for it := rawjson.Object(v); it.Next(); n++ {
		if n < maxMembers {
			members = append(members, member{it.RawKey(), it.Value()})
		}
	}
	p.out = append(p.out, '{')
	for i, m := range chosen(members, p.keys) {
		if p.full() {
			return
		}
		if i > 0 {
			p.out = append(p.out, ',')
		}
		p.string(m.key)
		p.out = append(p.out, ':')
		p.value(m.value, depth-1)
	}
	if n > p.keys {
		p.out = append(p.out, `,"…":`...)
		p.more(n-p.keys, n)
	}
	p.out = append(p.out, '}')
}

// chosen returns n members in their order: short ones before others.
func chosen(members []member, n int) []member {
	if len(members) <= n {
		return members
	}
	take := make([]bool, len(members))
	left := n
	for _, short := range []bool{true, false} {
		for i := 0; i < len(members) && left > 0; i++ {
			if members[i].short() == short {
				take[i], left = true, left-1
			}
		}
	}
	out := make([]member, 0, n)
	for i, m := range members {
		if take[i] {
			out = append(out, m)
		}
	}
	return out
}

// repair makes the beginning of a JSON document a document: it ends after the
// last whole value, and what is open is closed. What is no JSON comes back cut
// somewhere.
func repair(doc []byte) []byte {
	var r repairer
	for i := rawjson.SkipSpace(doc, 0); i < len(doc); i = rawjson.SkipSpace(doc, i) {
		next := r.step(doc, i)
		if next <= i {
			break
		}
		i = next
	}
	out := slices.Clone(doc[:r.safe])
	for i := r.safeDepth - 1; i >= 0; i-- {
		out = append(out, r.open[i])
	}
	return out
}

type repairer struct {
	open            []byte // closing brackets of what is open
	key             bool   // a key comes next
	safe, safeDepth int    // where the document could end
}

// step takes one token in and returns where it ends, or 0 when it does not.
func (r *repairer) step(doc []byte, i int) int {
	switch c := doc[i]; c {
	case '{', '[':
		r.open = append(r.open, c+2) // the closing bracket of each
		r.key = c == '{'
		return r.mark(i + 1)
	case '}', ']':
		if len(r.open) == 0 || r.open[len(r.open)-1] != c {
			return 0
		}
		r.open, r.key = r.open[:len(r.open)-1], false
		return r.mark(i + 1)
	case ',':
		r.key = len(r.open) > 0 && r.open[len(r.open)-1] == '}'
		return i + 1
	case ':':
		r.key = false
		return i + 1
	case '"':
		end, _, fault := rawjson.ScanString(doc, i)
		if fault != rawjson.FaultNone {
			return 0
		}
		if r.key {
			return end
		}
		return r.mark(end)
	}
	end := i + bytes.IndexAny(doc[i:], ",]} \t\r\n")
	if end < i {
		return 0 // it may go on
	}
	return r.mark(end)
}

func (r *repairer) mark(at int) int {
	r.safe, r.safeDepth = at, len(r.open)
	return at
}

// previewText shows the beginning of a text, up to the end of a line where one
// is near, and how much that is.
func previewText(text []byte, budget int) (shown string, said string) {
	if len(text) <= budget {
		return string(text), ""
	}
	end := trimRune(text, budget)
	if nl := bytes.LastIndexByte(text[:end], '\n'); nl > end/2 {
		end = nl
	}
	return string(text[:end]), fmt.Sprintf("the first %d bytes", end)
}
