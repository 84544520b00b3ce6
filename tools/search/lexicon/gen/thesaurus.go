package main

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/tools/search/lexicon"
)

// book is what thesaurus.txt says, in stems.
type book struct {
	links   map[string]map[string]link // from, to
	flags   map[string]uint16
	intents []string
	forms   map[string]string // an irregular form and the word that it is a form of
	written map[string]bool   // single words as they stand in the file
}

type link struct {
	kind   lexicon.Kind
	weight int
}

// The weights of the thesaurus's links: of the same thing, of one way to it, and of what is related.
const (
	sameWeight    = 56
	towardWeight  = 48
	relatedWeight = 40
	faintWeight   = 30
)

// readThesaurus reads a file of lines, each of one form:
//
//	= a, b, c        every pair means the same
//	~ a, b, c        every pair is related
//	a > b, c         whoever says a may mean b or c
//	a >> b, c        the same, less likely
//	! name: a, b     the verbs of a kind of deed
//	% a, b           words that say nothing
//	@ a: b, c        b and c are forms of a
//	# …              a comment
func readThesaurus(path string) (*book, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := &book{links: map[string]map[string]link{}, flags: map[string]uint16{}, forms: map[string]string{}, written: map[string]bool{}}
	lines := bufio.NewScanner(f)
	var rest []string
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '@' {
			err = b.line(line)
		} else {
			rest = append(rest, line)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	for _, line := range rest {
		if err := b.line(line); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", path, line, err)
		}
	}
	return b, lines.Err()
}

func (b *book) line(line string) error {
	mark, body := line[0], strings.TrimSpace(line[1:])
	switch mark {
	case '=':
		b.group(b.list(body), link{lexicon.Same, sameWeight})
	case '~':
		b.group(b.list(body), link{lexicon.Related, relatedWeight})
	case '%':
		for _, w := range b.list(body) {
			b.flags[w] |= lexicon.Fluff
		}
	case '!':
		return b.intent(body)
	case '@':
		return b.formsOf(body)
	default:
		return b.toward(line)
	}
	return nil
}

// list splits a line at commas and stems each part.
func (b *book) list(s string) []string {
	var out []string
	for part := range strings.SplitSeq(s, ",") {
		if stem := b.stems(part); stem != "" && !slices.Contains(out, stem) {
			out = append(out, stem)
		}
	}
	return out
}

// stems returns the stems of a word or phrase, joined by spaces.
func (b *book) stems(phrase string) string {
	words := strings.Fields(strings.ToLower(phrase))
	for i, w := range words {
		b.written[w] = true
		words[i] = b.stem(w)
	}
	return strings.Join(words, " ")
}

func (b *book) stem(word string) string {
	if base, ok := b.forms[word]; ok {
		word = base
	}
	return lexicon.Stem(word)
}

func (b *book) group(words []string, l link) {
	for i, from := range words {
		for j, to := range words {
			if i != j {
				b.add(from, to, l)
			}
		}
	}
}

// add keeps the stronger of two links between the same words.
func (b *book) add(from, to string, l link) {
	if from == to {
		return
	}
	m := b.links[from]
	if m == nil {
		m = map[string]link{}
		b.links[from] = m
	}
	if have, ok := m[to]; !ok || have.kind > l.kind || have.kind == l.kind && have.weight < l.weight {
		m[to] = l
	}
}

func (b *book) toward(line string) error {
	l := link{lexicon.Same, towardWeight}
	left, right, ok := strings.Cut(line, ">>")
	if ok {
		l = link{lexicon.Related, faintWeight}
	} else if left, right, ok = strings.Cut(line, ">"); !ok {
		return fmt.Errorf("expected a line that begins with one of = ~ ! %% @ or holds >")
	}
	for _, from := range b.list(left) {
		for _, to := range b.list(right) {
			b.add(from, to, l)
		}
	}
	return nil
}

func (b *book) intent(body string) error {
	name, verbs, ok := strings.Cut(body, ":")
	if !ok {
		return fmt.Errorf("expected ! name: verbs")
	}
	bit := slices.Index(b.intents, name)
	if bit < 0 {
		bit = len(b.intents)
		b.intents = append(b.intents, name)
	}
	if bit >= 12 {
		return fmt.Errorf("more than 12 kinds of deeds")
	}
	for _, w := range b.list(verbs) {
		b.flags[w] |= 1 << bit
	}
	return nil
}

func (b *book) formsOf(body string) error {
	base, forms, ok := strings.Cut(body, ":")
	if !ok {
		return fmt.Errorf("expected @ word: forms")
	}
	base = strings.TrimSpace(base)
	b.written[base] = true
	for form := range strings.SplitSeq(forms, ",") {
		form = strings.TrimSpace(form)
		b.forms[form] = base
		b.written[form] = true
	}
	return nil
}

// pairs counts the pairs of words that are linked, whatever the direction.
func (b *book) pairs() int {
	n := 0
	for from, m := range b.links {
		for to := range m {
			if _, both := b.links[to][from]; !both || from < to {
				n++
			}
		}
	}
	return n
}

// terms returns every word and phrase of the book, sorted.
func (b *book) terms() []string {
	all := map[string]bool{}
	for from, m := range b.links {
		all[from] = true
		for to := range m {
			all[to] = true
		}
	}
	for w := range b.flags {
		all[w] = true
	}
	for w := range all {
		for word := range strings.FieldsSeq(w) {
			all[word] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}
