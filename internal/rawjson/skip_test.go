package rawjson

import (
	"strings"
	"testing"
)

// walked is what a walker says of the value at the start of b.
func walked(b []byte) (int, Fault) {
	w := Walker{doc: b, MaxDepth: DefaultMaxDepth, Trusted: true}
	return w.Value(0, 0)
}

func sameSkip(t *testing.T, b []byte) {
	t.Helper()
	wantEnd, want := walked(b)
	if end, fault := skip(b, 0); end != wantEnd || fault != want {
		t.Fatalf("%.200q: got %d %v, want %d %v", b, end, fault, wantEnd, want)
	}
}

var skipped = []string{
	`{"a":[1,2,{"b":null}],"c":"\u00e9","d":{}}`, `[]`, `[ ]`, `{ }`, `{"a" : 1 , "b" : [ ] }`, `[[[1]],{"x":[{}]}]`, `"text that is longer than a word"`,
	`-1.5e+10`, `true`, `null `, ``, ` `, `[`, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `[1,`, `[1,]`, `{,}`, `{"a":1,}`, `{1:2}`, `{"a" 1}`, `[1 2]`,
	`{"a":1]`, `[1}`, `tru`, `nul1`, `-`, `01`, `1.`, `1e`, `"open`, `"bad \x"`, `"\u12g4"`, "\"line\nbreak\"", "[\"tab\t\"]", `x`, `}`, `]`, `{"a":x}`,
	"[\x00]", "{\"k\":\n[\r\n1\t,\n2 ]\n}", `{"":""}`, `{"a":{"b":{"c":[{"d":[]}]}}}`,
}

// TestSkipAsWalked checks that every text, and every beginning of it, is
// understood as a walker does.
func TestSkipAsWalked(t *testing.T) {
	for _, s := range skipped {
		for i := range len(s) + 1 {
			sameSkip(t, []byte(s[:i]))
		}
	}
	for _, depth := range []int{63, 64, 65, DefaultMaxDepth - 1, DefaultMaxDepth, DefaultMaxDepth + 1} {
		sameSkip(t, []byte(strings.Repeat("[", depth)+strings.Repeat("]", depth)))
		sameSkip(t, []byte(strings.Repeat(`{"a":`, depth)+"1"+strings.Repeat("}", depth)))
		sameSkip(t, []byte(strings.Repeat(`[{"a":`, depth/2)+"1"+strings.Repeat("}]", depth/2)+"x"))
	}
}

func FuzzSkipAsWalked(f *testing.F) {
	for _, s := range skipped {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) { sameSkip(t, b) })
}
