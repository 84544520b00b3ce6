// Package tides shows what a program outside this module writes to give an agent a tool.
package tides

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
)

// ErrUnknownHarbour is returned, wrapped, for a harbour without a gauge.
var ErrUnknownHarbour = errors.New("unknown harbour")

// LevelArgs are the arguments of tides.get_level.
type LevelArgs struct {
	Harbour string `json:"harbour"`
	Unit    string `json:"unit,omitempty"`
}

// LevelResult is the result of tides.get_level.
type LevelResult struct {
	Harbour string  `json:"harbour"`
	LevelM  float64 `json:"level_m"`
	Rising  bool    `json:"rising"`
}

// GetLevel is a tool: a function of a context and a typed argument.
func GetLevel(ctx context.Context, in LevelArgs) (LevelResult, error) {
	if err := ctx.Err(); err != nil {
		return LevelResult{}, fmt.Errorf("tides.get_level: %w", err)
	}
	level, err := gauge(in.Harbour)
	if err != nil {
		return LevelResult{}, fmt.Errorf("tides.get_level: read gauge of %q: %w", in.Harbour, err)
	}
	return LevelResult{Harbour: in.Harbour, LevelM: level, Rising: true}, nil
}

func gauge(harbour string) (float64, error) {
	if harbour == "Atlantis" {
		return 0, ErrUnknownHarbour
	}
	return 2.4, nil
}

// CallerArgs are the arguments of tides.who_asks: none.
type CallerArgs struct{}

// CallerResult names the caller of tides.who_asks.
type CallerResult struct {
	Tenant string `json:"tenant"`
	Run    string `json:"run"`
}

// WhoAsks reads who calls, and the bus of events, from the context.
func WhoAsks(ctx context.Context, _ CallerArgs) (CallerResult, error) {
	caller := identity.MustQuadrupleFrom(ctx)
	_ = events.MustFrom(ctx)
	return CallerResult{Tenant: caller.TenantID, Run: caller.RunID}, nil
}

// RegisterTools adds the tools of this package to a catalog.
func RegisterTools(cat tools.ToolCatalog) error {
	err := inproc.RegisterFunc[LevelArgs, LevelResult](
		cat,
		"tides.get_level",
		GetLevel,
		tools.WithDescription("Return the water level of a harbour and whether it rises."),
		tools.WithSideEffect(tools.SideEffectExternal),
		tools.WithCostHint("medium"),
	)
	if err != nil {
		return err
	}
	return inproc.RegisterFunc[CallerArgs, CallerResult](
		cat,
		"tides.who_asks",
		WhoAsks,
		tools.WithDescription("Return the tenant and the run of the caller."),
		tools.WithLoading(tools.LoadingDeferred),
		tools.WithPolicy(tools.ToolPolicy{TimeoutMS: 5000, MaxRetries: 1}),
	)
}
