package main

import (
	"bufio"
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/toolcrib/toolcrib/tools/search/lexicon"
)

// wordNet is the senses of words: for each lemma and part of speech, its synsets, the most usual first.
type wordNet struct {
	senses map[string][]sense // by lemma, of one word each
	stems  map[string]bool    // of all lemmas that are no names
	synset map[string][]string
}

type sense struct {
	synset string
	order  int // 0 for the most usual of the lemma's senses in its part of speech
	pos    byte
}

// readWordNet reads the index and data files of the four parts of speech.
func readWordNet(dict string) (*wordNet, error) {
	n := &wordNet{senses: map[string][]sense{}, stems: map[string]bool{}, synset: map[string][]string{}}
	for _, pos := range []string{"noun", "verb", "adj", "adv"} {
		if err := eachLine(filepath.Join(dict, "data."+pos), func(f []string) { n.data(pos[0], f) }); err != nil {
			return nil, err
		}
		if err := eachLine(filepath.Join(dict, "index."+pos), func(f []string) { n.index(pos[0], f) }); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func eachLine(path string, do func(fields []string)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if text := lines.Text(); !strings.HasPrefix(text, " ") {
			do(strings.Fields(text))
		}
	}
	return lines.Err()
}

// data takes a line "offset file type count(hex) word id word id … | gloss".
func (n *wordNet) data(pos byte, f []string) {
	count, err := strconv.ParseInt(f[3], 16, 32)
	if err != nil {
		return
	}
	key := string(pos) + f[0]
	for i := range int(count) {
		word, _, _ := strings.Cut(f[4+2*i], "(")
		n.synset[key] = append(n.synset[key], word)
	}
}

// index takes a line "lemma pos synsets pointers pointer… senses tagged offset…".
func (n *wordNet) index(pos byte, f []string) {
	lemma := f[0]
	if !plain(lemma) {
		return
	}
	count, err := strconv.Atoi(f[2])
	if err != nil || count > len(f) {
		return
	}
	for i, offset := range f[len(f)-count:] {
		key := string(pos) + offset
		if n.isName(key, lemma) {
			continue
		}
		n.stems[lexicon.Stem(lemma)] = true
		n.senses[lemma] = append(n.senses[lemma], sense{key, i, pos})
	}
}

// isName reports whether a synset writes the lemma with a capital.
func (n *wordNet) isName(key, lemma string) bool {
	return !slices.Contains(n.synset[key], lemma)
}

// knows reports whether a word is a lemma or an inflection of one.
func (n *wordNet) knows(word string) bool {
	if len(n.senses[word]) > 0 {
		return true
	}
	for _, ending := range []struct{ cut, add string }{
		{"ies", "y"}, {"es", ""}, {"es", "e"}, {"s", ""}, {"ied", "y"}, {"ed", ""}, {"ed", "e"}, {"ing", ""}, {"ing", "e"},
	} {
		if base, ok := strings.CutSuffix(word, ending.cut); ok && len(n.senses[base+ending.add]) > 0 {
			return true
		}
	}
	return false
}

// usual bounds which senses of a word count.
const usual = 3

// synonyms returns for each stem the others that share one of its usual senses. The rarer the sense is on
// both sides, the lower the weight.
func (n *wordNet) synonyms(number map[string]int, b *book) [][]synonym {
	out := make([][]synonym, len(number))
	for lemma, senses := range n.senses {
		from, ok := number[b.stem(lemma)]
		if !ok {
			continue
		}
		for _, s := range senses {
			if s.order >= usual {
				continue
			}
			for _, other := range n.synset[s.synset] {
				to, ok := number[b.stem(other)]
				if !ok || to == from || !plain(other) {
					continue
				}
				weight := lexicon.MaxWeight * 2 / (2 + s.order + n.orderOf(other, s.synset))
				out[from] = append(out[from], synonym{to, weight})
			}
		}
	}
	for i := range out {
		out[i] = strongest(out[i])
	}
	return out
}

func (n *wordNet) orderOf(lemma, synset string) int {
	for _, s := range n.senses[lemma] {
		if s.synset == synset {
			return s.order
		}
	}
	return 9
}

// strongest keeps each target once, with its largest weight, the strongest first.
func strongest(list []synonym) []synonym {
	slices.SortFunc(list, func(a, b synonym) int {
		return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(b.Weight, a.Weight))
	})
	list = slices.CompactFunc(list, func(a, b synonym) bool { return a.To == b.To })
	slices.SortFunc(list, func(a, b synonym) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.To, b.To))
	})
	return list
}
