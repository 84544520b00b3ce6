package search

import (
	"math"
	"sync"
)

// idf tells how much a term says that n of all documents hold.
func idf(n, all int) float32 {
	return float32(math.Log(1 + (float64(all)-float64(n)+0.5)/(float64(n)+0.5)))
}

// tally is what a document gathers while the concepts are gone through.
type tally struct {
	total, best float32 // of the concepts before, and of this one
	name, named float32 // the same for how much of the name they cover
	cover       uint32  // a bit for each concept that matched
	at          uint8   // the concept that best and named belong to, from 1
	from        bool    // a word of the query is the source's name
}

// board holds the tallies of a search.
type board struct {
	tallies []tally
	touched []uint32
}

var boards = sync.Pool{New: func() any { return new(board) }}

func newBoard(n int) *board {
	b := boards.Get().(*board)
	if cap(b.tallies) < n {
		b.tallies = make([]tally, n)
	}
	b.tallies = b.tallies[:n]
	b.touched = b.touched[:0]
	return b
}

// release clears what was touched and gives the board back.
func (b *board) release() {
	for _, id := range b.touched {
		b.tallies[id] = tally{}
	}
	boards.Put(b)
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
	for _, p := range posts {
		if weight < direct && p&flagsAll == 0 {
			continue
		}
		id := p>>docShift + first
		t := &b.tallies[id]
		if t.at != uint8(concept+1) {
			if t.at == 0 {
				b.touched = append(b.touched, id)
			}
			t.total += t.best
			t.name += t.named
			t.best, t.named, t.at = 0, 0, uint8(concept+1)
			t.cover |= 1 << concept
		}
		if v := factor * float32(p&impactAll); v > t.best {
			t.best = v
		}
		if p&flagName != 0 && weight > t.named {
			t.named = weight
		}
		if p&flagFrom != 0 && weight >= 1 {
			t.from = true
		}
	}
}
