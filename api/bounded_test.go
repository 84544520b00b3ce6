package api_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/builtin"
)

// bounder is a Bounder that remembers whose results it was shown.
type bounder struct{ asked []string }

func (b *bounder) Bound(_ context.Context, tool *tools.Tool, r tools.ToolResult) (tools.ToolResult, error) {
	b.asked = append(b.asked, tool.Name)
	return r, nil
}

// A result that came through tool_call is bounded as one of the tool that ran.
func TestBoundedResultIsThatOfTheToolThatRan(t *testing.T) {
	cat, b := newCatalog(t), &bounder{}
	if err := builtin.RegisterMeta(cat, nil, builtin.CallName); err != nil {
		t.Fatal(err)
	}
	ctx := identity.With(t.Context(), identity.Identity{TenantID: "acme", UserID: "ann", SessionID: "s"})
	server := api.New(cat, &api.Options{Bounder: b})
	for name, args := range map[string]string{"echo": `{}`, builtin.CallName: `{"name":"echo"}`} {
		if _, err := server.Call(ctx, api.CallRequest{Name: name, Arguments: json.RawMessage(args), Bounded: true}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !slices.Equal(b.asked, []string{"echo", "echo"}) {
		t.Errorf("bounded were results of %v", b.asked)
	}
}
