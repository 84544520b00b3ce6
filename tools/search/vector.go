package search

import (
	"math"

	"github.com/toolcrib/toolcrib/tools/search/lexicon"
)

// vector is a direction in the space of the lexicon's word vectors, of length 127.
type vector [lexicon.Dim]int8

// addVector adds w times a term's vector, less for common words.
func (v *vocabulary) addVector(sum *[lexicon.Dim]float32, term uint32, w float32) {
	if int(term) >= v.lex.Len() || v.lex.Flags(int(term))&lexicon.Fluff != 0 {
		return
	}
	vec := v.lex.Vector(int(term))
	w *= 0.3 + float32(v.lex.Rank(int(term)))/128
	for i := range len(vec) {
		sum[i] += w * float32(int8(vec[i]))
	}
}

func quantise(sum *[lexicon.Dim]float32) (out vector) {
	norm := float32(0)
	for _, s := range sum {
		norm += s * s
	}
	if norm == 0 {
		return out
	}
	scale := 127 / float32(math.Sqrt(float64(norm)))
	for i, s := range sum {
		out[i] = int8(math.Round(float64(s * scale)))
	}
	return out
}

// cosine returns how alike two directions are, from -1 to 1; 0 when one is unknown.
func cosine(a, b *vector) float32 {
	sum := int32(0)
	for i := range a {
		sum += int32(a[i]) * int32(b[i])
	}
	return float32(sum) / (127 * 127)
}
