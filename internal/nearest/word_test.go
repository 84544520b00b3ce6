package nearest_test

import (
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/internal/nearest"
)

func TestWord(t *testing.T) {
	known := []string{"name", "arguments", "idempotency_key", "meta", "id", "command", "x", "tools", "toolz"}
	for given, want := range map[string]string{
		"nam": "name", "Name": "name", "nmae": "name", "name": "name",
		"argumnets": "arguments", "idempotencyKey": "idempotency_key", "idempotent_keys": "idempotency_key",
		"mta": "meta", "META": "meta", "dat": "", "ID": "id", "ie": "id", "di": "id", "X": "x", "y": "",
		"comand": "command", "commend": "command", "cmnd": "", "commands": "command", "toolx": "tools",
		"zzz": "", "": "", "completely_else": "", "a": "",
	} {
		if got, ok := nearest.Word(given, known); got != want || ok != (want != "") {
			t.Errorf("nearest to %q: got %q, %v, want %q", given, got, ok, want)
		}
	}
}

func TestLongWords(t *testing.T) {
	long := strings.Repeat("ab", 64)
	if got, ok := nearest.Word(long[1:], []string{"x", long}); !ok || got != long {
		t.Errorf("a word of %d bytes: got %q", len(long)-1, got)
	}
	if got, ok := nearest.Word(long+"a", []string{long}); ok {
		t.Errorf("a word of %d bytes: got %q", len(long)+1, got)
	}
}

// The word that another becomes by one edit is near to it.
func FuzzWord(f *testing.F) {
	f.Add("name", 1)
	f.Add("idempotency_key", 14)
	f.Fuzz(func(t *testing.T, word string, at int) {
		if len(word) < 3 || len(word) > 100 || at < 0 || at+1 >= len(word) || word != strings.ToLower(word) {
			t.Skip()
		}
		for how, edited := range map[string]string{
			"dropped":  word[:at] + word[at+1:],
			"inserted": word[:at] + "q" + word[at:],
			"changed":  word[:at] + "q" + word[at+1:],
			"swapped":  word[:at] + word[at+1:at+2] + word[at:at+1] + word[at+2:],
		} {
			if strings.ToLower(edited) != edited {
				continue
			}
			if got, ok := nearest.Word(edited, []string{word}); !ok || got != word {
				t.Errorf("%s: %q is not near to %q", how, edited, word)
			}
		}
	})
}
