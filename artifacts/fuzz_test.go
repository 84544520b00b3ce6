package artifacts

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"context"

	"github.com/toolcrib/toolcrib/internal/peertest"
)

// Whatever a document is, and wherever it was cut, a preview of it is JSON, valid
// text, and not longer than allowed.
func FuzzPreview(f *testing.F) {
	for _, doc := range []string{`{"a":[1,2,{"b":"c\u00e9\ud834\udd1e"}],"long":"` + strings.Repeat("é", 300) + `"}`, `[[[[[[[[[[]]]]]]]]]]`, `{"a":{"a":{"a":1e400}}}`,
		`[` + strings.Repeat(`{"id":1},`, 50) + `{}]`, `{"":`, `["\ud834`, `[-`, `{"a" 1}`, `]`, `{"a":1}}`, strings.Repeat("[", 300), `["` + strings.Repeat(`\"`, 400) + `"]`, `[` + strings.Repeat("9", 200) + `]`} {
		f.Add([]byte(doc), 200, false)
		f.Add([]byte(doc), 60, true)
	}
	f.Fuzz(func(t *testing.T, doc []byte, budget int, partial bool) {
		budget = min(max(budget, 1), 5000)
		shown, ok := previewJSON(doc, budget, partial)
		if ok && (!json.Valid([]byte(shown)) || len(shown) > budget || utf8.Valid(doc) && !utf8.ValidString(shown)) {
			t.Errorf("%q of %q within %d", shown, doc, budget)
		}
		if repaired := repair(doc); json.Valid(doc) && len(repaired) > 0 && !json.Valid(repaired) {
			t.Errorf("%q was repaired to %q", doc, repaired)
		}
		if len(doc) > 0 && json.Valid(doc) && (doc[0] == '{' || doc[0] == '[') {
			checkPrefixes(t, doc)
		}
	})
}

// checkPrefixes demands that every beginning of a document can be made one.
func checkPrefixes(t *testing.T, doc []byte) {
	t.Helper()
	for cut := 1; cut <= min(len(doc), 300); cut++ {
		if repaired := repair(doc[:cut]); !json.Valid(repaired) {
			t.Fatalf("%q was repaired to %q", doc[:cut], repaired)
		}
	}
}

// No query panics, and each ends.
func FuzzQuery(f *testing.F) {
	for _, q := range []string{`.`, ``, ` # nothing`, `.a[] | select(.b > 1) | {c, d: [.e]}`, `reduce .[] as [$a, {b: $c}] (0; . + $a)`, `foreach .[] as $x (0; 1; 2)`, `try error catch .`, `label $f | break $f`,
		`if . then 1 elif 2 then 3 else 4 end`, `"\(1)\("a")"`, `@base64 "\(.)"`, `.[1:2]?`, `..`, `-1`, `[limit(3; repeat(1))]`, `def f: 1; f`, `. as {a: $x, "b": [$y]} ?// [$x, $y] | $x`, `.. |= 1`, `{"a\(1)": 2, (.x): 3, $y}`, `del(.a, .b[0])`} {
		f.Add(q, `{"a":[1,"x",null,{"b":2}]}`)
	}
	f.Fuzz(func(t *testing.T, query, doc string) {
		var v any
		if json.Unmarshal([]byte(doc), &v) != nil {
			return
		}
		code, w, err := compileQuery(query)
		if err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		q := &querying{code: code, work: w, limit: 10_000, res: &FetchResult{}}
		began := peertest.Busy()
		_ = q.run(ctx, v) // the fuzzer looks for what it does, not for what it says
		if took := peertest.Busy() - began; took > 5*time.Second {
			t.Errorf("%q took %v", query, took)
		}
	})
}
