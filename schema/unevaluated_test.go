package schema

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestUnevaluated(t *testing.T) {
	for _, tc := range []struct{ schema, doc, want string }{
		{`{"properties":{"a":{"type":"string"}},"unevaluatedProperties":false}`, `{"a":1,"b":2}`, "/a: expected string, got number; /b: no value is allowed here"},
		{`{"allOf":[{"properties":{"a":{}}}],"patternProperties":{"^x":{}},"unevaluatedProperties":{"type":"null"}}`, `{"a":1,"\u0078y":2,"b":null,"c":3}`, "/c: expected null, got number"},
		{`{"anyOf":[{"properties":{"a":{"const":1}},"required":["a"]},{"properties":{"b":{}}}],"unevaluatedProperties":false}`, `{"a":2,"b":1}`, "/a: no value is allowed here"},
		{`{"oneOf":[{"required":["a"],"properties":{"a":{}}},{"required":["b"],"properties":{"b":{}}}],"unevaluatedProperties":false}`, `{"c":1}`, "expected a match for exactly one of 2 alternatives, got none"},
		{`{"if":{"properties":{"k":{"const":1}}},"then":{"properties":{"a":{}}},"else":{"properties":{"b":{}}},"unevaluatedProperties":false}`, `{"k":2,"a":1,"b":1}`, "/k: no value is allowed here; /a: no value is allowed here"},
		{`{"dependentSchemas":{"a":{"properties":{"b":{}}}},"properties":{"a":{}},"unevaluatedProperties":false}`, `{"a":1,"b":1}`, ""},
		{`{"not":{"not":{"properties":{"a":{}}}},"unevaluatedProperties":false}`, `{"a":1}`, "/a: no value is allowed here"},
		{`{"$ref":"#/$defs/n","unevaluatedProperties":false,"$defs":{"n":{"properties":{"a":{}},"additionalProperties":{"type":"string"}}}}`, `{"a":1,"b":"x"}`, ""},
		{`{"prefixItems":[{}],"contains":{"type":"string"},"unevaluatedItems":{"type":"null"}}`, `[1,"a",null,2]`, "/3: expected null, got number"},
		{`{"$schema":"https://json-schema.org/draft/2019-09/schema","contains":{"type":"string"},"unevaluatedItems":false}`, `["a"]`, "/0: no value is allowed here"},
		{`{"$schema":"https://json-schema.org/draft/2019-09/schema","items":[{}],"unevaluatedItems":false}`, `[1]`, ""},
		{`{"anyOf":[{"$ref":"#"},{"properties":{"a":{}}}],"unevaluatedProperties":false}`, `{"a":1}`, ""},
		{`{"unevaluatedItems":false,"unevaluatedProperties":false}`, `"s"`, ""},
		{`{"type":"object","unevaluatedProperties":false}`, `[1]`, "expected object, got array"},
	} {
		s, err := Compile([]byte(tc.schema), nil)
		if err != nil {
			t.Errorf("%s: %v", tc.schema, err)
			continue
		}
		err = s.Check([]byte(tc.doc))
		if err == nil && tc.want != "" || err != nil && fmt.Sprint(err) != tc.want {
			t.Errorf("%s on %s:\ngot  %v\nwant %v", tc.schema, tc.doc, err, tc.want)
		}
		if diff := disagree([]byte(tc.schema), []byte(tc.doc), &Options{}); diff != "" {
			t.Error(diff)
		}
	}
	s, err := Compile([]byte(`{"unevaluatedProperties":false}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	var invalid *Error
	if err := s.Check([]byte(`{"a":1}`)); !errors.As(err, &invalid) || invalid.Violations[0].Keyword != "unevaluatedProperties" {
		t.Errorf("%v", err)
	}
}

// TestManyMembers: more of them than a set of evaluated ones holds inline.
func TestManyMembers(t *testing.T) {
	s, err := Compile([]byte(`{"patternProperties":{"^k":{}},"unevaluatedProperties":false}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	var doc strings.Builder
	doc.WriteString(`{"k":0`)
	for i := range 1000 {
		fmt.Fprintf(&doc, `,"k%d":1`, i)
	}
	if err := s.Check([]byte(doc.String() + "}")); err != nil {
		t.Error(err)
	}
	if err := s.Check([]byte(doc.String() + `,"x":1}`)); fmt.Sprint(err) != "/x: no value is allowed here" {
		t.Error(err)
	}
}

// TestUnevaluatedIsBounded feeds what multiplies: alternatives of alternatives,
// all with something left to look at.
func TestUnevaluatedIsBounded(t *testing.T) {
	defs := []string{`"n0":{"properties":{"z":{}}}`}
	for i := range 60 {
		defs = append(defs, fmt.Sprintf(`"n%d":{"anyOf":[{"$ref":"#/$defs/n%d"},{"$ref":"#/$defs/n%d"}],"unevaluatedProperties":{"not":{"const":7}}}`, i+1, i, i))
	}
	s, err := Compile([]byte(`{"$ref":"#/$defs/n60","$defs":{`+strings.Join(defs, ",")+`}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check([]byte(`{"a":1,"b":2}`)); !strings.Contains(fmt.Sprint(err), "bounded effort") {
		t.Error(err)
	}
}
