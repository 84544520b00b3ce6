package search

import (
	"runtime"
	"slices"
	"sync"
)

// space is the index of one visible set: a large segment, the changes since it was made, and which of its
// documents are gone. It never changes.
type space struct {
	vocab *vocabulary
	base  *segment
	fresh *segment  // what was added since; its documents are numbered on from those of base
	gone  []uint64  // a bit for each document of both that is no longer there
	lost  int       // how many bits are set
	live  []uint32  // the documents, in the order of the set
	from  []edition // of each of live, side by side so that they are compared fast
}

func (s *space) doc(id uint32) *doc {
	if int(id) < len(s.base.docs) {
		return &s.base.docs[id]
	}
	return &s.fresh.docs[int(id)-len(s.base.docs)]
}

func (s *space) brief(id uint32) brief {
	if int(id) < len(s.base.briefs) {
		return s.base.briefs[id]
	}
	return s.fresh.briefs[int(id)-len(s.base.briefs)]
}

func (s *space) all() int { return len(s.base.docs) + len(s.fresh.docs) }

func (s *space) isGone(id uint32) bool { return s.lost > 0 && s.gone[id>>6]&(1<<(id&63)) != 0 }

// df counts the documents that hold a term.
func (s *space) df(term uint32) int {
	n := len(s.base.postings(term)) + len(s.fresh.postings(term))
	if s.lost == 0 || n == 0 {
		return n
	}
	n = 0
	for _, p := range s.base.postings(term) {
		if !s.isGone(p >> docShift) {
			n++
		}
	}
	for _, p := range s.fresh.postings(term) {
		if !s.isGone(p>>docShift + uint32(len(s.base.docs))) {
			n++
		}
	}
	return n
}

// folded returns the documents whose name, or source name, has a hash.
func (s *space) folded(hash uint32) []uint32 {
	var ids []uint32
	for _, ref := range s.base.folded(hash) {
		if !s.isGone(ref.doc) {
			ids = append(ids, ref.doc)
		}
	}
	for _, ref := range s.fresh.folded(hash) {
		if id := ref.doc + uint32(len(s.base.docs)); !s.isGone(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// space returns the index of a set: the one that is kept with it, or one made from that of the class before.
func (x *Index) space(v set) *space {
	return v.memo(memoKey{x}, func() any {
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.advance(v)
	}).(*space)
}

type memoKey struct{ *Index }

// advance makes the index of a set and keeps it as the newest of its class. The caller holds the lock.
func (x *Index) advance(v set) *space {
	class := v.Class()
	prev := x.spaces[class]
	if prev == nil {
		prev = x.largest()
	}
	if x.vocab.full() {
		x.vocab = newVocabulary(x.lex)
	}
	if prev != nil && prev.vocab != x.vocab {
		prev = nil
	}
	s := x.derive(prev, v)
	x.clock++
	x.used[class] = x.clock
	x.spaces[class] = s
	for len(x.spaces) > x.maxClasses {
		x.forget(class)
	}
	return s
}

// largest returns the index with the most documents, from which that of a new class may take what they share.
func (x *Index) largest() (best *space) {
	most := ""
	for class, s := range x.spaces {
		if best == nil || len(s.live) > len(best.live) || len(s.live) == len(best.live) && class < most {
			best, most = s, class
		}
	}
	return best
}

// forget drops the class that was changed longest ago, other than the named one.
func (x *Index) forget(but string) {
	oldest := ""
	for class, at := range x.used {
		if class != but && (oldest == "" || at < x.used[oldest]) {
			oldest = class
		}
	}
	delete(x.spaces, oldest)
	delete(x.used, oldest)
}

// difference says how a set differs from an index.
type difference struct {
	from  []edition // of the set
	live  []uint32  // by place in the set: the document that stands for the tool; undefined for new ones
	added []int     // places of new tools
	gone  []uint32  // documents that are not in the set
}

// compare walks the index and the set, which are both sorted by name.
func (s *space) compare(v set) difference {
	n := min(v.Len(), maxDocs)
	d := difference{live: make([]uint32, n), from: make([]edition, n)}
	k := 0
	for i := range n {
		e := v.edition(i)
		d.from[i] = e
		if k < len(s.from) && s.from[k] == e {
			d.live[i] = s.live[k]
			k++
			continue
		}
		for name := v.name(i); k < len(s.live) && s.doc(s.live[k]).name < name; k++ {
			d.gone = append(d.gone, s.live[k])
		}
		if k < len(s.from) && s.from[k] == e {
			d.live[i] = s.live[k]
			k++
		} else {
			d.added = append(d.added, i)
		}
	}
	d.gone = append(d.gone, s.live[k:]...)
	return d
}

// Changes since the large segment was made are kept apart until there are too many of them.
const (
	minApart = 48
	apartOf  = 16 // or one in so many documents
)

// derive makes the index of a set from another, or from nothing.
func (x *Index) derive(prev *space, v set) *space {
	if prev == nil {
		prev = &space{vocab: x.vocab, base: &segment{}, fresh: &segment{}}
	}
	d := prev.compare(v)
	if len(d.added)+len(d.gone) == 0 {
		return prev
	}
	apart := len(prev.fresh.docs) + prev.lost + len(d.added) + len(d.gone)
	if apart > max(minApart, len(prev.base.docs)/apartOf) {
		return x.rebuilt(prev, v, d)
	}
	return x.amended(prev, v, d)
}

// amended keeps the large segment and makes the small one anew.
func (x *Index) amended(prev *space, v set, d difference) *space {
	first := uint32(len(prev.base.docs))
	s := &space{vocab: x.vocab, base: prev.base, lost: prev.lost + len(d.gone), live: d.live, from: d.from}
	docs := slices.Clone(prev.fresh.docs)
	occ := x.analyze(v, d.added, len(docs), &docs)
	for k, i := range d.added {
		s.live[i] = first + uint32(len(prev.fresh.docs)+k)
	}
	s.gone = make([]uint64, (int(first)+len(docs)+63)/64)
	copy(s.gone, prev.gone)
	for _, id := range d.gone {
		s.gone[id>>6] |= 1 << (id & 63)
	}
	s.fresh = merge(docs, x.vocab.size(), []part{{prev.fresh, inPlace(len(prev.fresh.docs))}}, [][]occurrence{occ})
	return s
}

func inPlace(n int) []int32 {
	place := make([]int32, n)
	for i := range place {
		place[i] = int32(i)
	}
	return place
}

// rebuilt makes one segment of everything, in the order of the set.
func (x *Index) rebuilt(prev *space, v set, d difference) *space {
	n := len(d.live)
	docs := make([]doc, n)
	place := make([]int32, prev.all())
	for i := range place {
		place[i] = -1
	}
	isNew := make([]bool, n)
	for _, i := range d.added {
		isNew[i] = true
	}
	s := &space{vocab: x.vocab, fresh: &segment{}, live: make([]uint32, n), from: d.from}
	for i := range n {
		s.live[i] = uint32(i)
		if !isNew[i] {
			docs[i] = *prev.doc(d.live[i])
			place[d.live[i]] = int32(i)
		}
	}
	occ := x.analyzeInto(v, d.added, docs)
	first := len(prev.base.docs)
	s.base = merge(docs, x.vocab.size(), []part{{prev.base, place[:first]}, {prev.fresh, place[first:]}}, occ)
	return s
}

// pageSize bounds how many tools are copied out of a set at once.
const pageSize = 64

// analyzeInto reads the tools of the given places into the documents of the same places. Many are read in
// parallel.
func (x *Index) analyzeInto(v set, places []int, docs []doc) [][]occurrence {
	workers := min(runtime.GOMAXPROCS(0), 1+len(places)/(4*pageSize))
	out := make([][]occurrence, workers)
	var wg sync.WaitGroup
	for w := range workers {
		mine := places[w*len(places)/workers : (w+1)*len(places)/workers]
		wg.Go(func() { out[w] = x.analyzeRun(v, mine, docs) })
	}
	wg.Wait()
	return out
}

func (x *Index) analyzeRun(v set, places []int, docs []doc) []occurrence {
	a := newAnalyzer(x.vocab)
	var occ []occurrence
	for len(places) > 0 {
		run := 1
		for run < len(places) && run < pageSize && places[run] == places[0]+run {
			run++
		}
		list := v.tools(places[0], run)
		for k := range list {
			at := places[k]
			from := len(occ)
			docs[at], occ = a.tool(&list[k], occ)
			number(occ[from:], at)
		}
		places = places[run:]
	}
	return occ
}

// analyze reads the tools of the given places as further documents, numbered from first on.
func (x *Index) analyze(v set, places []int, first int, docs *[]doc) []occurrence {
	if x.reader == nil || x.reader.vocab != x.vocab {
		x.reader = newAnalyzer(x.vocab)
	}
	var occ []occurrence
	for k, i := range places {
		list := v.tools(i, 1)
		from := len(occ)
		var d doc
		d, occ = x.reader.tool(&list[0], occ)
		*docs = append(*docs, d)
		number(occ[from:], first+k)
	}
	return occ
}

// number gives occurrences their document.
func number(occ []occurrence, doc int) {
	for i := range occ {
		occ[i].post |= uint32(doc) << docShift
	}
}
