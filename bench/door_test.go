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

// BenchmarkInProcess compares a call through the whole door with the floor. One
// subscriber reads the two events of each call; to wake it costs more than the
// events do, so that there is a call of the same tool with nobody listening.
func BenchmarkInProcess(b *testing.B) {
	ctx := identity.With(context.Background(), identity.Identity{TenantID: "t", UserID: "u", SessionID: "s"})
	bare := func() {
		if _, err := floor(ctx, json.RawMessage(orderArgs)); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("floor", func(b *testing.B) { beside(b, bare, bare) })
	for name, opts := range map[string][]tools.DescriptorOption{"door": nil, "inline": {tools.WithInline()}} {
		b.Run(name, func(b *testing.B) {
			bus := newBus(b)
			defer listen(bus)()
			benchDoor(ctx, b, bare, bus, opts...)
		})
	}
	b.Run("unheard", func(b *testing.B) { benchDoor(ctx, b, bare, newBus(b), tools.WithInline()) })
}

func newBus(b *testing.B) *events.Bus {
	reg, err := events.NewRegistry(tools.EventDefinitions()...)
	if err != nil {
		b.Fatal(err)
	}
	return events.NewBus(reg)
}

// listen reads every event of a bus until the function that it returns is
// called.
func listen(bus *events.Bus) (stop func()) {
	sub := bus.Subscribe(events.Filter{}, nil)
	read := make(chan struct{})
	go func() {
		defer close(read)
		for range sub.Events() {
		}
	}()
	return func() {
		sub.Close()
		<-read
	}
}

func benchDoor(ctx context.Context, b *testing.B, bare func(), bus *events.Bus, opts ...tools.DescriptorOption) {
	cat := tools.NewCatalog(tools.WithEvents(bus))
	if err := inproc.RegisterFunc(cat, "place_order", place, opts...); err != nil {
		b.Fatal(err)
	}
	args := json.RawMessage(orderArgs)
	beside(b, bare, func() {
		res, err := tools.Invoke(ctx, cat, "place_order", args)
		if err != nil || len(res.Structured) == 0 {
			b.Fatal(err)
		}
	})
}
