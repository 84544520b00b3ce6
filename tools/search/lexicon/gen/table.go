package main

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/tools/search/lexicon"
)

// table is a lexicon before it is encoded.
type table struct {
	terms    []string // stems, then phrases
	surfaces []string
	stems    []int // of each surface
	out      []map[int]link
	flags    []uint16
	ranks    []int
	vectors  [][lexicon.Dim]int8 // of the first terms
}

func build(words *cutWords, b *book) *table {
	t := &table{terms: slices.Clone(words.Stems), vectors: words.Vectors}
	number := map[string]int{}
	for i, s := range t.terms {
		number[s] = i
	}
	for _, s := range b.terms() {
		if _, have := number[s]; !have {
			number[s] = len(t.terms)
			t.terms = append(t.terms, s)
		}
	}
	t.out = make([]map[int]link, len(t.terms))
	t.flags = make([]uint16, len(t.terms))
	t.ranks = make([]int, len(t.terms))
	for i, s := range t.terms {
		t.out[i] = map[int]link{}
		t.flags[i] = b.flags[s]
		t.ranks[i] = 255
		if i < len(words.Ranks) {
			t.ranks[i] = min(255, int(20*math.Log(1+float64(words.Ranks[i])/20)))
		}
	}
	for _, s := range t.terms {
		if first, _, phrase := strings.Cut(s, " "); phrase {
			if n, ok := number[first]; ok {
				t.flags[n] |= lexicon.Begins
			}
		}
	}
	t.write(words, b, number)
	t.join(words.Near, lexicon.Vector)
	t.join(words.Synonyms, lexicon.WordNet)
	for from, m := range b.links {
		for to, l := range m {
			t.link(number[from], number[to], l)
		}
	}
	return t
}

// write fills in the written words.
func (t *table) write(words *cutWords, b *book, number map[string]int) {
	stems := map[string]int{}
	for _, s := range words.Surfaces {
		stems[s.Word] = number[b.stem(s.Word)]
	}
	for w := range b.written {
		if n, ok := number[b.stem(w)]; ok {
			stems[w] = n
		}
	}
	t.surfaces = slices.SortedFunc(maps.Keys(stems), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	t.stems = make([]int, len(t.surfaces))
	for i, w := range t.surfaces {
		t.stems[i] = stems[w]
	}
}

func (t *table) join(lists [][]synonym, kind lexicon.Kind) {
	for from, list := range lists {
		for _, s := range list {
			t.link(from, s.To, link{kind, s.Weight})
		}
	}
}

// link sets how one term leads to another. What is set later takes the place of what is there.
func (t *table) link(from, to int, l link) {
	if from != to && l.weight > 0 {
		t.out[from][to] = l
	}
}

func (t *table) links() int {
	n := 0
	for _, m := range t.out {
		n += len(m)
	}
	return n
}

// encode writes the table in the format that lexicon.Open reads.
func (t *table) encode() []byte {
	out := []byte(lexicon.Magic)
	for _, n := range []int{len(t.terms), len(t.surfaces), t.links(), len(t.vectors)} {
		out = u32(out, n)
	}
	out = encodeWords(out, t.terms)
	out = encodeWords(out, t.surfaces)
	for _, s := range t.stems {
		out = binary.LittleEndian.AppendUint16(out, uint16(s))
	}
	for _, w := range t.surfaces {
		out = binary.LittleEndian.AppendUint32(out, lexicon.Mask(w))
	}
	out = t.encodeLinks(out)
	for _, f := range t.flags {
		out = binary.LittleEndian.AppendUint16(out, f)
	}
	for _, r := range t.ranks {
		out = append(out, byte(r))
	}
	for i := range t.terms {
		row := 0
		if i < len(t.vectors) {
			row = i + 1
		}
		out = binary.LittleEndian.AppendUint16(out, uint16(row))
	}
	for i := range t.vectors {
		for _, v := range t.vectors[i] {
			out = append(out, byte(v))
		}
	}
	return out
}

// encodeLinks writes each term's links, the most certain kind first and the strongest first within it.
func (t *table) encodeLinks(out []byte) []byte {
	var to, how []byte
	n := 0
	for _, m := range t.out {
		out = u32(out, n)
		n += len(m)
		targets := slices.SortedFunc(maps.Keys(m), func(a, b int) int {
			return cmp.Or(cmp.Compare(m[a].kind, m[b].kind), cmp.Compare(m[b].weight, m[a].weight), cmp.Compare(t.terms[a], t.terms[b]))
		})
		for _, target := range targets {
			to = binary.LittleEndian.AppendUint16(to, uint16(target))
			how = append(how, byte(m[target].kind)<<6|byte(m[target].weight))
		}
	}
	out = u32(out, n)
	return append(append(out, to...), how...)
}

func u32(out []byte, n int) []byte { return binary.LittleEndian.AppendUint32(out, uint32(n)) }

// encodeWords writes a list of strings and the hash table over it.
func encodeWords(out []byte, list []string) []byte {
	size, bits := 0, 1
	for _, s := range list {
		size += len(s)
	}
	for 1<<bits < 2*len(list) {
		bits++
	}
	out = u32(u32(out, size), bits)
	at := 0
	for _, s := range list {
		out = u32(out, at)
		at += len(s)
	}
	out = u32(out, at)
	for _, s := range list {
		out = append(out, s...)
	}
	slots := make([]uint16, 1<<bits)
	for i, s := range list {
		h := lexicon.Hash(s) & uint32(len(slots)-1)
		for slots[h] != 0 {
			h = (h + 1) & uint32(len(slots)-1)
		}
		slots[h] = uint16(i + 1)
	}
	for _, s := range slots {
		out = binary.LittleEndian.AppendUint16(out, s)
	}
	return out
}
