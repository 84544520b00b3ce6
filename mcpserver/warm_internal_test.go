package mcpserver

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
)

// TestWarm checks that whoever is of the class of a caller that the lists were
// warmed for finds them encoded.
func TestWarm(t *testing.T) {
	cat := tools.NewCatalog().(tools.LiveCatalog)
	err := cat.Register(tools.ToolDescriptor{
		Tool:   tools.Tool{Name: "a", Description: "A.", ArgsSchema: json.RawMessage(`{"type":"object"}`)},
		Invoke: func(context.Context, json.RawMessage) (tools.ToolResult, error) { return tools.ToolResult{}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	s := New(cat, nil)
	t.Cleanup(func() { _ = s.Shutdown(context.Background()) })
	caller := func(user string) context.Context {
		return identity.With(context.Background(), identity.Identity{TenantID: "t", UserID: user, SessionID: "s"})
	}
	s.Warm(caller("one"))
	format := s.lists[listOfTools].stateful
	format.Element = func(tools.Tool) []byte {
		t.Error("the list was not kept")
		return nil
	}
	if list := s.listFor(caller("another"), listOfTools, format); list.Len() != 1 {
		t.Errorf("%d tools", list.Len())
	}
}
