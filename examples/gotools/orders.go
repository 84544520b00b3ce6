// Command gotools serves tools of a small shop over MCP and the JSON protocol. They show hidden arguments,
// failures that a model can act on, progress, and a tool that calls another.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
)

// Order is one order of the shop.
type Order struct {
	ID     int       `json:"id"`
	State  string    `json:"state" jsonschema:"enum=open,enum=shipped,enum=cancelled"`
	Placed time.Time `json:"placed"`
	Owner  string    `json:"-"` // the tenant; encoding/json leaves it out, and so does the schema
}

// Shop holds the orders of several tenants. Its tools run on many goroutines at once, so it has a lock.
type Shop struct {
	mu     sync.Mutex
	orders []Order
}

// NewShop returns a shop with some orders.
func NewShop() *Shop {
	day := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	return &Shop{orders: []Order{
		{ID: 1, State: "open", Placed: day, Owner: "local"},
		{ID: 2, State: "shipped", Placed: day.AddDate(0, 0, 1), Owner: "local"},
		{ID: 3, State: "open", Placed: day.AddDate(0, 0, 2), Owner: "acme"},
	}}
}

// Register adds the shop's tools to a catalog.
func (s *Shop) Register(cat tools.ToolCatalog) error {
	return errors.Join(
		inproc.RegisterFunc(cat, "orders.find", s.find,
			tools.WithDescription("Find orders by their state."),
			tools.WithSideEffect(tools.SideEffectRead),
			tools.WithExamples(tools.ToolExample{Description: "what is still to do", Args: map[string]any{"state": "open"}})),
		inproc.RegisterFunc(cat, "orders.cancel", s.cancel,
			tools.WithDescription("Cancel an order that was not shipped."),
			tools.WithSideEffect(tools.SideEffectWrite),
			tools.WithAuthScopes("orders.write"),
			tools.WithInjected(
				tools.Injected{Arg: "tenant", From: tools.InjectTenant},
				tools.Injected{Arg: "asked_at", Value: func(context.Context) (any, error) { return time.Now(), nil }},
			)),
		inproc.RegisterFunc(cat, "orders.report", report,
			tools.WithDescription("Write a report about all orders, slowly."),
			tools.WithSideEffect(tools.SideEffectRead),
			tools.WithPolicy(tools.ToolPolicy{TimeoutMS: 120_000, MaxRetries: -1})),
	)
}

// FindArgs are the arguments of orders.find.
type FindArgs struct {
	State string `json:"state,omitempty" jsonschema:"description=only orders in this state,enum=open,enum=shipped,enum=cancelled"`
}

// Orders is a list of orders.
type Orders struct {
	Orders []Order `json:"orders"`
}

// find answers for the caller's tenant, which stands on the context.
func (s *Shop) find(ctx context.Context, in FindArgs) (Orders, error) {
	who, _ := identity.From(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	found := []Order{}
	for _, o := range s.orders {
		if o.Owner == who.TenantID && (in.State == "" || o.State == in.State) {
			found = append(found, o)
		}
	}
	return Orders{Orders: found}, nil
}

// CancelArgs are the arguments of orders.cancel. A model sees and sends only the id: the catalog fills in
// the others for each attempt, and removes what a model sent in their place.
type CancelArgs struct {
	ID      int       `json:"id" jsonschema:"number of the order"`
	Tenant  string    `json:"tenant"`
	AskedAt time.Time `json:"asked_at"`
}

func (s *Shop) cancel(_ context.Context, in CancelArgs) (Order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.orders, func(o Order) bool { return o.ID == in.ID && o.Owner == in.Tenant })
	if i < 0 {
		return Order{}, refuse("there is no order %d", in.ID)
	}
	if s.orders[i].State == "shipped" {
		return Order{}, refuse("order %d is on its way and can only be returned", in.ID)
	}
	s.orders[i].State = "cancelled"
	return s.orders[i], nil
}

// refuse is a failure that another attempt would not mend. A model reads the message.
func refuse(format string, args ...any) error {
	return &tools.Error{
		Class:    tools.ErrClassPermanent,
		Delivery: tools.Answered,
		Message:  fmt.Sprintf(format, args...),
	}
}

// ReportResult is the result of orders.report.
type ReportResult struct {
	Lines []string `json:"lines"`
}

// report takes long: it says how far it is, and ends soon after its context does.
func report(ctx context.Context, _ struct{}) (ReportResult, error) {
	res, err := tools.Invoke(ctx, tools.MustCatalog(ctx), "orders.find", nil)
	if err != nil {
		return ReportResult{}, fmt.Errorf("find the orders: %w", err)
	}
	var list Orders
	if err := json.Unmarshal(res.Structured, &list); err != nil {
		return ReportResult{}, err
	}
	out := ReportResult{Lines: []string{}}
	for i, o := range list.Orders {
		if err := ctx.Err(); err != nil {
			return ReportResult{}, err
		}
		out.Lines = append(out.Lines, fmt.Sprintf("order %d is %s", o.ID, o.State))
		if err := tools.Progress(ctx, float64(i+1), float64(len(list.Orders)), "orders"); err != nil {
			return ReportResult{}, err
		}
	}
	return out, nil
}
