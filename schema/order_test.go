package schema_test

import (
	"encoding/json"
	"testing"

	"github.com/toolcrib/toolcrib/schema"
)

// The order of members, the spelling of their keys and the space around them
// make no difference.
func TestMembersInEveryOrder(t *testing.T) {
	s, err := schema.Compile(json.RawMessage(`{"type":"object","additionalProperties":false,"required":["a","late"],
		"properties":{"a":{"type":"integer"},"ab":{"type":"string"},"q\"\\":{"type":"integer"},"é":{"type":"integer"},"":{"type":"integer"}},
		"minProperties":2}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	closed, err := schema.Compile(json.RawMessage(`{"properties":{"a":{"type":"integer"},"b":{"maximum":1}},"patternProperties":{"^a":{"minimum":2}},"propertyNames":{"maxLength":1}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		s    *schema.Schema
		doc  string
		want bool
	}{
		{closed, `{"a":2,"b":1}`, true},
		{closed, `{"a":1,"b":1}`, false},
		{closed, `{"b":2,"a":2}`, false},
		{closed, `{"a":2,"b":1,"cc":1}`, false},
		{s, `{"a":1}`, false},
		{s, `{"a":1,"late":1}`, false}, // required, and not among those allowed
		{s, `{"a":1,"ab":2}`, false},
		{s, `{"a":1 "ab":"x"}`, false},
		{s, `{"a" 1}`, false},
		{s, `{"a"`, false},
		{s, `{"a`, false},
	} {
		if err := test.s.Check(json.RawMessage(test.doc)); (err == nil) != test.want {
			t.Errorf("%s: %v", test.doc, err)
		}
	}
	open, err := schema.Compile(json.RawMessage(`{"type":"object","required":["late","a"],
		"properties":{"a":{"type":"integer"},"ab":{"type":"string"},"q\"\\":{"type":"integer"},"é":{"type":"integer"},"":{"type":"integer"}}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	for doc, want := range map[string]bool{
		`{"a":1,"ab":"x","q\"\\":1,"é":1,"":1,"late":null}`:                true,
		`{"":1,"é":1,"q\"\\":1,"ab":"x","a":1,"late":null}`:                true,
		`{ "a" : 1 , "ab" : "x" , "q\u0022\u005c" : 1 , "late" : true }`:   true,
		`{"\u0061":1,"a\u0062":"x","\u00e9":1,"late":0}`:                   true,
		`{"a":1,"ab":"x","a":1,"late":0}`:                                  false, // twice
		`{"a":1,"\u0061":1,"late":0}`:                                      false,
		`{"a":1,"ab":"x","ab":"x","late":0}`:                               false,
		`{"a":1,"ab":1,"late":0}`:                                          false,
		`{"a":1,"ab":"x","q\"\\":"1","late":0}`:                            false,
		`{"a":1,"ab":"x","q\"\\":1,"é":"","late":0}`:                       false,
		`{"a":1,"ab":"x","q\"\\":1,"é":1,"":"","late":0}`:                  false,
		`{"a":1,"late":0,"ab":"x","late":0}`:                               false,
		`{"a":1,"abc":1,"ab":"x","late":0}`:                                true,
		`{"a":1,"ab":"x","q\"\\":1,"é":1,"":1,"x":1,"y":[{}],"late":[{}]}`: true,
	} {
		if err := open.Check(json.RawMessage(doc)); (err == nil) != want {
			t.Errorf("%s: %v", doc, err)
		}
	}
}
