package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	deep := strings.Repeat("[", 1000) + strings.Repeat("]", 1000)
	for name, tc := range map[string]struct {
		doc  string
		want string
	}{
		"object":             {` {"a":[1,-0.5e+3,true,false,null,"é\u00e9"]} `, ""},
		"deepest":            {deep, ""},
		"too deep":           {"[" + deep + "]", "malformed JSON at offset 1000: nested too deeply"},
		"depth bomb":         {strings.Repeat(`{"a":`, 1_000_000), "malformed JSON at offset 5000: nested too deeply"},
		"empty":              {"", "malformed JSON at offset 0: unexpected end of input"},
		"trailing":           {"1 2", "malformed JSON at offset 2: unexpected data after the value"},
		"leading zero":       {"01", "malformed JSON at offset 1: unexpected data after the value"},
		"bare minus":         {"-", "malformed JSON at offset 1: unexpected end of input"},
		"no fraction":        {"[1.]", "malformed JSON at offset 3: invalid number"},
		"control":            {"\"a\x01\"", "malformed JSON at offset 2: control character in a string"},
		"bad escape":         {`"\x"`, "malformed JSON at offset 2: invalid escape in a string"},
		"bad hex":            {`"\u00g0"`, "malformed JSON at offset 5: invalid escape in a string"},
		"cut string":         {`"abc`, "malformed JSON at offset 4: unexpected end of input"},
		"cut escape":         {`"abc\`, "malformed JSON at offset 5: unexpected end of input"},
		"cut literal":        {`tru`, "malformed JSON at offset 3: unexpected end of input"},
		"literal":            {`nulL`, "malformed JSON at offset 3: expected true, false or null"},
		"trailing comma":     {`[1,]`, "malformed JSON at offset 3: expected a value"},
		"object comma":       {`{"a":1,}`, "malformed JSON at offset 7: expected a string as object key"},
		"no colon":           {`{"a" 1}`, "malformed JSON at offset 5: expected ':' after an object key"},
		"no separator":       {`{"a":1 "b":2}`, "malformed JSON at offset 7: expected ',' or the closing bracket"},
		"invalid UTF-8":      {"[\"a\xff\"]", "malformed JSON at offset 3: invalid UTF-8"},
		"duplicate":          {`{"a":1,"a":2}`, `duplicate object key at offset 7 in object ""`},
		"escaped duplicate":  {`{"a":1,"\u0061":2}`, `duplicate object key at offset 7 in object ""`},
		"escaped twice":      {`{"\u0061":1,"\u0061":2}`, `duplicate object key at offset 12 in object ""`},
		"nested duplicate":   {`{"x":[0,{"a/b":{"k":1,"z":{"k":1},"k":3}}]}`, `duplicate object key at offset 34 in object "/x/1/a~1b"`},
		"same key elsewhere": {`{"a":{"a":{"a":[{"a":1},{"a":1}]}}}`, ""},
		"prefix is no dup":   {`{"a":1,"aa":2,"":3}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check([]byte(tc.doc), Options{})
			if got := fmt.Sprint(err); got != tc.want && !(err == nil && tc.want == "") {
				t.Errorf("got  %v\nwant %v", got, tc.want)
			}
			if err != nil && !errors.Is(err, ErrSyntax) && !errors.Is(err, ErrDuplicateKey) {
				t.Errorf("%T matches no sentinel", err)
			}
		})
	}
}

func TestDuplicatesInLargeObjects(t *testing.T) {
	var sb strings.Builder
	sb.WriteString(`{"nested":{`)
	for i := range 5000 {
		fmt.Fprintf(&sb, `"k%d":{"k%d":1},`, i, i)
	}
	body := sb.String()
	for _, last := range []string{`"k77"`, `"\u006b4999"`} {
		err := Check([]byte(body+last+`:0}}`), Options{})
		var dup *DuplicateKeyError
		if !errors.As(err, &dup) || dup.Offset != len(body) || dup.Path != "/nested" {
			t.Errorf("%s: got %v", last, err)
		}
	}
	if err := Check([]byte(body+`"k5000":0}}`), Options{}); err != nil {
		t.Error(err)
	}
}

func TestSet(t *testing.T) {
	for _, tc := range []struct{ obj, key, value, want string }{
		{`{}`, "a", `1`, `{"a":1}`},
		{` { } `, "a", `1`, ` { "a":1} `},
		{`{"b":1e400}`, "a", `"x"`, `{"b":1e400,"a":"x"}`},
		{`{ "b" : 1 }`, "a", `2`, `{ "b" : 1,"a":2 }`},
		{`{"a": 1 ,"b":2}`, "a", `{"c":3}`, `{"a": {"c":3} ,"b":2}`},
		{`{"\u0061":1}`, "a", `2`, `{"\u0061":2}`},
		{`{"<":1}`, "<&>\"", `2`, `{"<":1,"<&>\"":2}`},
	} {
		got, err := Set([]byte(tc.obj), tc.key, []byte(tc.value))
		if err != nil || string(got) != tc.want {
			t.Errorf("Set(%s, %s) = %s, %v; want %s", tc.obj, tc.key, got, err, tc.want)
		}
	}
	if _, err := Set([]byte(`[1]`), "a", []byte(`1`)); !errors.Is(err, ErrNotObject) {
		t.Errorf("array: %v", err)
	}
	if _, err := Set([]byte(`{}`), "a", []byte(`1,"b":2`)); !errors.Is(err, ErrSyntax) {
		t.Errorf("injected member: %v", err)
	}
	if _, err := Set([]byte(`{} {}`), "a", []byte(`1`)); !errors.Is(err, ErrSyntax) {
		t.Errorf("trailing data: %v", err)
	}
}

func TestSetAll(t *testing.T) {
	objects := []string{`{}`, `{ }`, `{"a":1}`, `{"b":{"a":1},"a":2}`, ` { "c" : "x" , "b":2 , "\u0061":3 } `, `{"a":1,"b":2,"a":3}`, `[1]`, `{"a":}`}
	keys := []string{"a", "b", "c", "d", "<"}
	for _, obj := range objects {
		for _, first := range keys {
			for _, second := range keys {
				for _, third := range keys {
					if first == second || second == third || first == third {
						continue
					}
					members := []Member{{first, []byte(`"1"`)}, {second, []byte(`{"x": 2}`)}, {third, []byte(`3`)}}
					want, wantErr := []byte(obj), error(nil)
					for _, m := range members {
						if want, wantErr = Set(want, m.Key, m.Value); wantErr != nil {
							break
						}
					}
					got, err := SetAll([]byte(obj), members...)
					if string(got) != string(want) || (err == nil) != (wantErr == nil) {
						t.Errorf("SetAll(%s, %s, %s, %s) = %s, %v; one after the other %s, %v", obj, first, second, third, got, err, want, wantErr)
					}
				}
			}
		}
	}
	if got, err := SetAll([]byte(`{"a":1}`)); err != nil || string(got) != `{"a":1}` {
		t.Errorf("no members: %s, %v", got, err)
	}
	if _, err := SetAll([]byte(`{}`), Member{"a", []byte(`1`)}, Member{"b", []byte(`1,"c":2`)}); !errors.Is(err, ErrSyntax) {
		t.Errorf("injected member: %v", err)
	}
}

func TestDelete(t *testing.T) {
	for _, tc := range []struct{ obj, want string }{
		{`{"a":1}`, `{}`},
		{`{"a":1,"b":2}`, `{"b":2}`},
		{`{ "a" : 1 , "b":2 }`, `{ "b":2 }`},
		{`{"b":2,"a":1}`, `{"b":2}`},
		{`{"b":2, "a":1 ,"c":3}`, `{"b":2 ,"c":3}`},
		{`{"a":1,"a":2,"b":3,"a":4,"a":5,"c":6}`, `{"b":3,"c":6}`},
		{`{"a":1,"\u0061":2}`, `{}`},
		{`{"b":{"a":1}}`, `{"b":{"a":1}}`},
	} {
		got, err := Delete([]byte(tc.obj), "a")
		if err != nil || string(got) != tc.want {
			t.Errorf("Delete(%s) = %s, %v; want %s", tc.obj, got, err, tc.want)
		}
	}
	if _, err := Delete([]byte(`null`), "a"); !errors.Is(err, ErrNotObject) {
		t.Errorf("null: %v", err)
	}
}

func TestGet(t *testing.T) {
	doc := []byte(` {"a": {"b" : [1, 2] }, "n":9007199254740993, "k":1, "\u006b":2}`)
	for _, tc := range []struct {
		want string
		path []string
	}{
		{`[1, 2]`, []string{"a", "b"}},
		{`9007199254740993`, []string{"n"}},
		{`2`, []string{"k"}},
		{``, []string{"a", "c"}},
		{``, []string{"n", "c"}},
		{string(doc), nil},
	} {
		got, ok := Get(doc, tc.path...)
		if string(got) != tc.want || ok != (tc.want != "") {
			t.Errorf("Get(%v) = %s, %v", tc.path, got, ok)
		}
	}
	if n := Len(doc); n != 4 {
		t.Errorf("Len = %d", n)
	}
}

func TestPointer(t *testing.T) {
	doc := []byte(`{"a":[{"x":"],}"},{"b/~":{"c":!}}]}`)
	at := bytes.IndexByte(doc, '!')
	if got := PointerTo(doc, at); got != "/a/1/b~1~0/c" {
		t.Errorf("PointerTo = %s", got)
	}
	if got := PointerAt(doc, at); got != "/a/1/b~1~0" {
		t.Errorf("PointerAt = %s", got)
	}
	long := []byte(`{"` + strings.Repeat("é", 1000) + `":[[` + strings.Repeat("[", 500))
	if got := PointerTo(long, len(long)); len(got) > 270 {
		t.Errorf("unbounded pointer of %d bytes", len(got))
	}
}

func TestAllocations(t *testing.T) {
	doc := []byte(`{"city":"Z\u00fcrich","days":3,"nested":{"a":[1,2,3],"b":{"c":true}},"x":null}`)
	for name, f := range map[string]func(){
		"Check": func() {
			if Check(doc, Options{}) != nil {
				t.Fatal("refused")
			}
		},
		"Valid": func() { Valid(doc) },
		"Get":   func() { Get(doc, "nested", "b", "c") },
		"walk": func() {
			it := Object(doc)
			for it.Next() {
				_ = it.KeyIs("days")
			}
		},
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 && !raceEnabled {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

var seeds = []string{
	`{"a":[1,-0.5e+3,true,false,null,"\ud83d\ude00\ud800é"]}`, ` [ ] `, `{"a":1,"a":2}`, `"\u2028"`, "\"\xff\"",
	`[1.`, `{"a"`, `-`, `1e`, `nul`, "\"\x1f\"", `{"":{}}`, `[[[`,
}

func FuzzCheck(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		if bytes.Count(doc, []byte("[")) < DefaultMaxDepth && bytes.Count(doc, []byte("{")) < DefaultMaxDepth {
			if got, want := Valid(doc), json.Valid(doc); got != want {
				t.Fatalf("Valid(%q) = %v, want %v", doc, got, want)
			}
		}
		err := Check(doc, Options{})
		if json.Valid(doc) && (err == nil || errors.Is(err, ErrDuplicateKey)) {
			if has := hasDuplicate(json.NewDecoder(bytes.NewReader(doc))); has != (err != nil) {
				t.Fatalf("Check(%q) = %v, duplicates %v", doc, err, has)
			}
		}
		var want bytes.Buffer
		got, compactErr := Compact(doc)
		if wantErr := json.Compact(&want, doc); compactErr == nil && (wantErr != nil || want.String() != string(got)) {
			t.Fatalf("Compact(%q) = %q, want %q, %v", doc, got, want.String(), wantErr)
		}
		var text string
		if got, ok := Unquote(doc); ok {
			if err := json.Unmarshal(doc, &text); err != nil || got != text {
				t.Fatalf("Unquote(%q) = %q, want %q, %v", doc, got, text, err)
			}
		}
		for i := 0; i <= len(doc) && err == nil; i++ {
			PointerTo(doc, i)
		}
	})
}

// hasDuplicate reads one value token by token.
func hasDuplicate(dec *json.Decoder) bool {
	tok, _ := dec.Token()
	open, ok := tok.(json.Delim)
	if !ok {
		return false
	}
	dup, seen := false, map[string]bool{}
	for dec.More() {
		if open == '{' {
			key, _ := dec.Token()
			dup = dup || seen[key.(string)]
			seen[key.(string)] = true
		}
		dup = hasDuplicate(dec) || dup
	}
	_, _ = dec.Token()
	return dup
}

func FuzzEdit(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":[2]}`), "a")
	f.Add([]byte(`{ "\u0061" : {} , "a":1 , "x":"y" }`), "a")
	f.Fuzz(func(t *testing.T, obj []byte, key string) {
		var before map[string]json.RawMessage
		if json.Unmarshal(obj, &before) != nil || before == nil || Check(obj, Options{AllowDuplicates: true}) != nil {
			return
		}
		set, err := Set(obj, key, []byte(`"new"`))
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := Get(set, string([]rune(key))); !ok || string(got) != `"new"` {
			t.Fatalf("Set(%q, %q) = %q", obj, key, set)
		}
		cut, err := Delete(set, string([]rune(key)))
		if err != nil {
			t.Fatal(err)
		}
		var after map[string]json.RawMessage
		if err := json.Unmarshal(cut, &after); err != nil {
			t.Fatalf("Delete(%q) = %q: %v", set, cut, err)
		}
		delete(before, string([]rune(key)))
		if fmt.Sprint(before) != fmt.Sprint(after) {
			t.Fatalf("%q became %q", obj, cut)
		}
	})
}

func FuzzQuote(f *testing.F) {
	f.Add("a\u2028<&>\"\\\x00\x1f\x7f\xff é😀\b\f\n\r\t")
	f.Fuzz(func(t *testing.T, s string) {
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(s); err != nil {
			t.Fatal(err)
		}
		got := Quote(s)
		var a, b string
		if json.Unmarshal(got, &a) != nil || json.Unmarshal(want.Bytes(), &b) != nil || a != b {
			t.Fatalf("Quote(%q) = %s, want %s", s, got, want.String())
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	doc := []byte(`{"city":"Zurich","days":3,"units":"metric","include":["wind","rain","uv"],"position":{"lat":47.3769,"lon":8.5417},"verbose":true,"note":"for a walk at noon"}`)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if err := Check(doc, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
