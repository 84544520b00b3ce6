package schema

import (
	"fmt"
	"strings"
	"testing"
)

// tree is the usual schema of a dynamic reference: strictTree says what the
// children of a tree are.
const (
	tree       = `"tree":{"$id":"http://x.test/tree","$dynamicAnchor":"node","type":"object","properties":{"data":true,"children":{"type":"array","items":{"$dynamicRef":"#node"}}}}`
	strictTree = `{"$id":"http://x.test/strict","$dynamicAnchor":"node","$ref":"tree","unevaluatedProperties":false,"$defs":{` + tree + `}}`
)

func TestDynamicReferences(t *testing.T) {
	for _, tc := range []struct{ schema, doc, want string }{
		{strictTree, `{"children":[{"daat":1}]}`, "/children/0/daat: no value is allowed here"},
		{strictTree, `{"children":[{"data":1,"children":[{}]}]}`, ""},
		{`{"$ref":"http://x.test/tree","$defs":{` + tree + `}}`, `{"children":[{"daat":1}]}`, ""},
		{`{"$dynamicRef":"#a","$defs":{"a":{"$anchor":"a","type":"string"}}}`, `1`, "expected string, got number"},
	} {
		s, err := Compile([]byte(tc.schema), nil)
		if err != nil {
			t.Fatalf("%s: %v", tc.schema, err)
		}
		if err := s.Check([]byte(tc.doc)); err == nil && tc.want != "" || err != nil && fmt.Sprint(err) != tc.want {
			t.Errorf("%s on %s: %v, want %s", tc.schema, tc.doc, err, tc.want)
		}
	}
}

// TestScopesAreBounded: resources that can be reached in any order give dynamic
// references as many meanings as there are orders.
func TestScopesAreBounded(t *testing.T) {
	const resources = 24
	var defs, all []string
	for i := range resources {
		all = append(all, fmt.Sprintf(`{"$ref":"http://x.test/%d"}`, i))
	}
	for i := range resources {
		defs = append(defs, fmt.Sprintf(`"%d":{"$id":"http://x.test/%d","$defs":{"a":{"$dynamicAnchor":"a%d"},"b":{"$dynamicAnchor":"b"}},"properties":{"x":{"anyOf":[%s]},"y":{"$dynamicRef":"#a%d"},"z":{"$dynamicRef":"#b"}}}`,
			i, i, i, strings.Join(all, ","), i))
	}
	_, err := Compile([]byte(`{"$defs":{`+strings.Join(defs, ",")+`},"anyOf":[`+strings.Join(all, ",")+`]}`), nil)
	if fmt.Sprint(err) != "invalid schema: dynamic references that make too many schemas of one" {
		t.Errorf("got %v", err)
	}
}

// TestManyPointers: a large schema whose references all lead far into it.
func TestManyPointers(t *testing.T) {
	var defs, all []string
	for i := range 4000 {
		defs = append(defs, fmt.Sprintf(`"d%d":{"type":"integer","description":%q}`, i, strings.Repeat("x", 200)))
		all = append(all, fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i))
	}
	for _, more := range []string{"", `"contains":{},`} {
		s, err := Compile([]byte(`{`+more+`"$defs":{`+strings.Join(defs, ",")+`},"allOf":[`+strings.Join(all, ",")+`]}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		if s.Check([]byte("1")) != nil || s.Check([]byte("1.5")) == nil {
			t.Error("wrong")
		}
	}
}

// TestManyCycles: nodes that lead to themselves and to the next, all on one
// value.
func TestManyCycles(t *testing.T) {
	const n = 5000
	var defs []string
	for i := range n {
		defs = append(defs, fmt.Sprintf(`"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i, i+1))
	}
	s, err := Compile([]byte(fmt.Sprintf(`{"$ref":"#/$defs/d0","$defs":{%s,"d%d":{"type":"null"}}}`, strings.Join(defs, ","), n)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check([]byte("[]")); err == nil {
		t.Error("passed")
	}
}

func TestCycles(t *testing.T) {
	for _, tc := range []struct{ schema, doc, want string }{
		{`{"$ref":"#"}`, `1`, "the schema refers to itself without end"},
		{`{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"$ref":"#"}}}`, `{"x":1}`, "the schema refers to itself without end"},
		{`{"anyOf":[{"type":"string"},{"$ref":"#"}]}`, `"a"`, ""},
		{`{"properties":{"a":{"$ref":"#"}},"type":"object"}`, `{"a":{"a":{}}}`, ""},
		{`{"$dynamicRef":"#a","$dynamicAnchor":"a"}`, `1`, "the schema refers to itself without end"},
	} {
		s, err := Compile([]byte(tc.schema), nil)
		if err != nil {
			t.Fatalf("%s: %v", tc.schema, err)
		}
		if err := s.Check([]byte(tc.doc)); err == nil && tc.want != "" || err != nil && fmt.Sprint(err) != tc.want {
			t.Errorf("%s on %s: %v, want %s", tc.schema, tc.doc, err, tc.want)
		}
	}
}
