package adapter_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/adapter"
	"github.com/toolcrib/toolcrib/schema"
	"github.com/toolcrib/toolcrib/tools"
)

// compiled declares one tool and returns its declaration and the provider's schema.
func compiled(t *testing.T, a *adapter.Adapter, raw string) (*adapter.Declarations, adapter.Declaration, *schema.Schema) {
	t.Helper()
	d := a.Declare([]tools.Tool{{Name: "t", Description: "d", ArgsSchema: json.RawMessage(raw)}})
	if len(d.Tools) != 1 {
		t.Fatalf("%s: %v", a.Name(), d.Quarantined)
	}
	written := strings.NewReplacer(`"STRING"`, `"string"`, `"INTEGER"`, `"integer"`, `"OBJECT"`, `"object"`, `"ARRAY"`, `"array"`, `"NULL"`, `"null"`, `"NUMBER"`, `"number"`, `"BOOLEAN"`, `"boolean"`).
		Replace(string(d.Tools[0].Schema))
	s, err := schema.Compile(json.RawMessage(written), nil)
	if err != nil {
		t.Fatalf("%s: %v: %s", a.Name(), err, written)
	}
	return d, d.Tools[0], s
}

// A union is declared by its branches also where it is reached by a reference or
// through allOf.
func TestUnionsBehindReferences(t *testing.T) {
	const union = `{"anyOf":[{"type":"string"},{"type":"integer"}]}`
	for name, raw := range map[string]string{
		"a reference":              `{"type":"object","properties":{"a":{"$ref":"#/$defs/U"}},"required":["a"],"$defs":{"U":` + union + `}}`,
		"a described reference":    `{"type":"object","properties":{"a":{"$ref":"#/$defs/U","description":"one"}},"required":["a"],"$defs":{"U":` + union + `}}`,
		"a reference to reference": `{"type":"object","properties":{"a":{"$ref":"#/$defs/V"}},"required":["a"],"$defs":{"U":` + union + `,"V":{"$ref":"#/$defs/U"}}}`,
		"allOf":                    `{"type":"object","properties":{"a":{"allOf":[` + union + `]}},"required":["a"]}`,
		"a branch that is a union": `{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#/$defs/U"},{"const":"three"}]}},"required":["a"],"$defs":{"U":` + union + `}}`,
		"a branch that is itself":  `{"type":"object","properties":{"a":{"$ref":"#/$defs/U"}},"required":["a"],"$defs":{"U":{"anyOf":[{"$ref":"#/$defs/U"},{"type":"string"},{"type":"integer"}]}}}`,
		"branches in a circle":     `{"type":"object","properties":{"a":{"$ref":"#/$defs/U"}},"required":["a"],"$defs":{"U":{"anyOf":[{"$ref":"#/$defs/V"},{"type":"string"}]},"V":{"anyOf":[{"$ref":"#/$defs/U"},{"type":"integer"}]}}}`,
	} {
		for _, a := range adapters(t) {
			d, decl, s := compiled(t, a, raw)
			for _, args := range []string{`{"a":"x"}`, `{"a":7}`} {
				if err := s.Check(json.RawMessage(args)); err != nil {
					t.Errorf("%s for %s: %s is refused: %v\n%s", name, a.Name(), args, err, decl.Schema)
				}
				if back, err := d.Args("t", json.RawMessage(args)); err != nil || string(back) != args {
					t.Errorf("%s for %s: %s became %s, %v", name, a.Name(), args, back, err)
				}
			}
			if err := s.Check(json.RawMessage(`{"a":{}}`)); err == nil {
				t.Errorf("%s for %s: an object is taken: %s", name, a.Name(), decl.Schema)
			}
			if len(d.Losses) > 0 {
				t.Errorf("%s for %s: %v", name, a.Name(), d.Losses)
			}
		}
	}
}

// Schemas that are left out, as too many apply to one value, are reported.
func TestMoreSchemasThanAreFollowed(t *testing.T) {
	raw := `{"type":"object","allOf":[` + repeated(200, ",", func(int) string { return `{"properties":{"a":{"type":"string"}},"additionalProperties":true}` }) + `]}`
	for _, a := range adapters(t)[6:] {
		if d, _, _ := compiled(t, a, raw); len(d.Losses) == 0 {
			t.Errorf("%s: no loss for what is left out", a.Name())
		}
	}
}
