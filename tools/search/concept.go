package search

import (
	"cmp"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/tools/search/lexicon"
)

// concept is one thing that a query asks for: a word or phrase, with everything else that may stand for it.
type concept struct {
	text   string // as the query writes it
	term   int    // its own term, or none
	ways   []way  // the strongest first; its own term is the first, if it has one
	weight float32
	idf    float32
}

// way is a term that may stand for a concept, and how surely, up to 1.
type way struct {
	term   uint32
	weight float32
	idf    float32
}

const none = -1

// asked is a query that was read.
type asked struct {
	concepts []concept
	intents  uint16
	deletes  bool // a word of it may ask for something to be deleted
	vec      vector
	repairs  []Repair
	guessed  int // how many words were guessed at
}

// token is a word of the query.
type token struct {
	text  string
	term  int // none when nothing knows it
	fluff bool
	guesses
}

// Limits of a query.
const (
	maxTokens   = 48
	maxConcepts = 32 // the width of a set of concepts
	maxWays     = 24
)

// The weights that links of each kind have at most.
var linkWeights = [4]float32{
	lexicon.Same:    0.70,
	lexicon.Related: 0.55,
	lexicon.WordNet: 0.30,
	lexicon.Vector:  0.30,
}

// read turns a query into concepts.
func (s *space) read(text string) *asked {
	tokens := s.tokens(text)
	q := &asked{}
	s.mend(q, tokens)
	for i := 0; i < len(tokens) && len(q.concepts) < maxConcepts; {
		n := s.phrase(q, tokens[i:])
		if n == 0 {
			s.single(q, tokens, i)
			n = 1
		}
		i += n
	}
	q.drop()
	s.weigh(q)
	s.mean(q)
	return q
}

func (s *space) tokens(text string) []token {
	if len(text) > MaxText {
		text = text[:MaxText]
	}
	var out []token
	var split splitter
	split.emit = func(word []byte) {
		if len(out) == maxTokens {
			return
		}
		t := token{text: string(word), term: none}
		if id, ok := s.vocab.lookup(word); ok && (int(id) < s.vocab.lex.Len() || s.df(id) > 0) {
			t.term = int(id)
			t.fluff = s.vocab.flags(id)&lexicon.Fluff != 0
		}
		out = append(out, t)
	}
	split.text(text)
	return out
}

// mend guesses what unknown words are that make no known word with a neighbour either. What is sure enough takes
// part in phrases.
func (s *space) mend(q *asked, tokens []token) {
	for i := range tokens {
		t := &tokens[i]
		if t.term != none || s.glued(tokens, i-1) != none || s.glued(tokens, i) != none {
			continue
		}
		t.guesses = s.guess(q, t.text)
		if t.guesses.close() {
			t.term = int(t.guesses.list[0].term)
			q.repairs = append(q.repairs, Repair{From: t.text, To: t.guesses.list[0].word})
		}
	}
}

// phrase adds the longest phrase of the lexicon that the tokens begin with, and returns how many they are.
func (s *space) phrase(q *asked, tokens []token) int {
	if tokens[0].term == none || s.vocab.flags(uint32(tokens[0].term))&lexicon.Begins == 0 {
		return 0
	}
	best, length := uint32(noTerm), 0
	node := uint32(tokens[0].term)
	for n := 1; n < min(maxPhrase, len(tokens)) && tokens[n].term != none; n++ {
		next, ok := s.vocab.phrases()[pair{node, uint32(tokens[n].term)}]
		if !ok {
			break
		}
		if node = next.node; next.term != noTerm {
			best, length = next.term, n+1
		}
	}
	if best == noTerm {
		return 0
	}
	c := concept{text: join(tokens[:length]), term: int(best), weight: phraseWeight}
	c.ways = s.expand(best)
	for _, t := range tokens[:length] {
		if !t.fluff {
			c.ways = append(c.ways, way{term: uint32(t.term), weight: phrasePart})
		}
	}
	q.add(c)
	return length
}

// A phrase counts for more than a word, and each of its words alone stands for it in part.
const (
	phraseWeight = 1.3
	phrasePart   = 0.5
)

func join(tokens []token) string {
	words := make([]string, len(tokens))
	for i, t := range tokens {
		words[i] = t.text
	}
	return strings.Join(words, " ")
}

// single adds the concept of one word.
func (s *space) single(q *asked, tokens []token, i int) {
	t := tokens[i]
	weight := float32(1)
	if t.fluff {
		weight = 0
	}
	c := concept{text: t.text, term: t.term, weight: weight}
	switch {
	case len(t.list) > 0:
		if t.close() || !s.takeApart(q, t) {
			s.repair(q, &c, t.guesses)
			q.add(c)
		}
		return
	case t.term != none:
		c.ways = s.expand(uint32(t.term))
	}
	for _, term := range [2]int{s.glued(tokens, i-1), s.glued(tokens, i)} {
		if term != none {
			c.ways = append(c.ways, way{term: uint32(term), weight: 0.9})
		}
	}
	if len(c.ways) == 0 && s.takeApart(q, t) {
		return
	}
	if weight > 0 && !slices.ContainsFunc(c.ways, func(w way) bool { return s.df(w.term) > 0 }) {
		s.repair(q, &c, s.guess(q, t.text))
	}
	q.add(c)
}

// glued returns the word that a token makes together with the next one, as in "web hook", or none.
func (s *space) glued(tokens []token, i int) int {
	if i < 0 || i+1 >= len(tokens) {
		return none
	}
	if id, ok := s.vocab.quick([]byte(tokens[i].text + tokens[i+1].text)); ok && s.df(id) > 0 {
		return int(id)
	}
	return none
}

// takeApart adds the concepts of the words that an unknown one is glued together from.
func (s *space) takeApart(q *asked, t token) bool {
	parts := s.vocab.parts([]byte(t.text))
	for _, p := range parts {
		if s.vocab.flags(p)&lexicon.Fluff == 0 {
			q.add(concept{text: t.text, term: int(p), ways: s.expand(p), weight: 1})
		}
	}
	return len(parts) > 0
}

// add appends a concept unless the query asked for the same before.
func (q *asked) add(c concept) {
	for i := range q.concepts {
		if c.term != none && q.concepts[i].term == c.term || q.concepts[i].text == c.text && c.term == none {
			return
		}
	}
	if len(q.concepts) < maxConcepts {
		q.concepts = append(q.concepts, c)
	}
}

// drop leaves out the words that say nothing, unless the query has no others.
func (q *asked) drop() {
	said := slices.ContainsFunc(q.concepts, func(c concept) bool { return c.weight > 0 })
	if said {
		q.concepts = slices.DeleteFunc(q.concepts, func(c concept) bool { return c.weight == 0 })
		return
	}
	for i := range q.concepts {
		q.concepts[i].weight = 0.5
	}
}

// enough is how many words of the thesaurus that the tools use make those of WordNet needless, which are of
// everyday English rather than of the trade.
const enough = 4

// expand returns a term and what may stand for it.
func (s *space) expand(term uint32) []way {
	ways := []way{{term: term, weight: 1}}
	if int(term) >= s.vocab.lex.Len() {
		return ways
	}
	same := 0
	from, to := s.vocab.lex.Links(int(term))
	for i := from; i < to && len(ways) < 2*maxWays; i++ {
		l := s.vocab.lex.Link(i)
		if l.Kind == lexicon.Same && s.df(uint32(l.To)) > 0 {
			same++
		}
		if l.Kind == lexicon.WordNet && same >= enough {
			continue
		}
		w := linkWeights[l.Kind] * float32(l.Weight) / lexicon.MaxWeight
		ways = append(ways, way{term: uint32(l.To), weight: w})
	}
	return ways
}

// weigh drops the ways that no tool goes, and sets how much the others and each concept count.
func (s *space) weigh(q *asked) {
	for i := range q.concepts {
		c := &q.concepts[i]
		own := float32(-1)
		kept := c.ways[:0]
		for _, w := range c.ways {
			if n := s.df(w.term); n > 0 {
				w.idf = idf(n, len(s.live))
				if int(w.term) == c.term {
					own = w.idf
				}
				kept = append(kept, w)
			}
		}
		c.ways = kept
		c.settle(own, idf(0, len(s.live)))
	}
}

// settle sets the concept's own idf: that of its term, or else of the likeliest way. No way counts for more.
func (c *concept) settle(own, rarest float32) {
	slices.SortStableFunc(c.ways, func(a, b way) int { return cmp.Compare(b.weight, a.weight) })
	c.idf = own
	if own < 0 {
		c.idf = rarest * 0.7
		if len(c.ways) > 0 {
			c.idf = c.ways[0].idf
		}
	}
	kept := c.ways[:0]
	for _, w := range c.ways {
		w.idf = min(w.idf, c.idf)
		if w.weight*w.idf >= faint*c.idf && len(kept) < maxWays {
			kept = append(kept, w)
		}
	}
	c.ways = kept
}

// deletes reports whether a concept is a verb that deletes, or most likely stands for one.
func (s *space) deletes(c *concept) bool {
	likely := func(w way) bool { return w.weight >= phrasePart && s.vocab.flags(w.term)&lexicon.Deletes != 0 }
	return s.vocab.flags(uint32(c.term))&lexicon.Deletes != 0 || slices.ContainsFunc(c.ways, likely)
}

// faint is the share of a concept's worth below which a way is not gone.
const faint = 0.1

// mean sets what the query means as a vector, and the kinds of deeds that it asks for.
func (s *space) mean(q *asked) {
	var sum [lexicon.Dim]float32
	for i := range q.concepts {
		c := &q.concepts[i]
		if c.term == none {
			continue
		}
		q.intents |= s.vocab.flags(uint32(c.term)) & lexicon.Intents
		q.deletes = q.deletes || s.deletes(c)
		s.vocab.addVector(&sum, uint32(c.term), c.weight)
		if len(c.ways) > 1 && c.ways[0].weight > 0.7 {
			s.vocab.addVector(&sum, c.ways[0].term, 0.5*c.weight)
		}
	}
	q.vec = quantise(&sum)
}
