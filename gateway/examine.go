package gateway

import (
	"context"
	"fmt"
	"slices"

	"github.com/toolcrib/toolcrib/internal/nearest"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/builtin"
)

// compositions looks for the tools that skills and flows call, and compares what
// they are given with what those take, as far as local documents tell.
func (x *examination) compositions() {
	list, _ := x.cfg.compositions()
	if len(list) == 0 {
		return
	}
	own := map[string]bool{}
	for i := range list {
		own[list[i].name()] = list[i].runs()
	}
	a := &compositions{cfg: x.cfg}
	known := x.tools()
	for _, c := range inOrder(list) {
		sound := true
		for _, p := range c.parts() {
			if own[p.tool] {
				continue
			}
			sound = x.part(a, c, p) && sound
			if _, ok := known[p.tool]; !ok {
				known[p.tool] = tools.Tool{Name: p.tool} // which may take anything
			}
		}
		if !sound {
			continue
		}
		made, err := c.build(context.Background(), seeing{blind{}, known}, nil)
		if err != nil {
			a.planned(c, err)
			continue
		}
		known[c.name()] = made.descriptor.Tool
	}
	x.faults = append(x.faults, a.faults...)
}

// part looks for the tool of a part, and reports whether it may be there.
func (x *examination) part(a *compositions, c *composition, p part) bool {
	could := func(s *sourceSpec) bool { return s.canBring(p.tool) }
	if slices.Contains(x.known, p.tool) || slices.ContainsFunc(x.others, could) {
		return true
	}
	meant, _ := nearest.Word(p.tool, x.known)
	if slices.ContainsFunc(x.read, func(s *sourceSpec) bool { return len(s.prefixes) > 0 && could(s) }) {
		a.place(c, p.path, expecting(fmt.Sprintf("%q is a tool of no source", clip(p.tool)), meant))
		return false
	}
	if slices.Contains(builtin.Names(), p.tool) {
		meant = "it in tools.built_in"
	}
	warned := &compositions{cfg: x.cfg}
	warned.place(c, p.path, fmt.Sprintf("no source has a tool %q", clip(p.tool)))
	for _, w := range warned.faults {
		w.Expected = meant
	}
	x.warnings = append(x.warnings, warned.faults...)
	return true
}

func expecting(problem, expected string) string {
	if expected == "" {
		return problem
	}
	return problem + "; expected " + expected
}

// tools are the tools whose schemas are known without a source: built-in ones and
// those of local documents.
func (x *examination) tools() map[string]tools.Tool {
	known := map[string]tools.Tool{}
	cat := tools.NewCatalog()
	if err := builtin.Register(cat, x.cfg.Tools.builtIns()...); err == nil {
		for _, t := range cat.List(tools.CatalogFilter{LoadingModes: []tools.LoadingMode{tools.LoadingAlways, tools.LoadingDeferred}}) {
			known[t.Name] = t
		}
	}
	for _, t := range x.surveyed {
		known[t.Name] = t
	}
	return known
}
