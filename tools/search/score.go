package search

import "math"

// idf tells how much a term says that n of all documents hold.
func idf(n, all int) float32 {
	return float32(math.Log(1 + (float64(all)-float64(n)+0.5)/(float64(n)+0.5)))
}

// tally is what a document gathers while the concepts are gone through. There is one for each document, so it is
// kept small.
type tally struct {
	total, best float32 // of the concepts before, and of this one
	cover       uint32  // a bit for each concept that matched
	name        uint16  // how many words of the name the concepts before cover, in parts of nameUnit
	named       uint8   // the same for this one
	at          uint8   // the concept that best and named belong to, from 1; and the bit ofSource
}

const (
	nameUnit = 64
	ofSource = 1 << 7 // a word of the query is the source's name
)

// board holds the tallies of a search.
type board struct {
	tallies []tally
	touched []uint32
}

// board returns a cleared board for so many documents. It is given back with release.
func (x *Index) board(n int) *board {
	b, _ := x.boards.Get().(*board)
	if b == nil {
		b = new(board)
	}
	if cap(b.tallies) < n {
		b.tallies = make([]tally, n)
	}
	b.tallies = b.tallies[:n]
	b.touched = b.touched[:0]
	return b
}

// release clears what was touched and keeps the board for another search.
func (x *Index) release(b *board) {
	for _, id := range b.touched {
		b.tallies[id] = tally{}
	}
	x.boards.Put(b)
}

// count goes through the postings of every way of every concept. Of a concept's ways the best counts.
func (s *space) count(q *asked, b *board) {
	for i := range q.concepts {
		c := &q.concepts[i]
		for _, w := range c.ways {
			factor := c.weight * w.weight * w.idf / impactAll
			b.add(s.base.postings(w.term), 0, uint32(i), factor, w.weight)
			b.add(s.fresh.postings(w.term), uint32(len(s.base.docs)), uint32(i), factor, w.weight)
		}
	}
}

// direct is how sure a way must be to count for a tool that has the term among its parameters only.
const direct = 0.9

func (b *board) add(posts []uint32, first, concept uint32, factor, weight float32) {
	at, unit := uint8(concept+1), uint8(weight*nameUnit)
	for _, p := range posts {
		if weight < direct && p&flagsAll == 0 {
			return // so are all that follow
		}
		id := p>>docShift + first
		t := &b.tallies[id]
		if t.at&^ofSource != at {
			b.turn(t, id, at)
		}
		if v := factor * float32(p&impactAll); v > t.best {
			t.best = v
		}
		if p&flagName != 0 && unit > t.named {
			t.named = unit
		}
		if p&flagFrom != 0 && weight >= 1 {
			t.at |= ofSource
		}
	}
}

// turn goes on to another concept.
func (b *board) turn(t *tally, id uint32, at uint8) {
	if t.at == 0 {
		b.touched = append(b.touched, id)
	}
	t.total += t.best
	t.name += uint16(t.named)
	t.best, t.named = 0, 0
	t.at = t.at&ofSource | at
	t.cover |= 1 << (at - 1)
}

func (t *tally) fromSource() bool { return t.at&ofSource != 0 }

// words is how many words of the name are covered.
func (t *tally) words() float32 { return float32(t.name+uint16(t.named)) / nameUnit }
