package search

import "github.com/toolcrib/toolcrib/tools/search/lexicon"

// Limits of words that are glued together from others, in bytes.
const (
	minGlued = 6
	maxGlued = 28
	minPart  = 3
)

// parts returns the terms of the known words that a word is glued together from, as in "listwebhooks"; nothing
// for a word that is known itself or cannot be taken apart.
func (v *vocabulary) parts(w []byte) []uint32 {
	if len(w) < minGlued || len(w) > maxGlued || v.lex.Word(w) != lexicon.None {
		return nil
	}
	for _, c := range w {
		if c < 'a' || c > 'z' {
			return nil
		}
	}
	best := gluing{cost: len(w) * 3}
	v.take(w, gluing{}, &best)
	return best.terms
}

// gluing is one way to take a word apart. The cost grows with the number of parts and their rarity.
type gluing struct {
	terms []uint32
	cost  int
}

const maxParts = 4

// take tries every known word as the next part of w.
func (v *vocabulary) take(w []byte, so gluing, best *gluing) {
	if len(w) == 0 {
		if len(so.terms) > 1 && so.cost < best.cost {
			*best = gluing{append([]uint32(nil), so.terms...), so.cost}
		}
		return
	}
	if len(so.terms) == maxParts {
		return
	}
	for n := len(w); n >= 2; n-- {
		if rest := len(w) - n; rest == 1 {
			continue
		}
		t := v.lex.Word(w[:n])
		if t == lexicon.None || n < minPart && v.lex.Flags(t)&lexicon.Fluff == 0 {
			continue
		}
		cost := so.cost + 6 + v.lex.Rank(t)/16
		if cost >= best.cost {
			continue
		}
		v.take(w[n:], gluing{append(so.terms[:len(so.terms):len(so.terms)], uint32(t)), cost}, best)
	}
}
