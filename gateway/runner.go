package gateway

import (
	"github.com/toolcrib/toolcrib/turn"
	"github.com/toolcrib/toolcrib/view"
)

// Runner returns a runner of models' turns against the gateway's catalog, as the
// configuration has it now: discovery with the memory that the gateway's other
// entrances use, and whether the calls of a turn are made at once. What opts sets
// wins; nil options are the configuration alone. Turns need an identity on the
// context; see LocalContext.
func (g *Gateway) Runner(opts *turn.Options) *turn.Runner {
	var o turn.Options
	if opts != nil {
		o = *opts
	}
	cfg := g.config()
	if o.Discovery == nil {
		o.Discovery = view.NewDiscovery(g.found, &view.DiscoveryOptions{Mode: cfg.MCP.Discovery, BudgetTokens: cfg.MCP.DiscoveryBudgetTokens})
	}
	if parallel := cfg.Planner.ParallelToolCalls; parallel != nil && !*parallel {
		o.SingleCall = true
	}
	if o.Bounder == nil {
		o.Bounder = g.bounder()
	}
	if o.Bus == nil {
		o.Bus = g.bus
	}
	return turn.New(g.cat, &o)
}
