package exec_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolcrib/toolcrib/exec"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/builtin"
)

func Example() {
	cat := tools.NewCatalog().(tools.LiveCatalog)
	if err := builtin.Register(cat, "text.echo"); err != nil {
		fmt.Println(err)
		return
	}
	value, err := exec.NewRunner(cat).Run(context.Background(), "text.echo", map[string]any{"text": "hello"})
	fmt.Println(value, err)
	// Output: map[text:hello] <nil>
}

func TestRun(t *testing.T) {
	for name, tc := range map[string]struct {
		result tools.ToolResult
		want   any
	}{
		"structured": {tools.ToolResult{Structured: json.RawMessage(`{"n":9007199254740993}`)}, map[string]any{"n": json.Number("9007199254740993")}},
		"value":      {tools.ToolResult{Value: []int{1}}, []any{json.Number("1")}},
		"text":       {tools.ToolResult{Content: []tools.Content{tools.TextContent("a"), tools.TextContent("b")}}, "a\nb"},
		"nothing":    {tools.ToolResult{}, ""},
		"image":      {tools.ToolResult{Content: []tools.Content{tools.ImageContent([]byte("x"), "image/png")}}, []any{map[string]any{"type": "image", "data": "eA==", "mimeType": "image/png"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := exec.NewRunner(callFunc(func(json.RawMessage) (tools.ToolResult, error) { return tc.result, nil })).Run(t.Context(), "x", nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

type callFunc func(json.RawMessage) (tools.ToolResult, error)

func (f callFunc) Call(_ context.Context, _ string, args json.RawMessage) (tools.ToolResult, error) {
	return f(args)
}

func TestRunFails(t *testing.T) {
	for _, r := range []*exec.Runner{nil, exec.NewRunner(nil)} {
		if _, err := r.Run(t.Context(), "x", nil); !errors.Is(err, exec.ErrNilExecutor) {
			t.Errorf("got %v", err)
		}
	}
	r := exec.NewRunner(callFunc(func(json.RawMessage) (tools.ToolResult, error) {
		return tools.ToolResult{IsError: true, Content: []tools.Content{tools.TextContent("no such repository")}}, nil
	}))
	_, err := r.Run(t.Context(), "x", map[string]any{"a": "<"})
	var te *tools.Error
	if !errors.As(err, &te) || te.Class != tools.ErrClassPermanent || te.Message != "the tool failed: no such repository" {
		t.Errorf("got %v", err)
	}
	if _, err := r.Run(t.Context(), "x", map[string]any{"a": func() {}}); err == nil {
		t.Error("a function is not JSON")
	}
}

func TestWhole(t *testing.T) {
	read := tools.Tool{SideEffects: tools.SideEffectRead, Safety: tools.Safety{ReadOnly: tools.Yes, Destructive: tools.No, OpenWorld: tools.Yes}, AuthScopes: []string{"b", "a"}}
	write := tools.Tool{SideEffects: tools.SideEffectWrite, Safety: tools.Safety{ReadOnly: tools.No, Destructive: tools.No}, AuthScopes: []string{"a"}, Tenants: []string{"x", "y"}}
	unknown := tools.Tool{Tenants: []string{"y"}}
	for name, tc := range map[string]struct {
		parts []tools.Tool
		want  tools.Tool
	}{
		"one":       {[]tools.Tool{read}, tools.Tool{SideEffects: tools.SideEffectRead, Safety: read.Safety, AuthScopes: []string{"a", "b"}}},
		"strongest": {[]tools.Tool{read, write}, tools.Tool{SideEffects: tools.SideEffectWrite, Safety: tools.Safety{ReadOnly: tools.No, Destructive: tools.No, OpenWorld: tools.Yes}, AuthScopes: []string{"a", "b"}, Tenants: []string{"x", "y"}}},
		"unknown":   {[]tools.Tool{write, unknown}, tools.Tool{Safety: tools.Safety{ReadOnly: tools.No}, AuthScopes: []string{"a"}, Tenants: []string{"y"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := exec.Whole(tc.parts)
			if err != nil {
				t.Fatal(err)
			}
			tc.want.Transport = tools.TransportFlow
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := exec.Whole([]tools.Tool{unknown, {Tenants: []string{"x"}}}); !errors.Is(err, exec.ErrNoTenant) {
		t.Errorf("got %v", err)
	}
}
