package natsstream_test

import (
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/registry/stream/natsstream"
)

func TestToken(t *testing.T) {
	for name, want := range map[string]string{
		"plain-name_9":             "plain-name_9",
		"toolset:weather:requests": "toolset~weather~requests",
		"a.b*c>d e":                "a%2Eb%2Ac%3Ed%20e",
		"~%":                       "%7E%25",
		"é":                        "%C3%A9",
		"\x00":                     "%00",
	} {
		if got := natsstream.Token(name); got != want {
			t.Errorf("Token(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestFromTokenRefusesWhatIsNone(t *testing.T) {
	for _, token := range []string{"", "a.b", "%", "%4", "%zz", "%41", "%2e", "a b", "é", "%3A"} {
		if name, err := natsstream.FromToken(token); err == nil {
			t.Errorf("FromToken(%q) = %q, want an error", token, name)
		}
	}
}

func FuzzToken(f *testing.F) {
	for _, seed := range []string{"a", "toolset:weather:requests", "a.b", "%", "~", "é\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		token := natsstream.Token(name)
		if strings.ContainsAny(token, " \t\r\n\f.*>/\\\x00") {
			t.Fatalf("Token(%q) = %q", name, token)
		}
		back, err := natsstream.FromToken(token)
		if name != "" && (err != nil || back != name) {
			t.Fatalf("FromToken(Token(%q)) = %q, %v", name, back, err)
		}
	})
}

func FuzzFromToken(f *testing.F) {
	f.Add("toolset~weather~requests")
	f.Add("%C3%A9")
	f.Fuzz(func(t *testing.T, token string) {
		if name, err := natsstream.FromToken(token); err == nil && natsstream.Token(name) != token {
			t.Fatalf("FromToken(%q) = %q, whose token is %q", token, name, natsstream.Token(name))
		}
	})
}
