package tools_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/toolcrib/toolcrib/tools"
)

func TestOfKindNamesWhatNobodySees(t *testing.T) {
	t.Parallel()
	cat := tools.NewCatalog().(tools.LiveCatalog)
	for name, kind := range map[string]tools.Kind{"a": tools.KindResource, "b": tools.KindResource, "c": tools.KindResource, "d": tools.KindPrompt} {
		tool := tools.Tool{Name: name, Kind: kind, SourceName: name}
		if name == "b" {
			tool.AuthScopes = []string{"s"}
		}
		err := cat.Register(tools.ToolDescriptor{Tool: tool, Invoke: func(context.Context, json.RawMessage) (tools.ToolResult, error) {
			return tools.ToolResult{}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := cat.Quarantine("c", true); err != nil {
		t.Fatal(err)
	}
	var names string
	for _, tool := range cat.Snapshot().OfKind(tools.KindResource) {
		names += tool.Name
	}
	if names != "abc" {
		t.Error(names)
	}
}
