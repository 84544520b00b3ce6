package rawjson

import (
	"bytes"
	"encoding/json"
	"testing"
)

func FuzzUnescapeHTML(f *testing.F) {
	for _, s := range []string{"", "<a href='x'>&", `\u003c`, `\\u003c`, "\u2028", "\x00<", "plain"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		doc, err := json.Marshal(map[string]string{s: s})
		if err != nil {
			t.Fatal(err)
		}
		var buf bytes.Buffer
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(map[string]string{s: s}); err != nil {
			t.Fatal(err)
		}
		if got, want := UnescapeHTML(doc), bytes.TrimSuffix(buf.Bytes(), []byte("\n")); !bytes.Equal(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}
