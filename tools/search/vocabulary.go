package search

import (
	"bytes"
	"strings"
	"sync"

	"github.com/toolcrib/toolcrib/tools/search/lexicon"
)

// vocabulary numbers terms: those of the lexicon first, then others as tools bring them. It is safe for
// concurrent use. It holds terms of all tools, so that nothing may be concluded from a term's presence.
type vocabulary struct {
	lex     *lexicon.Table
	phrases func() map[pair]step // of the lexicon, word by word; made when it is asked for

	mu      sync.RWMutex
	ids     map[string]uint32
	texts   []string
	sources map[string]uint32 // where tools come from, numbered
}

func newVocabulary(lex *lexicon.Table) *vocabulary {
	phrases := sync.OnceValue(func() map[pair]step { return phrasesOf(lex) })
	return &vocabulary{lex: lex, phrases: phrases, ids: map[string]uint32{}, sources: map[string]uint32{}}
}

// pair is where one is in a phrase, and the next word. One is at its first word, or at the node of a step.
type pair struct{ node, word uint32 }

// step is where the next word leads, and the phrase that ends there, or noTerm.
type step struct{ node, term uint32 }

const noTerm = 1<<32 - 1

// phrasesOf makes a tree of the lexicon's phrases. Its inner nodes are numbered on from the terms.
func phrasesOf(lex *lexicon.Table) map[pair]step {
	tree := map[pair]step{}
	for t := range lex.Len() {
		if text := lex.Text(t); strings.IndexByte(text, ' ') > 0 {
			grow(tree, lex, strings.Fields(text), uint32(t))
		}
	}
	return tree
}

// grow adds one phrase, if the lexicon knows all its words.
func grow(tree map[pair]step, lex *lexicon.Table, words []string, term uint32) {
	node := lex.Term(words[0])
	for i, word := range words[1:] {
		id := lex.Term(word)
		if node == lexicon.None || id == lexicon.None {
			return
		}
		at := pair{uint32(node), uint32(id)}
		s, have := tree[at]
		if !have {
			s = step{uint32(lex.Len() + len(tree)), noTerm}
		}
		if i == len(words)-2 {
			s.term = term
		}
		tree[at] = s
		node = int(s.node)
	}
}

// lookup returns the term of a word in small letters, and whether there is one.
func (v *vocabulary) lookup(word []byte) (uint32, bool) {
	if t := v.lex.Word(word); t != lexicon.None {
		return uint32(t), true
	}
	return v.stem(lexicon.Stem(string(word)))
}

// quick is lookup without the work of stemming: a word that the lexicon does not know is taken as it is, or
// without an s at its end.
func (v *vocabulary) quick(word []byte) (uint32, bool) {
	if t := v.lex.Word(word); t != lexicon.None {
		return uint32(t), true
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	id, ok := v.ids[string(word)]
	if !ok {
		id, ok = v.ids[string(bytes.TrimSuffix(word, []byte("s")))]
	}
	return id, ok
}

// stem returns the term of a stem or phrase.
func (v *vocabulary) stem(stem string) (uint32, bool) {
	if t := v.lex.Term(stem); t != lexicon.None {
		return uint32(t), true
	}
	v.mu.RLock()
	id, ok := v.ids[stem]
	v.mu.RUnlock()
	return id, ok
}

// intern returns the term of a word, which is added when there is none.
func (v *vocabulary) intern(word []byte) uint32 {
	if t := v.lex.Word(word); t != lexicon.None {
		return uint32(t)
	}
	stem := lexicon.Stem(string(word))
	if id, ok := v.stem(stem); ok {
		return id
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if id, ok := v.ids[stem]; ok {
		return id
	}
	id := uint32(v.lex.Len() + len(v.texts))
	v.ids[stem] = id
	v.texts = append(v.texts, stem)
	return id
}

// size returns how many terms there are.
func (v *vocabulary) size() int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.lex.Len() + len(v.texts)
}

// maxOwn bounds how many terms and sources are remembered. Where they come and go without end, the vocabulary is
// made anew.
const maxOwn = 1 << 18

func (v *vocabulary) full() bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return len(v.texts) > maxOwn || len(v.sources) > maxOwn
}

// own returns the terms that are not the lexicon's. The slice must not be changed.
func (v *vocabulary) own() []string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.texts
}

func (v *vocabulary) flags(id uint32) uint16 {
	if int(id) < v.lex.Len() {
		return v.lex.Flags(int(id))
	}
	return 0
}

// source returns the number of a source.
func (v *vocabulary) source(name string) uint32 {
	v.mu.Lock()
	defer v.mu.Unlock()
	id, ok := v.sources[name]
	if !ok {
		id = uint32(len(v.sources))
		v.sources[name] = id
	}
	return id
}

// perSource returns room for one document of each source.
func (v *vocabulary) perSource() []ranked {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return make([]ranked, len(v.sources))
}
