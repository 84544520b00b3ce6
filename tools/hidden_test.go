package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/tools"
)

func TestHiddenArgumentsAreInNoPartOfTheSchema(t *testing.T) {
	for _, test := range []struct{ name, schema, shown string }{
		{"properties", `{"type":"object","properties":{"q":{},"tenant":{}},"required":["q","tenant"]}`, `{"type":"object","properties":{"q":{}},"required":["q"]}`},
		{"allOf", `{"allOf":[{"properties":{"tenant":{}},"required":["tenant"]},true,{"allOf":[{"required":["tenant","q"]}]}]}`,
			`{"allOf":[{"properties":{},"required":[]},true,{"allOf":[{"required":["q"]}]}]}`},
		{"examples", `{"properties":{"tenant":{}},"examples":[{"tenant":"acme"}],"default":{"tenant":"acme"}}`, `{"properties":{}}`},
		{"a deeper property of the name", `{"properties":{"tenant":{},"who":{"properties":{"tenant":{}},"required":["tenant"]}}}`,
			`{"properties":{"who":{"properties":{"tenant":{}},"required":["tenant"]}}}`},
		{"a definition that is not applied", `{"properties":{"tenant":{},"q":{"$ref":"#/$defs/a"}},"$defs":{"a":{"required":["tenant"]}}}`,
			`{"properties":{"q":{"$ref":"#/$defs/a"}},"$defs":{"a":{"required":["tenant"]}}}`},
		{"html stays", `{"allOf":[{"description":"a<b","required":["tenant"]}]}`, `{"allOf":[{"description":"a<b","required":[]}]}`},
	} {
		cat := newCatalog(t, nil, hiding(test.schema))
		d, _ := cat.Resolve("a")
		if got := string(d.Tool.ArgsSchema); got != test.shown {
			t.Errorf("%s: %s, want %s", test.name, got, test.shown)
		}
	}
}

func TestSchemaThatCannotHideAnArgumentIsRefused(t *testing.T) {
	for _, schema := range []string{
		`{"anyOf":[{"required":["tenant"]},{"required":["q"]}]}`,
		`{"oneOf":[{"properties":{"tenant":{}}}]}`,
		`{"if":{"required":["tenant"]},"then":{}}`,
		`{"not":{"required":["tenant"]}}`,
		`{"dependentRequired":{"q":["tenant"]}}`,
		`{"dependentRequired":{"tenant":["q"]}}`,
		`{"dependentSchemas":{"q":{"required":["tenant"]}}}`,
		`{"$ref":"#/$defs/a","$defs":{"a":{"properties":{"tenant":{}}}}}`,
		`{"allOf":[{"$ref":"#/$defs/a~1b"}],"$defs":{"a/b":{"required":["tenant"]}}}`,
		`{"$ref":"#"}`,
		`{"$ref":"#a","$defs":{"a":{"$anchor":"a"}}}`,
	} {
		err := tools.NewCatalog().Register(hiding(schema))
		if !errors.Is(err, tools.ErrToolInvalid) || !strings.Contains(err.Error(), `"tenant" cannot be hidden`) {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

func hiding(schema string) tools.ToolDescriptor {
	return tools.ToolDescriptor{Tool: tools.Tool{Name: "a", ArgsSchema: json.RawMessage(schema), Injected: []tools.Injected{{Arg: "tenant", From: tools.InjectTenant}}},
		Invoke: func(context.Context, json.RawMessage) (tools.ToolResult, error) { return tools.ToolResult{}, nil }}
}
