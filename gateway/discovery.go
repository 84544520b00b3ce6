package gateway

import (
	"slices"

	"github.com/toolcrib/toolcrib/tools/builtin"
	"github.com/toolcrib/toolcrib/view"
)

// builtIns are the built-in tools that the operator offers, apart from those
// about tools, which are always there.
func (t *Tools) builtIns() []string {
	return slices.DeleteFunc(slices.Clone(t.BuiltIn), func(name string) bool {
		return slices.Contains(builtin.MetaNames(), name) || slices.Contains(builtin.SkillNames(), name) || name == builtin.FetchName
	})
}

// offers reports whether the operator offers a built-in tool by its name.
func (t *Tools) offers(name string) bool { return slices.Contains(t.BuiltIn, name) }

// registerMeta adds the tools that find others. They are declared to a caller
// while something is deferred for it, or always if the operator offers them.
func (g *Gateway) registerMeta() error {
	return builtin.RegisterMeta(g.cat, &builtin.MetaOptions{Memory: g.found, Index: g.index})
}

// discovery is what the configuration says of what clients of MCP are listed.
func (m MCP) discovery() *view.DiscoveryOptions {
	return &view.DiscoveryOptions{Mode: m.Discovery, BudgetTokens: m.DiscoveryBudgetTokens, ToolsOnly: true}
}
