package mask_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/internal/mask"
)

const key = "-----BEGIN KEY-----\nMIIBVwIBADANBg+/kqhkiG\nshort\n\nline3/with=pad\n-----END KEY-----\n"

func TestClean(t *testing.T) {
	for _, c := range []struct{ secret, text, want string }{
		{"Bearer abc123", "sent Bearer abc123, got abc123", "sent [hidden], got [hidden]"},
		{"pass word", "a password, a word", "a password, a [hidden]"},
		{"Bearer abc", "abc is not abcd", "[hidden] is not abcd"},
		{"Bearer abc123", "the Bearer is wrong", "the Bearer is wrong"},
		{"abcd", "xabcdx", "x[hidden]x"},
		{"ab", "ab, cab, ab_c, (ab)", "[hidden], cab, ab_c, ([hidden])"},
		{"a", "a", "a"},
		{"12", "12 of 12", "12 of 12"},
		{"1234", "1234 of 12345", "[hidden] of [hidden]5"},
		{"true", "true", "true"},
		{"DEBUG", "a DEBUG b", "a DEBUG b"},
		{"", "a b", "a b"},
		{"pre word longer-word", "word sword longer-words", "[hidden] sword [hidden]s"},
		{" padded \n", "[padded]", "[[hidden]]"},
		{key, "MIIBVwIBADANBg+/kqhkiG", "[hidden]"},
		{key, "short line3/with=pad", "short [hidden]"},
		{key, key, "[hidden]\n"},
	} {
		if got := mask.New(c.secret).Clean(c.text); got != c.want {
			t.Errorf("%q in %q: got %q, want %q", c.secret, c.text, got, c.want)
		}
	}
}

// Neither secrets that begin in each other nor such as touch leave a rest.
func TestOverlappingSecrets(t *testing.T) {
	m := mask.New("abcdef", "defghi", "abcdefghij-long", "12345")
	for text, want := range map[string]string{
		"abcdefghi": "[hidden]", "xabcdefghij-longx": "x[hidden]x", "abcdef12345": "[hidden]", "abcdef 12345": "[hidden] [hidden]",
		"abcdef": "[hidden]", "abcde": "abcde",
	} {
		if got := m.Clean(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestNothingToHide(t *testing.T) {
	var m *mask.Mask
	if got := m.Clean("text"); got != "text" || mask.New("", "x", "true") != nil {
		t.Errorf("got %q", got)
	}
}

// encodings are what a peer may write a secret in.
var encodings = map[string]func(string) string{
	"JSON":         func(s string) string { b, _ := json.Marshal(s); return string(b) },
	"JSON in JSON": func(s string) string { b, _ := json.Marshal(s); b, _ = json.Marshal(string(b)); return string(b) },
	"Go":           func(s string) string { return fmt.Sprintf("%q", s) },
	"ASCII":        func(s string) string { return fmt.Sprintf("%+q", s) },
	"query":        url.QueryEscape,
	"path":         url.PathEscape,
	"lower hex":    func(s string) string { return strings.ToLower(url.QueryEscape(s)) },
	"basic":        func(s string) string { return base64.StdEncoding.EncodeToString([]byte("user:" + s)) },
	"base64":       func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"raw base64":   func(s string) string { return base64.RawStdEncoding.EncodeToString([]byte(s)) },
	"url base64":   func(s string) string { return base64.URLEncoding.EncodeToString([]byte("x" + s + "y")) },
}

func TestEncodedSecrets(t *testing.T) {
	for _, secret := range []string{`p"a\s/s<w>&o é rd`, "plain-token-1234567", key} {
		m := mask.New(secret)
		for name, encode := range encodings {
			if name == "lower hex" && secret != `p"a\s/s<w>&o é rd` {
				continue // it lowers letters too
			}
			got := m.Clean(encode(secret))
			rest := strings.ReplaceAll(got, mask.Hidden, "")
			if !strings.Contains(got, mask.Hidden) || len(rest) > 16 {
				t.Errorf("%s of %q became %q", name, secret, got)
			}
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("Bearer secret", "other", "a secret")
	f.Add("a\nbcdefgh", "\xff\xfe\xfd\xfc", "\xff\xfe\xfd\xfc")
	f.Fuzz(func(t *testing.T, a, b, text string) {
		m := mask.New(a, b)
		got := m.Clean(text + a + text + b)
		for _, secret := range []string{strings.TrimSpace(a), strings.TrimSpace(b)} {
			known := m != nil && mask.New(secret) != nil && len(secret) >= 4
			if known && !strings.ContainsAny(secret, mask.Hidden) && strings.Contains(got, secret) {
				t.Errorf("%q in %q", secret, got)
			}
		}
	})
}

func BenchmarkClean(b *testing.B) {
	m := mask.New("Bearer some-token-1234", key, "another secret")
	text := strings.Repeat("an ordinary line of text that holds nothing; ", 50)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		m.Clean(text)
	}
}
