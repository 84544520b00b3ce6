package bench

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
)

// order is the tool that every in-process measurement calls.
type order struct {
	Customer string   `json:"customer" jsonschema:"minLength=1"`
	Items    []item   `json:"items"`
	Express  bool     `json:"express,omitempty"`
	Notes    []string `json:"notes,omitempty"`
	Discount float64  `json:"discount,omitempty" jsonschema:"minimum=0,maximum=1"`
}

type item struct {
	SKU      string  `json:"sku"`
	Quantity int     `json:"quantity" jsonschema:"minimum=1"`
	Price    float64 `json:"price"`
}

type receipt struct {
	ID       string   `json:"id"`
	Customer string   `json:"customer"`
	Total    float64  `json:"total"`
	Lines    int      `json:"lines"`
	Tags     []string `json:"tags"`
}

const orderArgs = `{"customer":"acme","items":[{"sku":"a-1","quantity":2,"price":9.5},{"sku":"b-2","quantity":1,"price":20.25}],"express":true,"notes":["leave at door"],"discount":0.1}`

func place(_ context.Context, in order) (receipt, error) {
	total := 0.0
	for _, i := range in.Items {
		total += float64(i.Quantity) * i.Price
	}
	return receipt{ID: "r-1", Customer: in.Customer, Total: total * (1 - in.Discount), Lines: len(in.Items), Tags: []string{"new", "web"}}, nil
}

// floor is what nobody can do without: decode, call, encode.
func floor(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	var in order
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, err
	}
	out, err := place(ctx, in)
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// BenchmarkInProcess compares a call through the whole door, with an event
// subscriber, with the floor.
func BenchmarkInProcess(b *testing.B) {
	ctx := identity.With(context.Background(), identity.Identity{TenantID: "t", UserID: "u", SessionID: "s"})
	b.Run("floor", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := floor(ctx, json.RawMessage(orderArgs)); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, opts := range map[string][]tools.DescriptorOption{"door": nil, "inline": {tools.WithInline()}} {
		b.Run(name, func(b *testing.B) { benchDoor(b, ctx, opts...) })
	}
}

func benchDoor(b *testing.B, ctx context.Context, opts ...tools.DescriptorOption) {
	reg, err := events.NewRegistry(tools.EventDefinitions()...)
	if err != nil {
		b.Fatal(err)
	}
	bus := events.NewBus(reg)
	sub := bus.Subscribe(events.Filter{}, nil)
	read := make(chan struct{})
	go func() {
		defer close(read)
		for range sub.Events() {
		}
	}()
	cat := tools.NewCatalog(tools.WithEvents(bus))
	if err := inproc.RegisterFunc(cat, "place_order", place, opts...); err != nil {
		b.Fatal(err)
	}
	args := json.RawMessage(orderArgs)
	b.ReportAllocs()
	for b.Loop() {
		res, err := tools.Invoke(ctx, cat, "place_order", args)
		if err != nil || len(res.Structured) == 0 {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	sub.Close()
	<-read
}
