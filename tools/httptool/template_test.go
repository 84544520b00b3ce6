package httptool

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
)

// FuzzTemplates checks that a value stays in the place where a template puts
// it and comes back as it was.
func FuzzTemplates(f *testing.F) {
	for _, s := range []string{"a", `"`, `\`, `","x":"`, "\n", "/../", "?&#", "{{.Args.a}}", "\u2028", "%41"} {
		f.Add(s)
	}
	address, err := newFiller("https://h/p/{{.Args.v}}/q?a={{.Args.v}}&b=1", placeURL)
	if err != nil {
		f.Fatal(err)
	}
	body, err := newFiller(`{"s": "x{{.Args.v}}y", "v": {{.Args.v}}, "end": true}`, placeJSON)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "?")
		if s == "" {
			return
		}
		args := map[string]any{"v": s}
		text, err := address.fill(args)
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		segments := strings.Split(u.EscapedPath(), "/")
		q := u.Query()
		if u.Host != "h" || len(segments) != 4 || q.Get("a") != s || q.Get("b") != "1" || len(q) != 2 {
			t.Fatalf("%q escaped from its place: %q", s, text)
		}
		if got, err := url.PathUnescape(segments[2]); err != nil || got != s {
			t.Fatalf("path: got %q, want %q", got, s)
		}
		if text, err = body.fill(args); err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%v: %q", err, text)
		}
		if len(got) != 3 || got["s"] != "x"+s+"y" || got["v"] != s {
			t.Fatalf("%q escaped from its place: %q", s, text)
		}
	})
}

func TestTemplatePlaces(t *testing.T) {
	args, err := templateArgs(json.RawMessage(`{"n":1.10,"big":9007199254740993,"o":{"k":"<&>"},"t":true,"z":null,"l":["a","b"]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		where      place
		text, want string
	}{
		{placeJSON, `{"n":{{.Args.n}},"b":{{.Args.big}},"o":{{.Args.o}},"t":{{.Args.t}},"z":{{.Args.z}},"m":{{.Args.missing}}}`,
			`{"n":1.10,"b":9007199254740993,"o":{"k":"<&>"},"t":true,"z":null,"m":null}`},
		{placeJSON, `["n={{.Args.n}} o={{.Args.o}} m={{.Args.missing}} \" {{.Args.t}}"]`,
			`["n=1.10 o={\"k\":\"<&>\"} m= \" true"]`},
		{placeJSON, `[{{range $i, $v := .Args.l}}{{if $i}},{{end}}{{$v}}{{end}}]`, `["a","b"]`},
		{placeJSON, `{{with .Args.o}}{{.k}}{{else}}0{{end}}`, `"<&>"`},
		{placeJSON, `{{$x := .Args.n}}{"x":{{printf "%s!" $x}}}`, `{"x":"1.10!"}`},
		{placeURL, `https://h/{{.Args.o}}?n={{.Args.missing}}`, `https://h/%7B%22k%22%3A%22%3C%26%3E%22%7D?n=`},
		{placeText, `{{.Args.l}}`, `["a","b"]`},
		{placeXML, `<a b="{{.Args.o}}"/>`, `<a b="{&#34;k&#34;:&#34;&lt;&amp;&gt;&#34;}"/>`},
	} {
		f, err := newFiller(c.text, c.where)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got, err := f.fill(args); err != nil || got != c.want {
			t.Errorf("%s:\ngot  %s %v\nwant %s", c.text, got, err, c.want)
		}
	}
}

func TestTemplateRefusals(t *testing.T) {
	for text, want := range map[string]string{
		`{{.Args.a}}`:                     "before the path",
		`https://{{.Args.a}}/`:            "before the path",
		`https://h:{{.Args.a}}/`:          "before the path",
		`https://h/#{{.Args.a}}`:          "fragment",
		`https://h/{{define "x"}}{{end}}`: "define",
		`https://h/{{call .Args.a}`:       "bad character",
	} {
		if _, err := newFiller(text, placeURL); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	f, err := newFiller(`"{{.Env}}"`, placeJSON)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := f.fill(nil); err == nil {
		t.Errorf("a template saw %q", got)
	}
}
