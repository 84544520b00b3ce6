package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/tools/builtin"
)

// Reload applies a configuration while the gateway serves. What did not change
// is left alone, and calls under way end where they began. With an error
// nothing changed. Changes of listen, data_dir, the allowed hosts and origins,
// limits and workers, but for their toolsets, take effect at the next start; that is
// said in the log.
func (g *Gateway) Reload(ctx context.Context, cfg *Config) error {
	if cfg == nil {
		cfg = &Config{}
	}
	g.reloading.Lock()
	defer g.reloading.Unlock()
	if g.calls.isClosed() {
		return ErrClosed
	}
	specs, err := prepare(cfg, &g.opts)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	plan, err := g.planToolsets(cfg)
	if err != nil {
		return err
	}
	admission, err := g.workers.readmission(cfg, &g.opts)
	if err != nil {
		return err
	}
	before, served := g.config(), g.toolsets.all()
	g.discovery.Change(cfg.MCP.discovery())
	g.serveToolsets(plan, cfg)
	if err := g.reloadTools(before, cfg); err != nil {
		g.discovery.Change(before.MCP.discovery())
		g.serveToolsets(served, before)
		g.endToolsets(plan, served)
		return err
	}
	g.endToolsets(served, plan)
	g.workers.readmit(ctx, admission)
	g.noteRestart(before, cfg)
	g.reloadSources(append(specs, g.workers.specs()...), cfg)
	g.expect(cfg.Tools.Entries)
	g.attempted(nil)
	return nil
}

// reloadTools applies what concerns single tools.
func (g *Gateway) reloadTools(was, is *Config) error {
	before, after := &was.Tools, &is.Tools
	added, err := g.addBuiltIns(before.builtIns(), after.builtIns())
	if err == nil {
		err = g.cat.Amend(after.amender())
	}
	if err == nil {
		err = g.reloadSkillTools(was, is)
	}
	if err != nil {
		for _, name := range added {
			err = errors.Join(err, g.cat.Deregister(name))
		}
		return fmt.Errorf("gateway: %w", err)
	}
	g.cat.SwapStages(stages(after.Entries))
	for _, name := range before.builtIns() {
		if !slices.Contains(after.builtIns(), name) {
			_ = g.cat.Deregister(name) // a Go program may have removed it
		}
	}
	return nil
}

// addBuiltIns registers the built-in tools that are new, and returns those
// that it registered.
func (g *Gateway) addBuiltIns(before, after []string) (added []string, err error) {
	for _, name := range after {
		if slices.Contains(before, name) {
			continue
		}
		if err := builtin.Register(g.cat, name); err != nil {
			return added, err
		}
		added = append(added, name)
	}
	return added, nil
}

// noteRestart says which changes wait for the next start. A key that has what
// the gateway was opened with waits for nothing.
func (g *Gateway) noteRestart(before, after *Config) {
	was, is, runs := startKeys(before), startKeys(after), startKeys(g.opened)
	for _, key := range slices.Sorted(maps.Keys(is)) {
		if !reflect.DeepEqual(is[key], was[key]) && !reflect.DeepEqual(is[key], runs[key]) {
			g.log.Warn("the change takes effect at the next start", "key", key)
		}
	}
}

// startKeys are the values that are used when the gateway is opened.
func startKeys(c *Config) map[string]any {
	return map[string]any{
		"listen": c.Listen, "data_dir": c.DataDir, "limits": c.Limits, "workers": c.Workers.fixed(),
		"allowed_hosts": strings.Join(c.AllowedHosts, ","), "allowed_origins": strings.Join(c.AllowedOrigins, ","),
	}
}

// reloadSources retires what is gone, whose names may be taken by others now,
// starts what is new or changed, and keeps the rest.
func (g *Gateway) reloadSources(specs []sourceSpec, cfg *Config) {
	old := map[string]*source{}
	for _, s := range g.running() {
		old[s.spec.key()] = s
		if !slices.ContainsFunc(specs, func(spec sourceSpec) bool { return spec.key() == s.spec.key() }) {
			g.remove(s)
		}
	}
	next := make([]*source, 0, len(specs))
	for i := range specs {
		s := old[specs[i].key()]
		if s == nil || !s.spec.same(&specs[i]) {
			s = g.replace(s, specs[i])
		}
		next = append(next, s)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sources, g.cfg = next, cfg
}

// replace starts a source in the place of old, which may be nil. What serves
// now does so until an attempt of the new source succeeds.
func (g *Gateway) replace(old *source, spec sourceSpec) *source {
	if old == nil {
		return g.start(spec, nil)
	}
	old.halt()
	serving := old.serving()
	if serving != old {
		g.retire(old)
	}
	return g.start(spec, serving)
}

// remove takes the tools that s brought, or the one before it, at once.
func (g *Gateway) remove(s *source) {
	s.halt()
	serving := s.serving()
	if serving != nil {
		g.cat.SwapSource(serving.id(), nil)
		g.retire(serving)
	}
	if serving != s {
		g.retire(s)
	}
}

// retire closes a source that was halted, once its calls have ended.
func (g *Gateway) retire(old *source) {
	g.retiring.Go(func() {
		ctx, cancel := context.WithTimeout(g.life, g.config().Limits.drainTimeout())
		defer cancel()
		if err := old.close(ctx); err != nil {
			g.log.Warn("the old source was not closed cleanly", "error", err.Error())
		}
	})
}
