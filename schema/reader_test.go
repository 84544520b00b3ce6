package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawing writes nodes down so that two graphs which check the same have the
// same text.
type drawing struct {
	sb   strings.Builder
	seen map[*node]int
}

func draw(n *node) string {
	d := drawing{seen: map[*node]int{}}
	d.node(n)
	return d.sb.String()
}

func (d *drawing) node(n *node) {
	switch {
	case n == nil || n.any:
		d.sb.WriteString("any ")
		return
	case n.never:
		d.sb.WriteString("never ")
		return
	}
	if id, ok := d.seen[n]; ok {
		fmt.Fprintf(&d.sb, "#%d ", id)
		return
	}
	d.seen[n] = len(d.seen)
	fmt.Fprintf(&d.sb, "(types %d ", n.types)
	if n.enum != nil {
		e := *n.enum
		fmt.Fprintf(&d.sb, "enum %v ", e)
	}
	if n.str != nil {
		fmt.Fprintf(&d.sb, "str %d %d ", n.str.minLength, n.str.maxLength)
		if n.str.pattern != nil {
			d.sb.WriteString(n.str.pattern.source + " ")
		}
	}
	if n.num != nil {
		for _, b := range []*bound{n.num.minimum, n.num.maximum, n.num.above, n.num.below} {
			if b != nil {
				fmt.Fprintf(&d.sb, "bound %+v ", *b)
			}
			d.sb.WriteString("; ")
		}
		if n.num.multipleOf != nil {
			fmt.Fprintf(&d.sb, "multiple %s %d %s ", n.num.multipleOf.rat, n.num.multipleOf.small, n.num.multipleOf.text)
		}
	}
	d.array(n.arr)
	d.object(n.obj)
	d.inPlace(n.in)
	d.sb.WriteString(") ")
}

func (d *drawing) list(name string, nodes ...*node) {
	d.sb.WriteString(name + "[")
	for _, n := range nodes {
		d.node(n)
	}
	d.sb.WriteString("] ")
}

func (d *drawing) array(a *arrayRules) {
	if a == nil {
		return
	}
	fmt.Fprintf(&d.sb, "arr %d %d %v ", a.minItems, a.maxItems, a.unique)
	d.list("prefix", a.prefix...)
	d.list("items", a.items)
}

func (d *drawing) object(o *objectRules) {
	if o == nil {
		return
	}
	fmt.Fprintf(&d.sb, "obj %d %d ", o.minProps, o.maxProps)
	required := map[string]bool{}
	for _, i := range o.required {
		required[o.props.list[i].name] = true
	}
	props := slices.Clone(o.props.list)
	slices.SortFunc(props, func(a, b prop) int { return strings.Compare(a.name, b.name) })
	for _, p := range props {
		if o.props.find([]byte(p.name)) < 0 {
			d.sb.WriteString("LOST ")
		}
		fmt.Fprintf(&d.sb, "%q %v %v ", p.name, p.declared, required[p.name])
		d.node(p.node)
	}
	for _, p := range o.patterns {
		d.list(p.re.source, p.node)
	}
	d.list("names", o.names)
	d.list("additional", o.additional)
}

func (d *drawing) inPlace(in *inPlace) {
	if in == nil {
		return
	}
	fmt.Fprintf(&d.sb, "cyclic %v format %v composite %v ", in.cyclic, in.format != nil, in.composite)
	d.list("ref", in.ref)
	d.list("allOf", in.allOf...)
	d.list("anyOf", in.anyOf...)
	d.list("oneOf", in.oneOf...)
	d.list("not", in.not)
	fmt.Fprintf(&d.sb, "if %v %v %v ", in.cond != nil, in.then != nil, in.orr != nil)
	d.list("if", in.cond, in.then, in.orr)
}

// misread says how what readCommon makes of a schema differs from what a linker
// makes of it, and whether the oracle takes it.
func misread(raw []byte, opts *Options) (read bool, diff string) {
	if checkText(raw) != nil {
		return false, ""
	}
	root, ok := readCommon(raw, opts)
	if v := survey(raw, opts); v == common && !ok || v == unusual && ok {
		return ok, fmt.Sprintf("schema %s\nis read: %v, but survey says %d", raw, ok, v)
	}
	if !ok {
		return false, ""
	}
	if _, err := oracle(raw, opts); err != nil {
		return true, fmt.Sprintf("schema %s\nwas read, but %v", raw, err)
	}
	linked, err := nodesOfAny(raw, opts)
	if err != nil {
		return true, fmt.Sprintf("schema %s\nwas read, but cannot be linked: %v", raw, err)
	}
	n, err := translate(&linkedGraph{root: root})
	if err != nil {
		return true, err.Error()
	}
	if a, b := draw(n), draw(linked); a != b {
		return true, fmt.Sprintf("schema %s\nread: %s\nlinked: %s", raw, a, b)
	}
	return true, ""
}

// readable are schemas that need no linker.
var readable = []string{
	`true`, `false`, `{}`, benchObject, `{"properties":{"schema":{"type":"string"}}}`,
	`{"$schema":"http://json-schema.org/draft-07/schema#","type":["string","null"],"enum":["a","b"],"x-note":[1]}`,
	`{"$schema":"https://json-schema.org/draft/2020-12/schema","patternProperties":{"^a":{"minLength":1}},"propertyNames":{"pattern":"^."}}`,
	`{"$defs":{"n":{"properties":{"next":{"$ref":"#/$defs/n"},"v":{"const":{"a":[1.0]}}}}},"$ref":"#/$defs/n","required":["v"]}`,
	`{"$schema":"http://json-schema.org/draft-07/schema","definitions":{"n":{"type":"string"}},"items":{"$ref":"#/definitions/n","maxLength":1}}`,
	`{"items":{"$ref":"#"},"anyOf":[{"type":"array"},{"not":{}}],"if":{"minItems":1},"then":{"maxItems":3},"else":false}`,
	`{"then":{"type":"string"},"default":{"type":7},"examples":[{"type":7}],"multipleOf":0.5,"exclusiveMinimum":-1e3}`,
	`{"properties":{"$ref":{"type":"string"},"type":{"enum":[]}},"definitions":{"unused":{"maximum":0}},"minimum":0}`,
}

const benchObject = `{"type":"object","properties":{"id":{"type":"string","minLength":1},"list":{"type":"array","items":{"type":"integer"}}},"required":["id"],"additionalProperties":false}`

// unreadable are schemas that need a linker, most because they are
// not valid.
var unreadable = []string{
	`1`, `null`, `[]`, `{"type":7}`, `{"type":"text"}`, `{"type":[]}`, `{"type":["string","string"]}`, `{"enum":1}`, `{"required":["a","a"]}`,
	`{"required":[1]}`, `{"minimum":"1"}`, `{"multipleOf":0}`, `{"minLength":-1}`, `{"minLength":1.5}`, `{"minLength":1.0}`, `{"pattern":"("}`,
	`{"patternProperties":{"(":{}}}`, `{"properties":[]}`, `{"properties":{"a":1}}`, `{"items":[{}]}`, `{"allOf":[]}`, `{"allOf":{}}`, `{"not":1}`,
	`{"title":1}`, `{"format":1}`, `{"examples":1}`, `{"deprecated":1}`, `{"uniqueItems":0}`, `{"$ref":"#/gone"}`, `{"$ref":"#/x","x":1}`,
	`{"$ref":"https://example.com/s"}`, `{"$id":"https://example.com/s"}`, `{"$anchor":"a"}`, `{"$dynamicRef":"#a"}`, `{"properties":{"a":{"$schema":"x"}}}`, `{"\u0024sch\u0065ma\u0022":1,"$\u0073chema":"x"}`, `{"\u0024schem\u0061":"http://json-schema.org/draft-04/schema#"}`,
	`{"$schema":"http://json-schema.org/draft-04/schema#"}`, `{"$schema":"https://example.com/own"}`, `{"contains":{}}`, `{"unevaluatedProperties":false}`,
	`{"$schema":"http://json-schema.org/draft-07/schema#","enum":[1,1.0]}`, `{"$schema":"http://json-schema.org/draft-07/schema#","enum":[]}`,
	`{"$schema":"http://json-schema.org/draft-07/schema#","$defs":{"a":{}}}`, `{"definitions":{"unused":{"type":7}}}`, `{"definitions":{"unused":{"$ref":"#/definitions/gone"}}}`, `{"then":{"type":7}}`,
}

func TestReader(t *testing.T) {
	for _, raw := range readable {
		switch read, diff := misread([]byte(raw), &Options{}); {
		case !read:
			t.Errorf("%s needs a linker", raw)
		case diff != "":
			t.Error(diff)
		}
	}
	for _, raw := range unreadable {
		if read, diff := misread([]byte(raw), &Options{}); read {
			t.Errorf("%s was read %s", raw, diff)
		}
	}
	for _, opts := range []Options{{AssertFormat: true}, {Draft: Draft4}, {Draft: Draft2019}, {Resources: map[string]json.RawMessage{"x:y": nil}}} {
		if read, _ := misread([]byte(`{}`), &opts); read {
			t.Errorf("read with %+v", opts)
		}
	}
}

// corpusEnv names a folder of tool lists of real MCP servers, as JSON.
const corpusEnv = "TOOLCRIB_CORPUS"

// TestReaderOnRealSchemas: the schemas of real servers are read like a linker
// reads them, and hardly one needs it.
func TestReaderOnRealSchemas(t *testing.T) {
	dir := os.Getenv(corpusEnv)
	if dir == "" {
		t.Skipf("left out: the schemas of real servers; set %s to a folder of dumped tool lists", corpusEnv)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no dumps in %s: %v", dir, err)
	}
	all, read := 0, 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range schemasIn(text) {
			ok, diff := misread(raw, &Options{})
			if all++; ok {
				read++
			} else if testing.Verbose() {
				t.Logf("%s: linker for %.300s", filepath.Base(file), raw)
			}
			if diff != "" {
				t.Error(diff)
			}
		}
	}
	if t.Logf("%d of %d schemas need no linker", read, all); read*100 < all*95 {
		t.Error("most schemas should not need it")
	}
}

// schemasIn finds the schemas of a dumped tool list, wherever they stand.
func schemasIn(text []byte) (found []json.RawMessage) {
	var members map[string]json.RawMessage
	var list []json.RawMessage
	if json.Unmarshal(text, &members) == nil {
		for _, key := range slices.Sorted(maps.Keys(members)) {
			if key == "inputSchema" || key == "outputSchema" {
				found = append(found, members[key])
			} else {
				found = append(found, schemasIn(members[key])...)
			}
		}
	} else if json.Unmarshal(text, &list) == nil {
		for _, v := range list {
			found = append(found, schemasIn(v)...)
		}
	}
	return found
}

// strange are members that make a schema invalid, or keep it from being read.
var strange = []string{
	`"type":7`, `"type":["string","x"]`, `"required":[1]`, `"enum":[1,1.0]`, `"minLength":-1`, `"minimum":null`, `"pattern":"("`, `"items":1`,
	`"title":{}`, `"$ref":"#/$defs/gone"`, `"$ref":"#/properties"`, `"$id":"x"`, `"$anchor":"r"`, `"id":"x"`, `"definitions":[]`, `"allOf":[1]`,
	`"x":1`, `"default":{"$ref":1}`, `"$comment":"c"`, `"const":{"$id":"x"}`, `"format":"date"`, `"multipleOf":0`,
}

// TestReaderAgrees compares the two on random schemas with something odd put
// into them.
func TestReaderAgrees(t *testing.T) { rapid.Check(t, checkReader) }

func checkReader(t *rapid.T) {
	draft := rapid.SampledFrom([]Draft{DraftDefault, Draft7}).Draw(t, "draft")
	defs := rapid.SampledFrom([]string{"$defs", "definitions"}).Draw(t, "defs")
	root := map[string]any{defs: map[string]any{"r": genSchema(1).Draw(t, "r"), "s": genSchema(1).Draw(t, "s")}}
	if body, ok := genSchema(2).Draw(t, "schema").(map[string]any); ok {
		maps.Copy(root, body)
	}
	raw := string(encode(root))
	raw = strings.ReplaceAll(raw, "#/$defs/", "#/"+defs+"/")
	if rapid.Bool().Draw(t, "odd") {
		places := strings.Count(raw, "{")
		at := 0
		for range rapid.IntRange(1, places).Draw(t, "place") {
			at += strings.Index(raw[at:], "{") + 1
		}
		odd := rapid.SampledFrom(strange).Draw(t, "strange")
		if rest := raw[at:]; strings.HasPrefix(rest, "}") {
			raw = raw[:at] + odd + rest
		} else {
			raw = raw[:at] + odd + "," + rest
		}
	}
	if _, diff := misread([]byte(raw), &Options{Draft: draft}); diff != "" {
		t.Fatal(diff)
	}
}

func FuzzReader(f *testing.F) {
	for _, raw := range slices.Concat(readable, unreadable) {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) > 2000 {
			return
		}
		if _, diff := misread(raw, &Options{}); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzReaderRandom(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkReader)) }
