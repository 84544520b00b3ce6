package yamldoc_test

import (
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/internal/yamldoc"
)

type document struct {
	Name string `yaml:"name"`
	List []any  `yaml:"list"`
}

func decode(text string, strict bool) (document, error) {
	var d document
	err := (&yamldoc.Doc{File: "d.yaml", Data: []byte(text)}).Decode(&d, strict)
	return d, err
}

func TestDecodeRefuses(t *testing.T) {
	bomb := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for _, pair := range []string{"ba", "cb", "dc", "ed", "fe", "gf"} {
		to, from := pair[:1], pair[1:]
		bomb += to + ": &" + to + " [" + strings.Repeat("*"+from+", ", 9) + "*" + from + "]\n"
	}
	for text, want := range map[string]string{
		"nam: x":                                `d.yaml:1:1: unknown field "nam"`,
		"name: x\nname: y":                      `d.yaml:2:1: mapping key "name" already defined`,
		"name: x\n---\nname: y":                 `d.yaml:3:5: a second document`,
		"name: [":                               `d.yaml:1:7: `,
		"list: &a [*a]":                         `d.yaml:1:12: the alias "a" names no anchor before it`,
		"list: *b":                              `d.yaml:1:8: the alias "b" names no anchor before it`,
		"list: " + strings.Repeat("[", 100_000): `the document holds more than`,
		"list: " + strings.Repeat("[", 1_000):   `nested more than 64 levels deep`,
		"list: " + strings.Repeat("x", 2<<20):   `the document has 2097158 bytes`,
		bomb:                                    `holds more than 100000 values`,
		strings.Repeat("- ", 200):               `nested more than 64 levels deep`,
	} {
		if _, err := decode(text, true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: got %v, want %s", text, err, want)
		}
	}
	if d, err := decode("name: &n x\nlist: [*n, *n]\nmore: 1", false); err != nil || len(d.List) != 2 || d.List[1] != "x" {
		t.Errorf("got %+v, %v", d, err)
	}
}

func TestPosition(t *testing.T) {
	d := &yamldoc.Doc{File: "d.yaml", Data: []byte("a:\n  b.c: [1, {d: x}]\n  b:\n    - e: &z {f: 1}\n    - *z\n")}
	for path, want := range map[string][2]int{
		"a": {2, 3}, "a.b.c[1].d": {2, 16}, "a.b[0].e.f": {4, 17}, "a.b[1].f": {4, 17}, "a.b[7]": {4, 5}, "": {1, 1}, "q": {1, 1}, "a.b[x]": {4, 5},
	} {
		if line, column := d.Position(path); line != want[0] || column != want[1] {
			t.Errorf("%q: got %d:%d, want %v", path, line, column, want)
		}
	}
	if f := d.Fault("a.b", strings.NewReader("").UnreadByte()); f.Line != 4 {
		t.Errorf("got %v", f)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("name: x\nlist: [a, &b {c: *d}]")
	f.Add("? a\n: - b\n---\n...")
	f.Fuzz(func(_ *testing.T, text string) {
		d := &yamldoc.Doc{File: "d.yaml", Data: []byte(text)}
		var into document
		if err := d.Decode(&into, false); err == nil {
			d.Position("list[0].c")
		}
	})
}
