package lexicon_test

import (
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/tools/search/lexicon"
)

func table(t testing.TB) *lexicon.Table {
	t.Helper()
	lex, err := lexicon.Default()
	if err != nil {
		t.Fatal(err)
	}
	return lex
}

// Every number in the table leads somewhere, and every word finds itself.
func TestTableIsWhole(t *testing.T) {
	lex := table(t)
	if lex.Len() < 20000 || lex.Surfaces() < 50000 {
		t.Fatalf("only %d terms and %d written words", lex.Len(), lex.Surfaces())
	}
	for i := range lex.Len() {
		if got := lex.Term(lex.Text(i)); got != i {
			t.Fatalf("%q is term %d and is found as %d", lex.Text(i), i, got)
		}
		if v := lex.Vector(i); v != "" && len(v) != lexicon.Dim {
			t.Fatalf("the vector of %q has %d numbers", lex.Text(i), len(v))
		}
		checkLinks(t, lex, i)
	}
	for i := range lex.Surfaces() {
		word, term := lex.Surface(i)
		if got := lex.Word([]byte(word)); got != term || term >= lex.Len() {
			t.Fatalf("%q belongs to %d and is found as %d", word, term, got)
		}
	}
}

func checkLinks(t *testing.T, lex *lexicon.Table, term int) {
	t.Helper()
	last := lexicon.Same
	for i, to := lex.Links(term); i < to; i++ {
		l := lex.Link(i)
		if l.To >= lex.Len() || l.To == term || l.Weight < 1 || l.Weight > lexicon.MaxWeight || l.Kind < last {
			t.Fatalf("%q has the link %+v after one of kind %d", lex.Text(term), l, last)
		}
		last = l.Kind
	}
}

func TestWhatStandsForWhat(t *testing.T) {
	lex := table(t)
	for from, want := range map[string]string{
		"ticket": "issue", "pull request": "merge request", "deploy": "release", "throw away": "delete", "k8s": "kubernet", "folder": "directori",
	} {
		var stems []string
		for w := range strings.FieldsSeq(from) {
			stems = append(stems, lexicon.Stem(w))
		}
		term := lex.Term(strings.Join(stems, " "))
		if term == lexicon.None {
			t.Errorf("there is no %q", from)
			continue
		}
		found := false
		for i, to := lex.Links(term); i < to; i++ {
			found = found || lex.Text(lex.Link(i).To) == strings.Join(stemsOf(want), " ")
		}
		if !found {
			t.Errorf("%q does not lead to %q", from, want)
		}
	}
	if term := lex.Word([]byte("children")); term == lexicon.None || lex.Text(term) != "child" {
		t.Errorf("children is %d", term)
	}
	if lex.Flags(lex.Word([]byte("please")))&lexicon.Fluff == 0 || lex.Flags(lex.Word([]byte("invoice")))&lexicon.Fluff != 0 {
		t.Error("please says something, or invoice nothing")
	}
	for word, want := range map[string]bool{"delete": true, "clear": true, "dismiss": true, "create": false, "close": false, "list": false} {
		if got := lex.Flags(lex.Word([]byte(word)))&lexicon.Deletes != 0; got != want {
			t.Errorf("%q deletes: %v, want %v", word, got, want)
		}
	}
}

func stemsOf(phrase string) []string {
	var out []string
	for w := range strings.FieldsSeq(phrase) {
		if w != "kubernet" && w != "directori" {
			w = lexicon.Stem(w)
		}
		out = append(out, w)
	}
	return out
}

func TestUnknownWords(t *testing.T) {
	lex := table(t)
	if got := lex.Word([]byte("zorblax")); got != lexicon.None {
		t.Errorf("zorblax is %d", got)
	}
	if got := lex.Term(""); got != lexicon.None {
		t.Errorf("nothing is %d", got)
	}
	var empty lexicon.Table
	if empty.Len() != 0 || empty.Term("a") != lexicon.None || empty.Word([]byte("a")) != lexicon.None || empty.Surfaces() != 0 {
		t.Error("the zero table holds something")
	}
}

func TestBrokenTables(t *testing.T) {
	for _, data := range []string{"", "x", lexicon.Magic, lexicon.Magic + "\xff\xff\xff\xff", lexicon.Magic + strings.Repeat("\x01\x00\x00\x00", 20)} {
		if _, err := lexicon.Open(data); err == nil {
			t.Errorf("%q was opened", data)
		}
	}
}
