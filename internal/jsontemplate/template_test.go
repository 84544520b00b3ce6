package jsontemplate

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"text/template"
)

var limits = Limits{Bytes: 1 << 16, Steps: 1 << 12}

func decode(t testing.TB, text string) Data {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var d Data
	if err := dec.Decode(&d.Args); err != nil {
		t.Fatal(err)
	}
	return d
}

var ownFuncs = map[string]Func{"own": func(v any) (string, error) {
	if v == nil {
		return "", errors.New("own error")
	}
	b, err := json.Marshal(v)
	return string(b), err
}}

// oracle runs a template by text/template.
func oracle(text string, data Data) (string, error) {
	t, err := template.New("").Funcs(template.FuncMap{"own": (func(any) (string, error))(ownFuncs["own"])}).Parse(text)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, data)
	return b.String(), err
}

// same checks that a template means the same here and in text/template.
func same(t *testing.T, text string, data Data) {
	t.Helper()
	want, wantErr := oracle(text, data)
	got := ""
	tmpl, err := Parse(text, ownFuncs)
	if err == nil {
		got, err = tmpl.Execute(data, limits)
	}
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%s over %v:\ngot error  %v\nwant error %v", text, data.Args, err, wantErr)
	}
	if err == nil && got != want {
		t.Fatalf("%s over %v:\ngot  %q\nwant %q", text, data.Args, got, want)
	}
}

const sample = `{"s":"a<b>&\"'=\u0000\u2028é","t":true,"f":false,"z":null,"n":1,"big":9007199254740993,"d":1.50,"e":1e3,"zero":0,
	"neg":-3,"o":{"b":{"c":"deep"},"a":[1,2],"z":null,"":"empty"},"l":["x",null,{"k":"v"},[1,[2]]],"none":[],"void":{},"empty":"","five":"hello"}`

// words are operands that conditions and functions are tried with.
var words = []string{"nil", "true", "1", "-2", "0x1e", "-0x1e", "1.5", "1e3", "'a'", "'.'", "2i", "0i", `"1"`, "`raw`", ".", ".Args", "$", ".Args.s", ".Args.z",
	".Args.missing", ".Args.missing.x.y", ".Args.z.x", "(.Args.z).x", ".Args.n", ".Args.d", ".Args.zero", ".Args.o", ".Args.o.b.c", ".Args.l", ".Args.none", ".Args.void",
	".Args.empty", ".Args.n.Int64", ".Args.d.Int64", ".Args.d.Float64", ".Args.n.String", ".Args.n.Other", ".Args.n.String.x", "(index .Args.l 1)", "(index .Args.s 0)", "(index .Args.l 2).k",
	"(len .Args.l)", "(slice .Args.big 0 2)", "(print)", "print", "println", "html", "html.x", "(own .Args.n)", "own", ".Env", "99999999999999999999", "9223372036854775808"}

func TestWordsAsTextTemplate(t *testing.T) {
	data := decode(t, sample)
	for _, a := range words {
		same(t, "{{"+a+"}}", data)
		same(t, "{{if "+a+"}}yes{{else}}no{{end}}", data)
		same(t, "{{with "+a+"}}[{{.}}]{{else}}no{{end}}", data)
		same(t, "{{with $x := "+a+"}}[{{$x}}{{.}}]{{else}}no{{$x}}{{end}}", data)
		same(t, "{{range "+strings.ReplaceAll(a, "1e3", "2")+"}}[{{.}}]{{else}}none{{end}}", data)
		same(t, "{{range $e := "+a+"}}[{{$e}}]{{else}}none{{end}}", data)
		same(t, "{{range $i, $e := "+a+"}}[{{$i}}={{$e}}]{{else}}none{{$e}}{{end}}", data)
		same(t, "{{$x := 0}}{{$y := 0}}{{range $x, $y = "+a+"}}[{{$x}}={{$y}}]{{end}}{{$x}}{{$y}}", data)
		same(t, "{{$x := 0}}{{range $x = "+a+"}}[{{$x}}]{{end}}{{$x}}", data)
		same(t, `{{printf "%v|%T|%q" `+strings.Repeat(a+" ", 3)+`}}`, data)
		same(t, "{{"+a+" 1}}", data)
		same(t, "{{1 | "+a+"}}", data)
		same(t, "{{("+a+").x}}", data)
		same(t, "{{("+a+")}}", data)
		same(t, "{{("+a+") 2}}", data)
		same(t, "{{$x := "+a+"}}{{$x.k}}", data)
		for _, f := range append(builtinNames(), "own") {
			same(t, "{{"+f+" "+a+"}}", data)
			same(t, "{{"+a+" | "+f+"}}", data)
		}
	}
}

func TestPairsAsTextTemplate(t *testing.T) {
	data := decode(t, sample)
	for _, a := range words {
		for _, b := range words {
			for _, f := range []string{"and", "or", "index", "slice", "eq", "ne", "lt", "le", "gt", "ge", "printf", "own"} {
				same(t, "{{"+f+" "+a+" "+b+"}}", data)
				same(t, "{{"+b+" | "+f+" "+a+"}}", data)
			}
		}
	}
}

var constructs = []string{
	"", "text", "{{/* comment */}}", "a {{- 1 -}} b",
	"{{$x := 1}}{{if true}}{{$x = 2}}{{end}}{{$x}}", "{{$x := 1}}{{if true}}{{$x := 2}}{{$x}}{{end}}{{$x}}", "{{$x := 1}}{{$x := 2}}{{$x}}",
	"{{if .Args.f}}1{{else if .Args.t}}2{{else}}3{{end}}", "{{with .Args.z}}1{{else with .Args.s}}{{.}}{{else}}3{{end}}",
	"{{range .Args.l}}[{{.k}}]{{end}}", "{{range .Args.o}}[{{.}}]{{end}}", "{{range $k, $v := .Args.o}}{{$k}}:{{$v}};{{end}}{{range $k, $v := .Args.none}}x{{else}}none{{end}}",
	"{{range 3}}{{.}}{{end}}", "{{range $i := 3}}{{$i}}{{end}}", "{{range .Args.n.Int64}}{{printf \"%T\" .}}{{end}}", "{{range (index .Args.five 0)}}{{printf \"%T\" .}}{{end}}",
	"{{range $v := .Args.l}}{{$v.k}}{{end}}", "{{range .Args.l}}{{$.Args.n}}{{end}}",
	"{{and false ($x := 1)}}{{$x}}", "{{and true ($x := 1)}}{{$x}}", "{{and false ($x := 1)}}{{if true}}{{$x = 1}}{{end}}", "{{and false ($x := .Args.l)}}{{range $x = .Args.l}}{{end}}",
	"{{$ := 2}}{{$}}", "{{$ = 2}}{{$}}", "{{($x := 1)}}{{$x}}", "{{range ($x := .Args.l)}}{{$x}}{{end}}",
	"{{or .Args.missing .Args.z nil .Args.s}}", "{{and .Args.s .Args.t .Args.n}}", "{{or .Args.s .Env}}", "{{and .Args.f .Env}}", "{{.Args.t | and .Args.n .Args.s}}", "{{.Args.missing | or nil}}",
	"{{eq .Args.five \"a\" \"hello\"}}", "{{eq .Args.five \"hello\" 1}}", "{{eq .Args.five 1 \"hello\"}}", "{{eq 1 2 3 1}}", "{{eq nil nil}}", "{{eq .Args nil}}", "{{eq . nil}}", "{{eq . .}}", "{{eq 1}}", "{{eq}}", "{{ne 1 1 1}}",
	"{{index .Args \"o\" \"b\" \"c\"}}", "{{index .Args.l 3 1 0}}", "{{index .Args.l 4}}", "{{index .Args.l -1}}", "{{index .Args.five 5}}", "{{index .Args.l 1 0}}", "{{index}}", "{{index .Args.o \"missing\"}}", "{{(index .Args.o \"missing\").x}}",
	"{{slice .Args.five}}", "{{slice .Args.five 1}}", "{{slice .Args.five 1 3}}", "{{slice .Args.five 1 3 4}}", "{{slice .Args.l 1 2}}", "{{slice .Args.l 0 1 2}}", "{{slice .Args.l 2 1}}", "{{slice .Args.l 0 2 1}}", "{{slice .Args.l 0 100}}",
	"{{slice .Args.l 1 2 3 4}}", "{{slice .Args.five -1}}", "{{len (slice .Args.l 0 4)}}", "{{slice (slice .Args.l 0 1) 0 3}}", "{{slice (slice .Args.l 0 1 1) 0 3}}", "{{(slice .Args.big 0 3).Int64}}", "{{(slice .Args.neg 0 1).Int64}}",
	"{{print 1 2 \"a\" \"b\" 3}}", "{{println 1 .Args.l}}", "{{html 1 2 .Args.z \"<\"}}", "{{js \"</script>\" .Args.s}}", "{{urlquery \"a b\" 1 2}}", "{{printf \"%5.2f %s %d\" 1.5 .Args.s 3}}", "{{printf \"%s\"}}", "{{\"%s!\" | printf}}", "{{.Args.s | printf \"%s\" | len}}",
	"{{printf \"%!\" 1}}", "{{printf \"%#v\" .}}", "{{printf \"%v\" .Args.l}}", "{{call .Args.s}}", "{{call nil}}", "{{call print}}", "{{.Args.s.x}}", "{{.Args.n.Int64.x}}", "{{.Args.l.x}}", "{{.Args.missing 1}}", "{{.Args.o.b 1}}", "{{.Args.missing.x 1}}",
	"{{own .Args.l}}", "{{own nil}}", "{{.Args.l | own}}", "{{own 1 2}}", "{{own 2i}}", "{{not .Args.zero}}", "{{not}}", "{{not 1 2}}", "{{lt 1 2}}", "{{lt 'a' (index .Args.five 0)}}", "{{lt .Args.n.Int64 2}}", "{{le 1.5 1.5}}", "{{ge true true}}", "{{gt 1i 1i}}", "{{gt \"b\" .Args.n}}",
	"{{undefined}}", "{{$undefined}}", "{{if}}", "{{if 1}}", "{{end}}", "{{.Args.}}", "{{nil}}", "{{nil.x}}", "{{1.x}}", "{{\"a\".x}}", "{{true.x}}", "{{print.x}}", "{{and.x}}", "{{index.x}}", "{{println.x}}", "{{1 | 2}}",
	"{{'x'}}", "{{0b11}}", "{{1_000}}", "{{0x1p4}}", "{{0X1F}}", "{{+5}}", "{{-5}}", "{{1+2i}}", "{{1e400}}",
}

func TestConstructsAsTextTemplate(t *testing.T) {
	for _, data := range []Data{decode(t, sample), {}, decode(t, "{}")} {
		for _, text := range constructs {
			same(t, text, data)
		}
	}
}

// plain is whether a template has no action that is refused here.
func plain(text string) bool {
	for _, word := range []string{"define", "block", "template", "break", "continue"} {
		if strings.Contains(text, word) {
			return false
		}
	}
	return true
}

func FuzzAsTextTemplate(f *testing.F) {
	for _, text := range constructs {
		f.Add(text, sample)
	}
	for _, w := range words {
		f.Add("{{range $i, $e := .Args.l}}{{if or $i "+w+"}}{{print $e "+w+"}}{{else}}{{$i}}{{end}}{{end}}", `{"l":[1,"a",null]}`)
	}
	f.Fuzz(func(t *testing.T, text, args string) {
		dec := json.NewDecoder(strings.NewReader(args))
		dec.UseNumber()
		var data Data
		if !plain(text) || dec.Decode(&data.Args) != nil {
			return
		}
		tmpl, err := Parse(text, ownFuncs)
		if err == nil {
			_, err = tmpl.Execute(data, limits)
		}
		if err != nil && (strings.Contains(err.Error(), "more than 65536 bytes") || strings.Contains(err.Error(), "more than 4096 steps")) {
			return
		}
		same(t, text, data)
	})
}

func TestRefused(t *testing.T) {
	data := decode(t, sample)
	for text, want := range map[string]string{
		`{{define "x"}}y{{end}}`:                                 "define and block are not available",
		`{{block "x" .}}y{{end}}`:                                "define and block are not available",
		`{{template "x"}}`:                                       "not available",
		`{{range .Args.l}}{{break}}{{end}}`:                      "not available",
		`{{range .Args.l}}{{continue}}{{end}}`:                   "not available",
		"line\n{{.Env}}":                                         `2:2: at <.Env>: there is no .Env: these templates see the arguments as .Args alone`,
		`{{if eq .Args.n 1}}{{end}}`:                             `compared as text`,
		`{{.Args.z.x}}`:                                          "nothing has no field x",
		`{{len .Args.n.Int64}}`:                                  "error calling len: a number has no length",
		`{{own nil}}`:                                            "own error",
		`{{range 100000}}{{end}}`:                                "more than 4096 steps",
		`{{range 4000}}{{print}}{{end}}`:                         "more than 4096 steps",
		`{{range 2000}}{{printf "%50d" 1}}{{end}}`:               "more than 65536 bytes",
		`{{$x := "a"}}{{range 1000}}{{$x = print $x $x}}{{end}}`: "print made more than 65536 bytes",
	} {
		tmpl, err := Parse(text, ownFuncs)
		if err == nil {
			_, err = tmpl.Execute(data, limits)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// TestNoValueInErrors checks that an error names types and places and shows no
// argument.
func TestNoValueInErrors(t *testing.T) {
	data := Data{Args: map[string]any{"s": "secret", "n": json.Number("4711.5"), "l": []any{"secret", json.Number("4711")}}}
	for _, text := range []string{"{{.Args.s.x}}", "{{range .Args.s}}{{end}}", "{{.Args.n.Int64}}", "{{eq .Args.s 1}}", "{{eq .Args.l .Args.l}}", "{{index .Args.l .Args.s}}",
		"{{slice .Args.s .Args.n}}", "{{printf .Args.l}}", "{{call .Args.s}}", "{{len true | eq .Args.s}}"} {
		tmpl, err := Parse(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = tmpl.Execute(data, limits)
		if err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "4711") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
