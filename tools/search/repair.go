package search

import (
	"math/bits"
	"slices"

	"github.com/toolcrib/toolcrib/tools/search/lexicon"
)

// Limits of the repair of misspelt words.
const (
	minRepaired = 4  // letters of a word that is repaired
	maxRepaired = 32 //
	maxGuesses  = 3
	maxGuessed  = 12 // words of a query that are guessed at, as each takes a walk through the table
)

// guess is a word that a misspelt one may be.
type guess struct {
	term uint32
	word string
	cost int // in tenths of an edit
	rank int // how common it is: less is more
}

// guess returns what a word that leads to no tool may be: the words closest to it, among those of the fixed table
// that lead to a visible tool, and the terms of the visible tools.
func (s *space) guess(q *asked, word string) guesses {
	var best guesses
	if n := len(word); n < minRepaired || n > maxRepaired || !letters(word) || q.guessed == maxGuessed {
		return best
	}
	q.guessed++
	sk := newSketch(word)
	lex := s.vocab.lex
	for i, to := lex.Longer(len(word)-sk.edits), lex.Longer(len(word)+sk.edits+2); i < to; i++ {
		if !sk.shares(lex.Letters(i)) {
			continue
		}
		w, term := lex.Surface(i)
		if cost := sk.measure(w); cost > 0 && s.leads(term) {
			best.offer(cost, uint32(term), w, lex.Rank(term))
		}
	}
	for i, w := range s.vocab.own() {
		id := uint32(lex.Len() + i)
		if sk.near(w) && s.df(id) > 0 {
			best.offer(sk.measure(w), id, w, 64)
		}
	}
	return best
}

// leads reports whether a visible tool has a term of the lexicon, or what means the same.
func (s *space) leads(term int) bool {
	if s.df(uint32(term)) > 0 {
		return true
	}
	from, to := s.vocab.lex.Links(term)
	for i := from; i < to; i++ {
		l := s.vocab.lex.Link(i)
		if l.Kind != lexicon.Same {
			return false
		}
		if s.df(uint32(l.To)) > 0 {
			return true
		}
	}
	return false
}

// repair gives a concept the ways of the words that its own may be.
func (s *space) repair(q *asked, c *concept, best guesses) {
	for i, g := range best.list {
		weight := float32(0.95) - 0.1*float32(i) - float32(g.cost-best.list[0].cost)/40
		for _, w := range s.expand(g.term) {
			w.weight *= weight
			c.ways = append(c.ways, w)
		}
	}
	if len(best.list) == 0 {
		return
	}
	c.term = int(best.list[0].term)
	if r := (Repair{From: c.text, To: best.list[0].word}); !slices.Contains(q.repairs, r) {
		q.repairs = append(q.repairs, r)
	}
}

// close reports whether the best guess is but one edit away.
func (g *guesses) close() bool { return len(g.list) > 0 && g.list[0].cost <= editAny }

func letters(word string) bool {
	for i := range len(word) {
		if !isSmall(word[i]) {
			return false
		}
	}
	return true
}

// guesses keeps the few best.
type guesses struct{ list []guess }

func (g *guesses) offer(cost int, term uint32, word string, rank int) {
	if cost < 0 {
		return
	}
	n := guess{term, word, cost, rank}
	for i := range g.list {
		if g.list[i].term == term {
			if !n.before(&g.list[i]) {
				return
			}
			g.list = append(g.list[:i], g.list[i+1:]...)
			break
		}
	}
	at := len(g.list)
	for at > 0 && n.before(&g.list[at-1]) {
		at--
	}
	if at == maxGuesses {
		return
	}
	g.list = append(g.list, guess{})
	copy(g.list[at+1:], g.list[at:])
	g.list[at] = n
	if len(g.list) > maxGuesses {
		g.list = g.list[:maxGuesses]
	}
}

// before orders by cost and commonness, then by word. Sixteen steps of rarity weigh as much as a tenth of an edit.
func (g *guess) before(o *guess) bool {
	a, b := 16*g.cost+g.rank, 16*o.cost+o.rank
	if a != b {
		return a < b
	}
	return g.word < o.word
}

// sketch is a misspelt word, prepared for being compared with many others.
type sketch struct {
	word  string
	mask  uint32 // which letters it has
	edits int    // how many it may be away
	rows  [3][maxRepaired + 4]int
}

func newSketch(word string) *sketch {
	k := &sketch{word: word, mask: lexicon.Mask(word), edits: 1}
	if len(word) >= 7 {
		k.edits = 2
	}
	return k
}

// near reports whether a word may be close enough, by length and letters.
func (k *sketch) near(w string) bool {
	d := len(w) - len(k.word)
	return d >= -k.edits && d <= k.edits+1 && len(w) >= minRepaired-1 && k.shares(lexicon.Mask(w))
}

// shares reports whether a word may be close enough, by its letters. Each edit changes two of them at most.
func (k *sketch) shares(mask uint32) bool { return bits.OnesCount32(mask^k.mask) <= 2*k.edits }

// The costs of edits, in tenths.
const (
	editSwap   = 8
	editVowel  = 8  // a vowel too few or too many
	editDouble = 5  // a letter doubled or not
	editAny    = 10 // any other
	editFirst  = 6  // more, at the first letter
)

// measure returns the cost of the edits between the words, or -1 when they are too far apart.
func (k *sketch) measure(w string) int {
	a, b := k.word, w
	if len(b) > maxRepaired+2 {
		return -1
	}
	prev2, prev, row := &k.rows[0], &k.rows[1], &k.rows[2]
	for j := range len(b) + 1 {
		prev[j] = j * editAny
	}
	limit := k.edits * editAny
	for i := 1; i <= len(a); i++ {
		row[0] = i * editAny
		least := row[0]
		for j := 1; j <= len(b); j++ {
			row[j] = k.step(b, i, j, prev2, prev, row)
			least = min(least, row[j])
		}
		if least > limit {
			return -1
		}
		prev2, prev, row = prev, row, prev2
	}
	cost := prev[len(b)]
	if a[0] != b[0] {
		cost += editFirst
	}
	if cost > limit {
		return -1
	}
	return cost
}

func (k *sketch) step(b string, i, j int, prev2, prev, row *[maxRepaired + 4]int) int {
	a := k.word
	if a[i-1] == b[j-1] {
		return prev[j-1]
	}
	best := prev[j-1] + editAny
	if isVowel(a[i-1]) && isVowel(b[j-1]) {
		best = prev[j-1] + editVowel
	}
	best = min(best, prev[j]+one(a, i-1), row[j-1]+one(b, j-1))
	if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
		best = min(best, prev2[j-2]+editSwap)
	}
	return best
}

// one is the cost of a letter that only one of the words has.
func one(s string, i int) int {
	switch {
	case i > 0 && s[i] == s[i-1]:
		return editDouble
	case isVowel(s[i]):
		return editVowel
	}
	return editAny
}

func isVowel(c byte) bool { return c == 'a' || c == 'e' || c == 'i' || c == 'o' || c == 'u' }
