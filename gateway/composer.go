package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/toolcrib/toolcrib/exec"
	"github.com/toolcrib/toolcrib/skill"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/flow"
)

// The source of the tools that are skills and flows.
const (
	composedName = "compositions"
	kindComposed = "composed"
)

// composed adds the source of the skills and flows, if there are any.
func (s *specs) composed() {
	list, faults := s.cfg.compositions()
	s.faults = append(s.faults, faults...)
	if len(list) == 0 {
		return
	}
	spec := sourceSpec{name: composedName, kind: kindComposed, settings: settingsOf(list), at: "skills", exact: true}
	for i := range list {
		if list[i].runs() {
			spec.prefixes = append(spec.prefixes, list[i].name())
		}
	}
	g := s.opts.self
	spec.open = func(*slog.Logger) (tools.ToolProvider, error) { return &composer{g: g, list: list}, nil }
	spec.settled = func() bool { return g == nil || g.settled(list) }
	s.list = append(s.list, spec)
}

// settings is everything that a composition is made from.
type settings struct {
	skill *skill.Skill
	flow  *flow.Definition
}

func settingsOf(list []composition) []settings {
	out := make([]settings, len(list))
	for i, c := range list {
		out[i] = settings{c.skill, c.flow}
	}
	return out
}

// runner runs tools for skills and flows; describing them is left to others.
type runner interface {
	Run(ctx context.Context, toolID string, inputs map[string]any) (any, error)
}

// blind is a runner that knows of no tool and runs none: with it a composition is
// checked by itself.
type blind struct{}

var errBlind = errors.New("gateway: no tools are known here")

// Run implements runner.
func (blind) Run(context.Context, string, map[string]any) (any, error) { return nil, errBlind }

// seeing is a runner that knows some tools.
type seeing struct {
	runner
	known map[string]tools.Tool
}

// Fresh says of results what the runner says.
func (s seeing) Fresh() bool {
	f, ok := s.runner.(interface{ Fresh() bool })
	return ok && f.Fresh()
}

// Describe implements skill.Describer.
func (s seeing) Describe(_ context.Context, name string) (tools.Tool, bool) {
	t, ok := s.known[name]
	return t, ok
}

// built is a composition that can run.
type built struct {
	descriptor tools.ToolDescriptor
	plan       *skill.Plan
	flow       *flow.Flow
}

// build makes a composition ready to run. With a runner that knows no tools there
// is no descriptor.
func (c *composition) build(ctx context.Context, run runner, log flow.Recorder) (b built, err error) {
	_, sees := run.(seeing)
	if c.flow != nil {
		if b.flow, err = flow.ComposeFor(ctx, *c.flow, &flow.Options{Runner: run, Recorder: log}); err == nil && sees {
			b.descriptor, err = b.flow.Tool()
		}
		return b, err
	}
	if b.plan, err = skill.NewPlanner(skill.PlannerOptions{Runner: run}).PlanFor(ctx, *c.skill); err == nil && sees {
		b.descriptor, err = b.plan.Tool(ctx)
	}
	return b, err
}

// composer is the provider of the tools that are skills and flows. It makes those
// whose tools are all there, and makes them anew when one of those changes.
type composer struct {
	g    *Gateway
	list []composition

	poke     func()
	stop     func()
	watching sync.WaitGroup

	mu      sync.Mutex // guards what follows
	seen    string     // of the tools that were looked at last
	built   map[string]built
	refused []tools.Refusal
}

var (
	_ tools.ToolProvider   = (*composer)(nil)
	_ tools.ChangeNotifier = (*composer)(nil)
	_ tools.Refuser        = (*composer)(nil)
)

// SourceID implements tools.ToolProvider.
func (c *composer) SourceID() tools.ToolSourceID { return composedName }

// OnChange implements tools.ChangeNotifier.
func (c *composer) OnChange(f func()) { c.poke = f }

// Connect begins to follow the catalog.
func (c *composer) Connect(context.Context) error {
	changes, stop := c.g.cat.Watch()
	c.stop = stop
	c.watching.Go(func() {
		for range changes {
			c.mu.Lock()
			news := c.seen != fingerprint(c.look())
			c.mu.Unlock()
			if news && c.poke != nil {
				c.poke()
			}
		}
	})
	return nil
}

// Close implements tools.ToolProvider.
func (c *composer) Close(context.Context) error {
	if c.stop != nil {
		c.stop()
		c.watching.Wait()
	}
	return nil
}

// Refused implements tools.Refuser.
func (c *composer) Refused() []tools.Refusal {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.refused)
}

// look returns the tools of the catalog that the compositions call, as far as they
// are there and not hidden from everybody.
func (c *composer) look() map[string]tools.Tool {
	known := map[string]tools.Tool{}
	var scopes []string
	for i := range c.list {
		for _, p := range c.list[i].parts() {
			if d, ok := c.g.cat.Resolve(p.tool); ok {
				known[p.tool] = d.Tool
				scopes = append(scopes, d.Tool.AuthScopes...)
			}
		}
	}
	visible := c.g.cat.Snapshot().Visible(tools.CatalogFilter{GrantedScopes: scopes,
		LoadingModes: []tools.LoadingMode{tools.LoadingAlways, tools.LoadingDeferred}})
	for name := range known {
		if !visible.Has(name) {
			delete(known, name)
		}
	}
	return known
}

// fingerprint changes when something changes that a composition depends on.
func fingerprint(known map[string]tools.Tool) string {
	names := make([]string, 0, len(known))
	for name := range known {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		t := known[name]
		fmt.Fprintf(&b, "%s %s %q %q %s %v\n", name, t.DefinitionDigest, t.AuthScopes, t.Tenants, t.SideEffects, t.Safety)
	}
	return b.String()
}

// Discover makes what can be made of the tools that are there now.
func (c *composer) Discover(ctx context.Context) ([]tools.ToolDescriptor, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.look()
	c.seen = fingerprint(known)
	c.built, c.refused = map[string]built{}, nil
	own := map[string]*composition{}
	for i := range c.list {
		own[c.list[i].name()] = &c.list[i]
		if c.list[i].runs() {
			delete(known, c.list[i].name()) // what is there of it is from before
		}
	}
	var list []tools.ToolDescriptor
	for _, one := range inOrder(c.list) {
		made, err := c.make(ctx, one, known)
		if err != nil {
			c.refused = append(c.refused, tools.Refusal{Name: one.name(), Err: err})
			continue
		}
		known[one.name()], c.built[one.name()] = made.descriptor.Tool, made
		list = append(list, made.descriptor)
	}
	return list, nil
}

// make makes one composition of known tools.
func (c *composer) make(ctx context.Context, one *composition, known map[string]tools.Tool) (built, error) {
	var missing []string
	for _, p := range one.parts() {
		if _, ok := known[p.tool]; !ok && !slices.Contains(missing, p.tool) {
			missing = append(missing, p.tool)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return built{}, fmt.Errorf("needs what is not there: %s", strings.Join(missing, ", "))
	}
	return one.build(ctx, seeing{exec.NewRunner(c.g.cat), known}, c.g.runs)
}

// made returns a composition that can run.
func (c *composer) made(name string) (built, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b, ok := c.built[name]
	return b, ok
}

// inOrder returns the compositions that run, each behind those that it calls. There
// are no circles.
func inOrder(list []composition) []*composition {
	byName := map[string]*composition{}
	for i := range list {
		if list[i].runs() {
			byName[list[i].name()] = &list[i]
		}
	}
	var sorted []*composition
	done := map[*composition]bool{}
	var add func(c *composition)
	add = func(c *composition) {
		if c == nil || done[c] {
			return
		}
		done[c] = true
		for _, p := range c.parts() {
			add(byName[p.tool])
		}
		sorted = append(sorted, c)
	}
	for i := range list {
		add(byName[list[i].name()])
	}
	return sorted
}

// settled reports whether nothing that the compositions call is still to be
// expected of a source that had no attempt yet.
func (g *Gateway) settled(list []composition) bool {
	var waiting []*source
	for _, s := range g.running() {
		select {
		case <-s.first:
		default:
			if s.spec.kind != kindComposed {
				waiting = append(waiting, s)
			}
		}
	}
	for i := range list {
		for _, p := range list[i].parts() {
			if _, there := g.cat.Resolve(p.tool); there {
				continue
			}
			if slices.ContainsFunc(waiting, func(s *source) bool { return s.spec.canBring(p.tool) }) {
				return false
			}
		}
	}
	return true
}

// attempted is called after each attempt of a source, and with nil after a reload.
func (g *Gateway) attempted(by *source) {
	g.noteEntries()
	for _, s := range g.running() {
		if s.spec.settled == nil || s == by {
			continue
		}
		select {
		case <-s.first:
		default:
			s.poke() // what it waited for may never come
		}
	}
}

// composer returns the provider of the skills and flows, or nil.
func (g *Gateway) composer() *composer {
	for _, s := range g.running() {
		if s.spec.kind != kindComposed {
			continue
		}
		if serving := s.serving(); serving != nil {
			s = serving
		}
		c, _ := s.current().(*composer)
		return c
	}
	return nil
}
