package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
)

func textTool(name, schema string) ToolDescriptor {
	return ToolDescriptor{
		Tool:   Tool{Name: name, ArgsSchema: json.RawMessage(schema), Definition: json.RawMessage(`{"inputSchema":` + schema + `}`)},
		Invoke: func(context.Context, json.RawMessage) (ToolResult, error) { return ToolResult{}, nil },
	}
}

// TestSchemasAreShared: tools with the same schema hold one, what was registered
// and what is shown hold one text, and a schema goes when its tools are gone.
func TestSchemasAreShared(t *testing.T) {
	amended := func(t *Tool) { t.Tags = append(t.Tags, "x") }
	cat := NewCatalog(WithAmend(amended)).(*catalog)
	if err := cat.RegisterAll([]ToolDescriptor{textTool("a", `{"type":"object"}`), textTool("b", ` {"type":"object"} `)}); err != nil {
		t.Fatal(err)
	}
	a, b := cat.tools["a"], cat.tools["b"]
	if a.in != b.in || len(cat.schemas.byText) != 1 {
		t.Error("the same schema was compiled twice")
	}
	if !sameMemory(a.tool.ArgsSchema, a.given.ArgsSchema) || !sameMemory(a.tool.ArgsSchema, a.in.Raw()) || !sameMemory(a.tool.Definition, a.given.Definition) {
		t.Error("a text is held more than once")
	}
	for round := range 20 {
		list := make([]ToolDescriptor, 100)
		for i := range list {
			list[i] = textTool(fmt.Sprintf("s%d", i), fmt.Sprintf(`{"type":"object","minProperties":%d}`, round*100+i))
		}
		if ch := cat.SwapSource("s", list); len(ch.Refused) > 0 {
			t.Fatal(ch.Refused)
		}
	}
	if n := len(cat.schemas.byText); n > 4*102+spare {
		t.Errorf("%d schemas are kept for 102 tools", n)
	}
	cat.SwapSource("s", nil)
	if n := len(cat.schemas.byText); n != 1 {
		t.Errorf("%d schemas are kept for two tools with the same", n)
	}
}

// TestDigestTellsDefinitionsApart: also where the schema that is shown is not
// the one that the source published.
func TestDigestTellsDefinitionsApart(t *testing.T) {
	published := json.RawMessage(`{"inputSchema":{"properties":{"a":{"type":"string"},"b":{"type":"string"}}}}`)
	variants := []Tool{
		{Name: "t"}, {Name: "t", Title: "T"}, {Name: "tT"}, {Name: "t", Description: "T"}, {Name: "t", SafetyNotes: "T"},
		{Name: "t", Definition: published}, {Name: "t", ArgsSchema: published},
		{Name: "t", Definition: published, ArgsSchema: published[15 : len(published)-1]},
		{Name: "t", Definition: published, ArgsSchema: json.RawMessage(`{"type":"string"}`)},
		{Name: "t", Definition: published, OutSchema: json.RawMessage(`{"type":"string"}`)},
		{Name: "t", Kind: KindPrompt}, {Name: "t", Safety: Safety{ReadOnly: Yes}}, {Name: "t", SideEffects: SideEffectRead},
		{Name: "t", Injected: []Injected{{Arg: "a"}}}, {Name: "t", Injected: []Injected{{Arg: "a"}, {Arg: "b"}}},
	}
	seen := map[string]int{}
	for i := range variants {
		digest := definitionDigest(&variants[i])
		if j, ok := seen[digest]; ok || len(digest) != 64 {
			t.Errorf("tools %d and %d have the digest %s", j, i, digest)
		}
		seen[digest] = i
	}
}
