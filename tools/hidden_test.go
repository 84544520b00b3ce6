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

// A hidden argument is named nowhere in the schema that callers see.
func TestHiddenArgumentIsNotNamed(t *testing.T) {
	for name, test := range map[string]struct {
		schema string
		taken  bool
	}{
		"a definition of its own":   {`{"properties":{"q":{},"user_id":{"$ref":"#/$defs/user_id"}},"$defs":{"user_id":{"title":"user_id"},"b":{}}}`, true},
		"a definition that is used": {`{"properties":{"q":{"$ref":"#/$defs/user_id"},"user_id":{}},"$defs":{"user_id":{}}}`, true},
		"names in general":          {`{"properties":{"q":{},"user_id":{}},"propertyNames":{"pattern":"^[a-z_]+$"},"patternProperties":{"^x-":{},"^my_user_id":{}}}`, true},
		"names that are enumerated": {`{"properties":{"q":{},"user_id":{}},"propertyNames":{"enum":["q","user_id"]}}`, false},
		"a pattern":                 {`{"properties":{"q":{}},"patternProperties":{"^user_id$":{}}}`, false},
		"whole arguments":           {`{"properties":{"q":{},"user_id":{}},"enum":[{"user_id":"a","q":1}]}`, false},
		"constant arguments":        {`{"properties":{"q":{},"user_id":{}},"const":{"user_id":"a","q":1}}`, false},
		"a reference of draft 2019": {`{"properties":{"q":{},"user_id":{}},"allOf":[{"$recursiveRef":"#/$defs/A"}],"$defs":{"A":{"properties":{"user_id":{}}}}}`, false},
	} {
		cat := tools.NewCatalog()
		err := cat.Register(tools.ToolDescriptor{Tool: tools.Tool{Name: "x", ArgsSchema: json.RawMessage(test.schema), Injected: []tools.Injected{{Arg: "user_id", From: tools.InjectUser}}},
			Invoke: func(context.Context, json.RawMessage) (tools.ToolResult, error) { return tools.ToolResult{}, nil }})
		if (err == nil) != test.taken {
			t.Errorf("%s: %v", name, err)
		}
		if d, ok := cat.Resolve("x"); ok && strings.Contains(strings.ReplaceAll(string(d.Tool.ArgsSchema), "my_user_id", ""), "user_id") && !strings.Contains(test.schema, `"q":{"$ref"`) {
			t.Errorf("%s: %s", name, d.Tool.ArgsSchema)
		}
	}
}
