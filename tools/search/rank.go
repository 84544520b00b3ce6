package search

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/tools/search/lexicon"
)

// ranked is a document with its score.
type ranked struct {
	id    uint32
	score float32
	sure  float32 // how much of what was asked for it answers, from 0 to 1
	cover uint32
	exact uint8
	named bool // the query names its source
}

// How sure it is that the query is the tool's name.
const (
	exactPart  = 1 // a word of the query is, but for case and separators
	exactFold  = 2 // the query is, but for case and separators
	exactWhole = 3 // the query is the canonical name
)

// How the parts of a score are put together.
const (
	coverPower  = 0.5  // the share of the query that a tool answers to
	namePower   = 0.2  // the share of its name that the query covers
	vecPower    = 0.35 // the likeness of vectors
	fromPower   = 0.30 // the query names the tool's source
	intentClash = 0.88 // the query and the tool are about different kinds of deeds
	besideTools = 0.85 // it is a resource, a prompt or the like
	minPool     = 64   // how many candidates are looked at closely, at least
)

// find is a search of one set.
func (x *Index) find(ctx context.Context, v set, q Query) Result {
	s := x.space(v)
	if strings.TrimSpace(q.Text) == "" {
		return s.tagged(&q)
	}
	ask := s.read(q.Text)
	b := x.board(s.all())
	defer x.release(b)
	s.count(ask, b)
	list, matched := s.candidates(ask, b, &q)
	r := Result{Matched: matched, Repairs: ask.repairs}
	for i := range list {
		s.refine(ask, &list[i])
	}
	list = s.named(&q, list)
	slices.SortFunc(list, s.better)
	if x.meaning != nil {
		list, r.Note = x.meaning.fuse(ctx, s, v, &q, list)
	}
	list = s.spread(list, q.limit())
	r.Hits = s.hits(ask, list)
	r.Weak = len(r.Hits) > 0 && !slices.ContainsFunc(r.Hits, func(h Hit) bool { return !h.Weak })
	return r
}

func (q *Query) limit() int {
	if q.Limit <= 0 {
		return DefaultLimit
	}
	return min(q.Limit, MaxLimit)
}

// keeps reports whether the query's demands let a document through.
func (q *Query) keeps(d *doc) bool {
	if q.Source != "" && d.source != q.Source {
		return false
	}
	for _, tag := range q.Tags {
		if !slices.Contains(d.tags, tag) {
			return false
		}
	}
	return true
}

// tagged answers a query without a text: every tool that carries the tags, by name.
func (s *space) tagged(q *Query) Result {
	var r Result
	if len(q.Tags) == 0 && q.Source == "" {
		return r
	}
	for _, id := range s.live {
		d := s.doc(id)
		if !q.keeps(d) {
			continue
		}
		if r.Matched++; len(r.Hits) < q.limit() {
			r.Hits = append(r.Hits, Hit{Name: d.name, Source: d.source, Score: 1})
		}
	}
	return r
}

// better orders by certainty, then score, then name.
func (s *space) better(a, b ranked) int {
	if a.exact != b.exact {
		return cmp.Compare(b.exact, a.exact)
	}
	if a.score != b.score {
		return cmp.Compare(b.score, a.score)
	}
	return strings.Compare(s.doc(a.id).name, s.doc(b.id).name)
}

// candidates returns the best of what was touched, in no order, and how many there are in all.
func (s *space) candidates(q *asked, b *board, demand *Query) ([]ranked, int) {
	w := newWorth(q)
	filter := demand.Source != "" || len(demand.Tags) > 0
	matched := 0
	top := heap{s: s, most: max(minPool, 3*demand.limit())}
	first := s.vocab.perSource()
	for _, id := range b.touched {
		if s.isGone(id) || filter && !demand.keeps(s.doc(id)) {
			continue
		}
		matched++
		t, brief := &b.tallies[id], s.brief(id)
		r := ranked{id: id, cover: t.cover, named: t.fromSource(), sure: (t.total + t.best) / w.all}
		of := &first[brief.from]
		if r.score = r.sure * mostGain; r.score < of.score && top.isAbove(r.score) {
			continue // whatever else it has, it does not come in
		}
		r.score = r.sure * (1 - coverPower + coverPower*w.share(t.cover))
		r.score *= 1 + namePower*min(1, t.words()/brief.nameLen)
		if r.named {
			r.score *= 1 + fromPower
		}
		top.offer(r)
		if s.worse(of, &r) {
			*of = r
		}
	}
	return s.withFirst(top.list, first), matched
}

// mostGain is the most that a score grows beyond the share of the query that a tool answers to.
const mostGain = (1 + namePower) * (1 + fromPower)

// withFirst adds the best of each source, so that a large source cannot keep all others out of the list.
func (s *space) withFirst(list, first []ranked) []ranked {
	sources := make([]bool, len(first))
	for i := range list {
		sources[s.doc(list[i].id).from] = true
	}
	for i, r := range first {
		if r.score > 0 && !sources[i] {
			list = append(list, r)
		}
	}
	return list
}

// worse orders by score, then by name from the last. What has no score is the worst.
func (s *space) worse(a, b *ranked) bool {
	if a.score != b.score {
		return a.score < b.score
	}
	return a.score > 0 && s.doc(a.id).name > s.doc(b.id).name
}

// worth tells what share of a query some of its concepts are. For short queries it has all answers ready.
type worth struct {
	of    []float32
	all   float32 // what a perfect match of every concept would gather
	ready [1 << readyConcepts]float32
}

const readyConcepts = 7

func newWorth(q *asked) *worth {
	w := &worth{all: 1e-6, of: make([]float32, len(q.concepts))}
	for i := range q.concepts {
		w.of[i] = q.concepts[i].weight * q.concepts[i].idf
		w.all += w.of[i]
	}
	if len(w.of) <= readyConcepts {
		for cover := range uint32(1) << len(w.of) {
			w.ready[cover] = w.sum(cover)
		}
	}
	return w
}

func (w *worth) sum(cover uint32) float32 {
	sum := float32(0)
	for i, v := range w.of {
		if cover&(1<<i) != 0 {
			sum += v
		}
	}
	return sum / w.all
}

func (w *worth) share(cover uint32) float32 {
	if len(w.of) <= readyConcepts {
		return w.ready[cover]
	}
	return w.sum(cover)
}

// refine adds what is too dear to be looked at for every document.
func (s *space) refine(q *asked, r *ranked) {
	d := s.doc(r.id)
	if c := cosine(&q.vec, &d.vec); c > 0 {
		r.score *= 1 + vecPower*c
	}
	if d.beside {
		r.score *= besideTools
	}
	if q.intents&d.intents == 0 && q.intents != 0 && d.intents != 0 {
		r.score *= intentClash
	}
}

// heap keeps the best of what it is offered; the worst of them is the first.
type heap struct {
	s    *space
	list []ranked
	most int
}

// isAbove reports whether the heap is full of better scores.
func (h *heap) isAbove(score float32) bool {
	return len(h.list) == h.most && h.list[0].score > score
}

func (h *heap) offer(r ranked) {
	if len(h.list) < h.most {
		h.list = append(h.list, r)
		for i := len(h.list) - 1; i > 0 && h.s.worse(&h.list[i], &h.list[(i-1)/2]); i = (i - 1) / 2 {
			h.list[i], h.list[(i-1)/2] = h.list[(i-1)/2], h.list[i]
		}
		return
	}
	if !h.s.worse(&h.list[0], &r) {
		return
	}
	h.list[0] = r
	h.sink()
}

func (h *heap) sink() {
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(h.list); c++ {
			if h.s.worse(&h.list[c], &h.list[least]) {
				least = c
			}
		}
		if least == i {
			return
		}
		h.list[i], h.list[least] = h.list[least], h.list[i]
		i = least
	}
}

// named marks, and adds, the tools whose name the query is or holds.
func (s *space) named(q *Query, list []ranked) []ranked {
	whole := strings.TrimSpace(q.Text)
	list = s.mark(q, list, whole, exactFold)
	for word := range strings.FieldsSeq(whole) {
		word = strings.Trim(word, `"'.,:;!?()[]{}<>`+"`")
		if len(word) < len(whole) && looksLikeName(word) {
			list = s.mark(q, list, word, exactPart)
		}
	}
	return list
}

// looksLikeName reports whether a word is written as only names are.
func looksLikeName(word string) bool {
	if strings.ContainsAny(word, "_.") {
		return true
	}
	for i := 1; i < len(word); i++ {
		if word[i] >= 'A' && word[i] <= 'Z' && isSmall(word[i-1]) {
			return true
		}
	}
	return strings.Count(word, "-") > 0 && strings.Contains(strings.Trim(word, "-"), "-")
}

func (s *space) mark(q *Query, list []ranked, name string, how uint8) []ranked {
	if len(name) > 2*maxNameBytes {
		return list
	}
	for _, id := range s.folded(fold(name)) {
		d := s.doc(id)
		if !q.keeps(d) {
			continue
		}
		level := how
		if d.name == name {
			level = exactWhole
		}
		at := slices.IndexFunc(list, func(r ranked) bool { return r.id == id })
		if at < 0 {
			at = len(list)
			list = append(list, ranked{id: id})
		}
		list[at].exact = max(list[at].exact, level)
		list[at].sure = 1
	}
	return list
}

// Hits of one source make room for those of others: each beyond the first few counts for less.
// Once it has most of the places, it gets further ones only when the others are far worse.
const (
	freeHits = 3
	fading   = 0.94
	crowded  = 0.5
)

// spread takes the best hits, one after the other, from a list that is sorted.
func (s *space) spread(list []ranked, limit int) []ranked {
	f := fader{s: s, limit: limit}
	n := min(limit, len(list))
	for k := range n {
		best, value := k, f.value(&list[k])
		for i := k + 1; i < len(list) && (list[i].exact > 0 || list[i].score > value); i++ { // fading makes none better
			if v := f.value(&list[i]); v > value {
				best, value = i, v
			}
		}
		r := list[best]
		copy(list[k+1:best+1], list[k:best])
		list[k] = r
		f.took(s.brief(r.id).from)
	}
	return list[:n]
}

// fader counts the hits of each source.
type fader struct {
	s     *space
	limit int
	taken []sourceCount
}

type sourceCount struct {
	from  uint32
	count int
	fade  float32
}

func (f *fader) of(from uint32) *sourceCount {
	for i := range f.taken {
		if f.taken[i].from == from {
			return &f.taken[i]
		}
	}
	return nil
}

func (f *fader) took(from uint32) {
	c := f.of(from)
	if c == nil {
		f.taken = append(f.taken, sourceCount{from: from, fade: 1})
		c = &f.taken[len(f.taken)-1]
	}
	c.count++
	if c.count >= freeHits {
		c.fade *= fading
	}
	if c.count == max(freeHits, (7*f.limit+9)/10) {
		c.fade *= crowded
	}
}

// value is what a hit counts for, given those that were taken.
func (f *fader) value(r *ranked) float32 {
	if r.exact > 0 {
		return 1000*float32(r.exact) + r.score
	}
	if c := f.of(f.s.brief(r.id).from); c != nil && !r.named {
		return r.score * c.fade
	}
	return r.score
}

// A hit is weak when it answers to little of the query, or to much less than the best one. A tool that deletes
// must answer to most of a query that does not ask for that.
const (
	weakSure    = 0.30
	weakPart    = 0.35
	weakDeletes = 0.75
)

func (s *space) hits(q *asked, list []ranked) []Hit {
	hits := make([]Hit, len(list))
	best := float32(0)
	for _, r := range list {
		best = max(best, r.score)
	}
	for i, r := range list {
		d := s.doc(r.id)
		hits[i] = Hit{Name: d.name, Source: d.source, Score: float64(min(1, r.score)), Exact: r.exact > 0, Matched: q.words(r.cover)}
		least := float32(weakSure)
		if d.intents&lexicon.Deletes != 0 && !q.deletes {
			least = weakDeletes
		}
		hits[i].Weak = r.exact == 0 && (r.sure < least || r.score < weakPart*best)
		if r.exact > 0 {
			hits[i].Score = 1
		}
	}
	return hits
}

// words returns what the covered concepts are in the query.
func (q *asked) words(cover uint32) []string {
	var out []string
	for i := range q.concepts {
		if cover&(1<<i) != 0 {
			out = append(out, q.concepts[i].text)
		}
	}
	return out
}
