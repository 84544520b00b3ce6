// Package shop is the company of the examples: tools of three kinds, a search that
// finds them, and a place for large results. An agent declares none of them from
// the start, but for what finds the others and reads artifacts.
package shop

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"github.com/toolcrib/toolcrib/artifacts"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/store/sqlstore"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/builtin"
	"github.com/toolcrib/toolcrib/tools/inproc"
	"github.com/toolcrib/toolcrib/tools/search"
	"github.com/toolcrib/toolcrib/turn"
)

// Shop is a catalog and what runs turns against it.
type Shop struct {
	Catalog tools.LiveCatalog
	Runner  *turn.Runner

	bucket  *blob.Bucket
	records *sqlstore.DB
}

// Open opens the shop. It keeps everything in memory.
func Open(ctx context.Context) (*Shop, error) {
	records, err := sqlstore.OpenMemory(ctx, nil)
	if err != nil {
		return nil, err
	}
	s := &Shop{bucket: memblob.OpenBucket(nil), records: records}
	large := artifacts.New(s.bucket, records, nil)
	s.Catalog = tools.NewCatalog(tools.WithSearchCache(search.New(nil))).(tools.LiveCatalog)
	if err := register(s.Catalog, large); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.Runner = turn.New(s.Catalog, &turn.Options{
		Bounder: large.Bounder(nil),
		Run:     turn.Limits{Calls: 50},
		Middleware: []turn.Middleware{
			turn.Deny(turn.Is(turn.Destructive)),
			turn.StopLoops(3),
			turn.Redact(map[string]turn.Redaction{"": turn.Removing(regexp.MustCompile(`\S+@\S+\.\w+`))}),
		},
	})
	return s, nil
}

// Close forgets everything.
func (s *Shop) Close() error { return errors.Join(s.bucket.Close(), s.records.Close()) }

// Caller returns a context on which somebody of the shop acts.
func Caller(ctx context.Context) context.Context {
	return identity.With(ctx, identity.Identity{TenantID: "shop", UserID: "ada", SessionID: "1"})
}

func register(cat tools.LiveCatalog, large *artifacts.Store) error {
	later := tools.WithLoading(tools.LoadingDeferred)
	return errors.Join(
		builtin.RegisterMeta(cat, nil),
		builtin.RegisterFetch(cat, large),
		inproc.RegisterFunc(cat, "weather.get_current", weather, later, tools.WithDescription("Return the current weather of a city."),
			tools.WithSideEffect(tools.SideEffectRead)),
		inproc.RegisterFunc(cat, "orders.report", report, later, tools.WithDescription("List all orders in a state, with customers and totals."),
			tools.WithSideEffect(tools.SideEffectRead)),
		inproc.RegisterFunc(cat, "orders.delete", remove, later, tools.WithDescription("Delete an order."),
			tools.WithSafety(tools.Safety{Destructive: tools.Yes})),
	)
}

type weatherArgs struct {
	City string `json:"city"`
}

type weatherResult struct {
	City         string  `json:"city"`
	TemperatureC float64 `json:"temperature_c"`
	Sky          string  `json:"sky"`
}

func weather(_ context.Context, in weatherArgs) (weatherResult, error) {
	switch in.City {
	case "Lisbon":
		return weatherResult{in.City, 17.5, "sunny"}, nil
	case "Oslo":
		return weatherResult{in.City, -3, "snow"}, nil
	}
	return weatherResult{}, &tools.Error{Class: tools.ErrClassPermanent, Message: fmt.Sprintf("no weather station in %q", in.City)}
}

type reportArgs struct {
	State string `json:"state" jsonschema:"enum=open,enum=shipped"`
}

type order struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	Email    string `json:"email"`
	Total    int    `json:"total"`
}

type reportResult struct {
	Orders []order `json:"orders"`
}

// report is larger than what a model should read.
func report(_ context.Context, in reportArgs) (reportResult, error) {
	out := reportResult{Orders: make([]order, 1000)}
	for i := range out.Orders {
		out.Orders[i] = order{ID: fmt.Sprintf("%s-%04d", in.State, i), Customer: fmt.Sprintf("customer %d", i*7%1000),
			Email: fmt.Sprintf("c%d@example.com", i*7%1000), Total: i * 31 % 997}
	}
	return out, nil
}

type removeArgs struct {
	ID string `json:"id"`
}

func remove(_ context.Context, in removeArgs) (struct{}, error) {
	return struct{}{}, fmt.Errorf("nothing deletes %s in an example", in.ID)
}
