package tools_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolcrib/toolcrib/tools"
)

// Whoever resolves a tool may write to all of it, and append to it, at the same
// time as others.
func TestResolvedCopiesAreApart(t *testing.T) {
	cat := tools.NewCatalog()
	err := cat.Register(tools.ToolDescriptor{
		Tool: tools.Tool{Name: "t", ArgsSchema: json.RawMessage(`{"type":"object"}`), OutSchema: json.RawMessage(`{"type":"string"}`),
			Definition: json.RawMessage(`{}`), Tags: []string{"a", "b"}, HandlesMIME: []string{"text/plain"}, AuthScopes: []string{}},
		Invoke: func(context.Context, json.RawMessage) (tools.ToolResult, error) { return tools.ToolResult{}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	want, _ := cat.Resolve("t")
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 100 {
				d, _ := cat.Resolve("t")
				if diff := cmp.Diff(want.Tool, d.Tool); diff != "" {
					t.Errorf("somebody else wrote to it:\n%s", diff)
					return
				}
				for _, text := range []json.RawMessage{d.Tool.ArgsSchema, d.Tool.OutSchema, d.Tool.Definition} {
					clear(text)
					_ = append(text, '!')
				}
				for _, list := range [][]string{d.Tool.Tags, d.Tool.HandlesMIME, d.Tool.AuthScopes} {
					clear(list)
					_ = append(list, "!")
				}
			}
		})
	}
	wg.Wait()
}

// A tool with more text than spares hold is copied all the same.
func TestResolveLargeTool(t *testing.T) {
	long := json.RawMessage(`{"description":"` + strings.Repeat("x", 64<<10) + `"}`)
	cat := tools.NewCatalog()
	err := cat.Register(tools.ToolDescriptor{Tool: tools.Tool{Name: "t", ArgsSchema: long},
		Invoke: func(context.Context, json.RawMessage) (tools.ToolResult, error) { return tools.ToolResult{}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		d, ok := cat.Resolve("t")
		if !ok || string(d.Tool.ArgsSchema) != string(long) {
			t.Fatalf("resolved %d bytes of %d", len(d.Tool.ArgsSchema), len(long))
		}
		clear(d.Tool.ArgsSchema)
	}
}
