package search

import (
	"math"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/search/lexicon"
)

// The fields of a tool.
const (
	inName = iota
	inTitle
	inSource
	inTags
	inHead // the first sentence of the description
	inBody // the rest of it
	inParam
	inDetail // descriptions of parameters
	fields
)

// field says how a field's words count: its weight, its usual length in words, how much a greater length
// lessens each word, and how many words are read.
type field struct {
	weight, usual, b float32
	most             int
}

// The lengths are fixed, so that a tool's words weigh the same whatever other tools there are.
var layout = [fields]field{
	inName:   {3.2, 3, 0.5, 32},
	inTitle:  {3.0, 3, 0.5, 24},
	inSource: {1.6, 1, 0.0, 8},
	inTags:   {2.0, 3, 0.4, 32},
	inHead:   {2.2, 12, 0.5, 40},
	inBody:   {0.45, 40, 0.6, 160},
	inParam:  {0.7, 6, 0.6, 64},
	inDetail: {0.35, 50, 0.7, 160},
}

// saturation is how soon further occurrences of a word count for less: k1 of BM25.
const saturation = 1.8

// A posting is a document in the upper 20 bits, four flags, and a byte of impact.
const (
	docShift  = 12
	maxDocs   = 1 << (32 - docShift)
	flagName  = 1 << 8 // the name or title holds the term
	flagFrom  = 1 << 9 // the source's name does
	flagText  = 1 << 10
	flagsAll  = flagName | flagFrom | flagText
	impactAll = 255
)

// occurrence is a term of a document, with a posting that has no document yet.
type occurrence struct{ term, post uint32 }

// analyzer turns tools into terms. It is not for concurrent use.
type analyzer struct {
	vocab *vocabulary
	split splitter
	known map[string][]uint32 // written word → its terms

	counts  [][fields]uint8 // by term
	touched []uint32
	run     []uint32 // the terms of the field so far, for phrases
	field   int
	lengths [fields]int
}

// maxKnown bounds how many written words are remembered.
const maxKnown = 1 << 16

func newAnalyzer(v *vocabulary) *analyzer {
	a := &analyzer{vocab: v, known: map[string][]uint32{}}
	a.split.emit = a.word
	return a
}

// tool appends the terms of t to out and fills in what of it is kept beside them.
func (a *analyzer) tool(t *tools.Tool, out []occurrence) (doc, []occurrence) {
	d := doc{name: t.Name, source: sourceOf(t), tags: t.Tags, digest: digestOf(t), beside: t.Kind != tools.KindTool}
	d.from = a.vocab.source(d.source)
	a.lengths = [fields]int{}
	a.touched = a.touched[:0]
	a.into(inName, ownName(t))
	d.nameLen = uint8(min(255, max(1, a.lengths[inName])))
	d.intents = a.intents(a.run)
	d.folds = [2]uint32{fold(t.Name), fold(t.SourceName)}
	if t.Title != "" && t.Title != t.Name {
		a.into(inTitle, t.Title)
	}
	a.into(inSource, t.Namespace)
	if t.Category != "" {
		a.into(inTags, t.Category)
	}
	for _, tag := range t.Tags {
		a.into(inTags, tag)
	}
	head, body := sentence(t.Description)
	a.into(inHead, head)
	if d.intents == 0 && len(a.run) > 0 {
		d.intents = a.intents(a.run[:1])
	}
	a.into(inBody, body)
	a.parameters(t.ArgsSchema, 0)
	a.embed(&d)
	return d, a.finish(out)
}

// digestOf identifies what a tool says of itself.
func digestOf(t *tools.Tool) string {
	if t.DefinitionDigest != "" {
		return t.DefinitionDigest
	}
	return t.Name + "\x00" + t.Title + "\x00" + t.Description
}

// sourceOf names where a tool comes from.
func sourceOf(t *tools.Tool) string {
	if t.Namespace != "" {
		return t.Namespace
	}
	return string(t.Source)
}

// ownName is a tool's name without that of its source.
func ownName(t *tools.Tool) string {
	name := t.Name
	if t.SourceName != "" && t.Kind == tools.KindTool {
		name = t.SourceName
	}
	rest, ok := strings.CutPrefix(name, t.Namespace)
	if t.Namespace == "" || !ok || rest == "" || isWordByte(rest[0]) {
		return name
	}
	return rest
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// sentence cuts a description after its first sentence.
func sentence(s string) (head, rest string) {
	for i := 0; i < len(s); i++ {
		if s[i] == '\n' || s[i] == '.' && (i+1 == len(s) || s[i+1] == ' ' || s[i+1] == '\n') && i > 12 {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// into reads a text as words of a field.
func (a *analyzer) into(field int, text string) {
	a.field = field
	a.run = a.run[:0]
	a.split.text(text)
	a.phrases()
}

// word counts one written word.
func (a *analyzer) word(w []byte) {
	if a.lengths[a.field] >= layout[a.field].most {
		return
	}
	a.lengths[a.field]++
	terms, ok := a.known[string(w)]
	if !ok {
		terms = a.terms(w)
		if len(a.known) >= maxKnown {
			clear(a.known)
		}
		a.known[string(w)] = terms
	}
	a.run = append(a.run, terms[0])
	for _, t := range terms {
		a.count(t)
	}
}

// terms returns a word's own term, and those of the words that it is glued from.
func (a *analyzer) terms(w []byte) []uint32 {
	terms := []uint32{a.vocab.intern(w)}
	for _, part := range a.vocab.parts(w) {
		if !slices.Contains(terms, part) {
			terms = append(terms, part)
		}
	}
	return terms
}

func (a *analyzer) count(term uint32) {
	if int(term) >= len(a.counts) {
		a.counts = append(a.counts, make([][fields]uint8, int(term)+1024-len(a.counts))...)
	}
	c := &a.counts[term]
	if *c == ([fields]uint8{}) {
		a.touched = append(a.touched, term)
	}
	if c[a.field] < 255 {
		c[a.field]++
	}
}

// phrases counts the phrases of the lexicon in what the field held.
func (a *analyzer) phrases() {
	for i, first := range a.run {
		if a.vocab.flags(first)&lexicon.Begins == 0 {
			continue
		}
		node := first
		for _, next := range a.run[i+1 : min(len(a.run), i+maxPhrase)] {
			step, ok := a.vocab.phrases()[pair{node, next}]
			if !ok {
				break
			}
			if node = step.node; step.term != noTerm {
				a.count(step.term)
			}
		}
	}
}

// maxPhrase bounds how many words a phrase has.
const maxPhrase = 5

// intents are the kinds of deeds that the first verbs among terms stand for.
func (a *analyzer) intents(terms []uint32) uint16 {
	for _, t := range terms {
		if f := a.vocab.flags(t) & lexicon.Intents; f != 0 {
			return f
		}
	}
	return 0
}

// maxNesting bounds how deep parameters of parameters are read.
const maxNesting = 2

// parameters reads the names, descriptions and values of a schema's properties.
func (a *analyzer) parameters(schema []byte, depth int) {
	props, ok := rawjson.Get(schema, "properties")
	if !ok {
		return
	}
	for it := rawjson.Object(props); it.Next(); {
		a.into(inParam, it.Key())
		a.parameter(it.Value(), depth)
	}
}

func (a *analyzer) parameter(schema []byte, depth int) {
	for it := rawjson.Object(schema); it.Next(); {
		switch {
		case it.KeyIs("description"):
			if text, ok := rawjson.Unquote(it.Value()); ok {
				a.into(inDetail, text)
			}
		case it.KeyIs("enum"):
			a.values(it.Value())
		case it.KeyIs("properties") && depth < maxNesting:
			a.parameters(schema, depth+1)
		case it.KeyIs("items") && depth < maxNesting:
			a.parameter(it.Value(), depth+1)
		}
	}
}

// maxValues bounds how many values of an enumeration are read.
const maxValues = 12

func (a *analyzer) values(list []byte) {
	n := 0
	for it := rawjson.Array(list); it.Next() && n < maxValues; n++ {
		if text, ok := rawjson.Unquote(it.Value()); ok {
			a.into(inDetail, text)
		}
	}
}

// finish appends the counted terms with their impacts, and clears the counts.
func (a *analyzer) finish(out []occurrence) []occurrence {
	var scale [fields]float32
	for f, l := range layout {
		scale[f] = l.weight / (1 - l.b + l.b*max(float32(a.lengths[f])/l.usual, 0.3))
	}
	for _, term := range a.touched {
		c := &a.counts[term]
		tf := float32(0)
		for f, n := range c {
			if n > 0 {
				tf += scale[f] * float32(n)
			}
		}
		post := uint32(math.Round(float64(impactAll * tf / (tf + saturation))))
		out = append(out, occurrence{term, max(1, post) | flagsOf(c)})
		*c = [fields]uint8{}
	}
	return out
}

func flagsOf(c *[fields]uint8) (flags uint32) {
	if c[inName]+c[inTitle] > 0 {
		flags |= flagName
	}
	if c[inSource] > 0 {
		flags |= flagFrom
	}
	if c[inHead]+c[inBody]+c[inTags] > 0 {
		flags |= flagText
	}
	return flags
}

// embed sums the vectors of the words that say most of the tool.
func (a *analyzer) embed(d *doc) {
	var sum [lexicon.Dim]float32
	for _, term := range a.touched {
		c := &a.counts[term]
		w := 3*float32(min(c[inName]+c[inTitle], 1)) + 1.5*float32(min(c[inHead]+c[inTags], 1))
		if w > 0 {
			a.vocab.addVector(&sum, term, w)
		}
	}
	d.vec = quantise(&sum)
}

// fold is a hash of a name without what separates its words and without case.
func fold(name string) uint32 {
	var buf [2 * maxNameBytes]byte
	key := buf[:0]
	for i := 0; i < len(name) && len(key) < cap(buf); i++ {
		c := name[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if isWordByte(c) || c >= 0x80 {
			key = append(key, c)
		}
	}
	if len(key) == 0 {
		return 0
	}
	return max(1, lexicon.Hash(key))
}

const maxNameBytes = 128
