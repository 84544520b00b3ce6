package httptool

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
)

// The values of the style examples in the OpenAPI specification.
const (
	emptyText = `""`
	oneText   = `"blue"`
	textList  = `["blue","black","brown"]`
	textMap   = `{"R":100,"G":200,"B":150}`
)

// TestStyles follows the table "Style Examples" of OpenAPI 3.1.1.
func TestStyles(t *testing.T) {
	for _, c := range []struct {
		in, style string
		explode   bool
		value     string
		want      string
	}{
		{"path", "matrix", false, emptyText, ";color"},
		{"path", "matrix", false, oneText, ";color=blue"},
		{"path", "matrix", false, textList, ";color=blue,black,brown"},
		{"path", "matrix", false, textMap, ";color=R,100,G,200,B,150"},
		{"path", "matrix", true, emptyText, ";color"},
		{"path", "matrix", true, oneText, ";color=blue"},
		{"path", "matrix", true, textList, ";color=blue;color=black;color=brown"},
		{"path", "matrix", true, textMap, ";R=100;G=200;B=150"},
		{"path", "label", false, emptyText, "."},
		{"path", "label", false, oneText, ".blue"},
		{"path", "label", false, textList, ".blue,black,brown"},
		{"path", "label", false, textMap, ".R,100,G,200,B,150"},
		{"path", "label", true, textList, ".blue.black.brown"},
		{"path", "label", true, textMap, ".R=100.G=200.B=150"},
		{"path", "simple", false, oneText, "blue"},
		{"path", "simple", false, textList, "blue,black,brown"},
		{"path", "simple", false, textMap, "R,100,G,200,B,150"},
		{"path", "simple", true, textList, "blue,black,brown"},
		{"path", "simple", true, textMap, "R=100,G=200,B=150"},
		{"query", "form", false, emptyText, "color="},
		{"query", "form", false, oneText, "color=blue"},
		{"query", "form", false, textList, "color=blue,black,brown"},
		{"query", "form", false, textMap, "color=R,100,G,200,B,150"},
		{"query", "form", true, emptyText, "color="},
		{"query", "form", true, oneText, "color=blue"},
		{"query", "form", true, textList, "color=blue&color=black&color=brown"},
		{"query", "form", true, textMap, "R=100&G=200&B=150"},
		{"query", "spaceDelimited", false, textList, "color=blue%20black%20brown"},
		{"query", "spaceDelimited", false, textMap, "color=R%20100%20G%20200%20B%20150"},
		{"query", "pipeDelimited", false, textList, "color=blue%7Cblack%7Cbrown"},
		{"query", "pipeDelimited", false, textMap, "color=R%7C100%7CG%7C200%7CB%7C150"},
		{"query", "deepObject", true, textMap, "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"},
		{"query", "deepObject", true, `{"a":{"b":[1,{"c":2}]},"n":null}`, "color%5Ba%5D%5Bb%5D%5B0%5D=1&color%5Ba%5D%5Bb%5D%5B1%5D%5Bc%5D=2"},
		{"query", "deepObject", true, `["a","b"]`, "color%5B0%5D=a&color%5B1%5D=b"},
		{"query", "tabDelimited", false, textList, "color=blue%09black%09brown"},
		{"path", "spaceDelimited", false, textList, "blue%20black%20brown"},
		{"path", "pipeDelimited", false, textList, "blue%7Cblack%7Cbrown"},
		{"header", "pipeDelimited", false, textList, "blue|black|brown"},
		{"cookie", "cookie", true, textList, "color=blue; color=black; color=brown"},
		{"cookie", "cookie", true, `"a b%20"`, "color=a b%20"},
		{"header", "simple", false, textList, "blue,black,brown"},
		{"header", "simple", false, textMap, "R,100,G,200,B,150"},
		{"header", "simple", true, textMap, "R=100,G=200,B=150"},
		{"cookie", "form", true, oneText, "color=blue"},
		{"cookie", "form", false, textList, "color=blue,black,brown"},
		{"cookie", "form", false, textMap, "color=R,100,G,200,B,150"},
		{"cookie", "form", true, textMap, "R=100; G=200; B=150"},
		// Delimiters in values, and numbers as they are spelled.
		{"path", "simple", false, `["a,b","c/d"]`, "a%2Cb,c%2Fd"},
		{"path", "simple", false, `9007199254740993`, "9007199254740993"},
		{"query", "form", true, `"a b&c=d+e#f"`, "color=a%20b%26c%3Dd%2Be%23f"},
		{"query", "form", false, `[1.10,true,{"x":1}]`, "color=1.10,true,%7B%22x%22%3A1%7D"},
		{"query", "form", true, `[]`, ""},
		{"query", "form", true, `null`, ""},
	} {
		p := &parameter{arg: "color", name: "color", in: c.in, style: c.style, explode: c.explode}
		got := written(t, p, json.RawMessage(c.value))
		if got != c.want {
			t.Errorf("%s %s explode=%v %s: got %q, want %q", c.in, c.style, c.explode, c.value, got, c.want)
		}
	}
}

func written(t *testing.T, p *parameter, value json.RawMessage) string {
	t.Helper()
	var got string
	var err error
	switch p.in {
	case "path":
		got, err = p.path(value)
	case "query":
		got = p.query(value)
	case "header":
		got, _, err = p.header(value)
	case "cookie":
		got, err = p.cookie(value)
	}
	if err != nil {
		t.Error(err)
	}
	return got
}

func TestAllowReserved(t *testing.T) {
	p := &parameter{name: "to", in: "query", style: "form", explode: true, reserved: true}
	got := p.query(json.RawMessage(`"/a:b?c=d&e#f+%41%4g"`))
	if want := "to=/a:b?c=d%26e%23f%2B%41%254g"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestJSONParameter(t *testing.T) {
	p := &parameter{name: "f", in: "query", json: true}
	if got, want := p.query(json.RawMessage(`{ "a": [1, 2] }`)), "f=%7B%22a%22%3A%5B1%2C2%5D%7D"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRefusedValues(t *testing.T) {
	p := &parameter{arg: "id", name: "id", in: "path", style: "simple"}
	for _, v := range []string{`""`, `null`, `[]`, ``} {
		if got, err := p.path(json.RawMessage(v)); err == nil {
			t.Errorf("path value %s gave %q", v, got)
		}
	}
	h := &parameter{arg: "h", name: "h", in: "header", style: "simple"}
	for _, v := range []string{`"a\r\nX: y"`, `"a\u0000"`, `["a","b\n"]`} {
		if _, _, err := h.header(json.RawMessage(v)); err == nil {
			t.Errorf("header value %s was accepted", v)
		}
	}
}

// FuzzParameters checks that a value comes back as it was, and stays where it
// was put, whatever it is.
func FuzzParameters(f *testing.F) {
	for _, s := range []string{"a", "../b", "a/b?c#d", "%2F", "a;b,c", "\x00\n", "ü", "a+b c", "[x]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		raw, _ := json.Marshal(s)
		var text string
		if json.Unmarshal(raw, &text); text == "" {
			return
		}
		e := endpoint{base: "https://h/v1", path: splitPath("/a/{p}/b"), params: []*parameter{
			{arg: "p", name: "p", in: "path", style: "simple"}, {arg: "q", name: "q", in: "query", style: "form", explode: true}}}
		target, err := e.target(map[string]json.RawMessage{"p": raw, "q": raw})
		if text == "." || text == ".." {
			if err == nil {
				t.Fatalf("%q was accepted as a path segment", text)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(target)
		if err != nil {
			t.Fatal(err)
		}
		segments := strings.Split(u.EscapedPath(), "/")
		if u.Host != "h" || len(segments) != 5 || u.Fragment != "" {
			t.Fatalf("%q escaped from its segment: %q", text, target)
		}
		if got, err := url.PathUnescape(segments[3]); err != nil || got != text {
			t.Fatalf("path: got %q, want %q", got, text)
		}
		if got := u.Query(); len(got) != 1 || got.Get("q") != text {
			t.Fatalf("query: got %q, want %q", got, text)
		}
	})
}
