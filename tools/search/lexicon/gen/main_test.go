package main

import (
	"os"
	"path/filepath"
	"testing"
)

// What is committed is what the program makes of the thesaurus and the cut words.
func TestTableIsCurrent(t *testing.T) {
	if testing.Short() {
		t.Skip("makes the whole table, which takes some seconds")
	}
	dir := t.TempDir()
	for _, name := range []string{"thesaurus.txt", "words.gob.gz"} {
		data, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := run("", dir); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join(dir, "lexicon.bin"))
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile(filepath.Join("..", "lexicon.bin"))
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != string(have) {
		t.Error("lexicon.bin is not what thesaurus.txt and words.gob.gz give; run go run ./tools/search/lexicon/gen")
	}
}

func TestThesaurusLines(t *testing.T) {
	for text, ok := range map[string]bool{
		"= a, b\n~ c, d\ne > f\ng >> h\n! make: create, add\n% the\n@ go: went\n# x\n": true,
		"no mark\n":  false,
		"! create\n": false,
		"@ went\n":   false,
	} {
		path := filepath.Join(t.TempDir(), "thesaurus.txt")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readThesaurus(path); (err == nil) != ok {
			t.Errorf("%q gives the error %v", text, err)
		}
	}
}
