package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/toolcrib/toolcrib/tools"
)

// A key lets a call be made again whose answer was lost, but not one to a worker:
// there the registry's record says what became of it.
func TestKeyAndTransport(t *testing.T) {
	for transport, want := range map[tools.TransportKind]int{tools.TransportHTTP: 4, tools.TransportWorker: 1} {
		attempts := 0
		cat := tools.NewCatalog()
		err := cat.Register(tools.ToolDescriptor{
			Tool: tools.Tool{Name: "pay", SideEffects: tools.SideEffectWrite, Transport: transport, Policy: tools.ToolPolicy{BackoffBase: 1}},
			Invoke: func(context.Context, json.RawMessage) (tools.ToolResult, error) {
				attempts++
				return tools.ToolResult{}, &tools.Error{Class: tools.ErrClassTransient, Delivery: tools.DeliveryUnknown}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx := tools.WithEntrance(context.Background(), tools.Entrance{IdempotencyKey: "k"})
		_, err = tools.Invoke(ctx, cat, "pay", nil)
		if attempts != want || !errors.Is(err, tools.ErrOutcomeUnknown) {
			t.Errorf("%s: %d attempts, expected %d; %v", transport, attempts, want, err)
		}
	}
}
