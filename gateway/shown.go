package gateway

import (
	"context"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/view"
)

// adminScope lets callers of other tenants see what the configuration says of
// tools that they do not see.
const adminScope = "tools:admin"

// operates reports whether the caller on ctx may see what the configuration
// names: the local caller, who runs this machine, and holders of the scope.
func operates(ctx context.Context) bool {
	id, ok := identity.From(ctx)
	return ok && id.TenantID == localName || identity.ScopesFrom(ctx).Has(adminScope)
}

// apiSources are the sources in the words of the JSON protocol, as the caller
// on ctx may see them: with the count of the tools that it sees, and for who
// operates the gateway with that of all, with what was refused or matched
// nothing, and what a source says of its failure. Others learn of what kind
// that is.
func (g *Gateway) apiSources(ctx context.Context) []api.Source {
	all := operates(ctx)
	counts := countsBySource(view.From(ctx, g.cat))
	var out []api.Source
	for _, s := range g.running() {
		state := s.status()
		row := api.Source{Name: state.Name, Kind: state.Kind, State: state.State, Error: state.fault(), Tools: counts[s.shownID()]}
		row.AuthorizationURL = s.authorizationURL(ctx)
		if all {
			row.Error, row.Total = state.Error, state.Tools
			row.Unmatched = state.Unmatched
			for _, r := range state.Refused {
				row.Refused = append(row.Refused, api.RefusedTool(r))
			}
		}
		out = append(out, row)
	}
	return out
}

// apiUnmatched names the entries that no tool has, for who operates the gateway.
func (g *Gateway) apiUnmatched(ctx context.Context) []string {
	if !operates(ctx) {
		return nil
	}
	return g.unmatchedEntries()
}

type sourceCountsKey struct{}

// countsBySource counts the tools of a view by where they come from.
func countsBySource(v view.View) map[tools.ToolSourceID]int {
	return view.Memo(v, sourceCountsKey{}, func(v view.View) map[tools.ToolSourceID]int {
		counts := map[tools.ToolSourceID]int{}
		for _, t := range v.Tools() {
			if t.Source != "" {
				counts[t.Source]++
			}
		}
		return counts
	})
}
