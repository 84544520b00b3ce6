package search

import (
	"cmp"
	"slices"

	"github.com/toolcrib/toolcrib/tools"
)

// doc is what is kept of a tool beside its postings.
type doc struct {
	name    string
	source  string
	from    uint32 // the number of the source
	digest  string
	tags    []string
	folds   [2]uint32 // of the canonical and the source name
	intents uint16
	nameLen uint8
	beside  bool // it is a resource, a prompt or the like
	vec     vector
}

// edition identifies an unchanged tool; it is compared with ==.
type edition any

// segment is an inverted index of some tools. It never changes.
type segment struct {
	docs   []doc
	starts []uint32 // by term: where its postings begin; one more than terms
	posts  []uint32
	names  []nameRef // sorted by hash
	briefs []brief   // of docs, side by side so that ranking reads little memory
}

// brief is what of a document is looked at for every candidate.
type brief struct {
	from    uint32 // the number of the source
	nameLen float32
}

func briefsOf(docs []doc) []brief {
	out := make([]brief, len(docs))
	for i := range docs {
		out[i] = brief{docs[i].from, float32(docs[i].nameLen)}
	}
	return out
}

// nameRef leads from the hash of a name to a document.
type nameRef struct{ hash, doc uint32 }

func nameRefs(docs []doc) []nameRef {
	refs := make([]nameRef, 0, 2*len(docs))
	for i := range docs {
		folds := docs[i].folds
		refs = append(refs, nameRef{folds[0], uint32(i)})
		if folds[1] != folds[0] {
			refs = append(refs, nameRef{folds[1], uint32(i)})
		}
	}
	slices.SortFunc(refs, func(a, b nameRef) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.doc, b.doc)) })
	return refs
}

// folded returns the documents whose name, or source name, has a hash.
func (s *segment) folded(hash uint32) []nameRef {
	from, ok := slices.BinarySearchFunc(s.names, hash, func(r nameRef, h uint32) int { return cmp.Compare(r.hash, h) })
	if !ok || hash == 0 {
		return nil
	}
	to := from
	for to < len(s.names) && s.names[to].hash == hash {
		to++
	}
	return s.names[from:to]
}

func (s *segment) postings(term uint32) []uint32 {
	if int(term)+1 >= len(s.starts) {
		return nil
	}
	return s.posts[s.starts[term]:s.starts[term+1]]
}

// part is a segment to be merged, with the new place of each document, or -1 for one that is left out.
type part struct {
	of    *segment
	place []int32
}

// merge makes one segment of what is kept of others and of fresh documents, whose occurrences carry
// their place already. docs are all its documents in their places.
func merge(docs []doc, terms int, parts []part, fresh [][]occurrence) *segment {
	s := &segment{docs: docs, starts: make([]uint32, terms+1), names: nameRefs(docs), briefs: briefsOf(docs)}
	for _, p := range parts {
		p.tally(s.starts[1:])
	}
	for _, list := range fresh {
		for i := range list {
			s.starts[list[i].term+1]++
		}
	}
	for t := range terms {
		s.starts[t+1] += s.starts[t]
	}
	s.posts = make([]uint32, s.starts[terms])
	next := s.starts[:terms] // each start moves to the next one's place while its postings are filled in
	for _, second := range [2]bool{false, true} {
		for _, p := range parts {
			p.pour(s.posts, next, second)
		}
		for _, list := range fresh {
			pour(list, s.posts, next, second)
		}
	}
	copy(s.starts[1:], next)
	s.starts[0] = 0
	return s
}

func (p *part) tally(counts []uint32) {
	for t := range len(p.of.starts) - 1 {
		for _, post := range p.of.posts[p.of.starts[t]:p.of.starts[t+1]] {
			if p.place[post>>docShift] >= 0 {
				counts[t]++
			}
		}
	}
}

// pour fills in the postings that count for every way, which come first, or the second ones: those of parameters
// only.
func (p *part) pour(posts, next []uint32, second bool) {
	for t := range len(p.of.starts) - 1 {
		for _, post := range p.of.posts[p.of.starts[t]:p.of.starts[t+1]] {
			if to := p.place[post>>docShift]; to >= 0 && (post&flagsAll == 0) == second {
				posts[next[t]] = uint32(to)<<docShift | post&(1<<docShift-1)
				next[t]++
			}
		}
	}
}

func pour(list []occurrence, posts, next []uint32, second bool) {
	for _, o := range list {
		if (o.post&flagsAll == 0) == second {
			posts[next[o.term]] = o.post
			next[o.term]++
		}
	}
}

// set is the tools that a search may know of, sorted by name.
type set interface {
	Len() int
	Class() string
	edition(i int) edition
	name(i int) string
	tools(from, n int) []tools.Tool
	memo(key any, build func() any) any
}

// visible is a set that a catalog keeps.
type visible struct{ *tools.VisibleSet }

func (v visible) edition(i int) edition { return v.VisibleSet.Edition(i) }

func (v visible) name(i int) string { return v.VisibleSet.Edition(i).Name() }

func (v visible) tools(from, n int) []tools.Tool { return v.VisibleSet.Page(from, n) }

func (v visible) memo(key any, build func() any) any { return v.VisibleSet.Memo(key, build) }
