package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/internal/nearest"
	"github.com/toolcrib/toolcrib/mcpserver"
	"github.com/toolcrib/toolcrib/set"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/view"
)

// ToolsetHeader is the header with which a caller of the JSON protocol names the
// toolset that it works in.
const ToolsetHeader = api.ToolsetHeader

// toolset is a Toolset that serves. It goes on while what is in it changes.
type toolset struct {
	g         *Gateway
	name      string
	title     string
	about     string
	now       atomic.Pointer[set.Toolset] // what is in it; nil: the toolset is gone
	found     *view.Watched               // what callers have found in it
	discovery *view.Discovery

	mu    sync.Mutex
	mcp   *mcpserver.Server // made for the first request
	ended bool
}

// serving is a toolset and what is to be in it.
type serving struct {
	toolset *toolset
	set     *set.Toolset
	cfg     Toolset
}

// toolsets are those that serve, in the order of the configuration.
type toolsets struct{ list atomic.Pointer[[]serving] }

func (l *toolsets) all() []serving {
	if list := l.list.Load(); list != nil {
		return *list
	}
	return nil
}

func (l *toolsets) named(name string) (serving, bool) {
	all := l.all()
	i := slices.IndexFunc(all, func(s serving) bool { return s.toolset.name == name })
	if i < 0 {
		return serving{}, false
	}
	return all[i], true
}

// openToolsets makes those that serve from the start.
func (g *Gateway) openToolsets() error {
	plan, err := g.planToolsets(g.cfg)
	if err != nil {
		return err
	}
	g.serveToolsets(plan, g.cfg)
	if name := g.opts.Toolset; name != "" {
		_, err = g.toolset(g.LocalContext(context.Background()), name)
	}
	return err
}

// planToolsets makes the toolsets of a configuration. One that was there before
// goes on, with its sessions and with what was found in it, unless clients were
// told another title or description.
func (g *Gateway) planToolsets(cfg *Config) ([]serving, error) {
	plan := make([]serving, 0, len(cfg.Toolsets))
	for _, c := range cfg.Toolsets {
		s, ok := g.toolsets.named(c.Name)
		if !ok || s.cfg.Title != c.Title || s.cfg.Description != c.Description {
			s = serving{toolset: g.newToolset(&c, cfg)}
		}
		if s.set == nil || !s.cfg.same(&c) {
			built, err := c.build(g.cat, g.policyFailed(c.Name))
			if err != nil {
				return nil, err
			}
			s.set, s.cfg = built, c
		}
		plan = append(plan, s)
	}
	return plan, nil
}

func (g *Gateway) newToolset(c *Toolset, cfg *Config) *toolset {
	t := &toolset{g: g, name: c.Name, title: c.Title, about: c.Description, found: view.Watch(g.memory(c.Name))}
	t.discovery = view.NewDiscovery(t.found, cfg.MCP.discovery())
	return t
}

// memory keeps what callers find in a toolset, apart from what they find
// elsewhere.
func (g *Gateway) memory(toolset string) view.Memory {
	if g.store == nil {
		return view.NewMemory(nil)
	}
	return storedMemory{g.store, foundTools + "/" + toolset}
}

// policyFailed tells once of a policy that cannot be evaluated: what it fails for
// is left out.
func (g *Gateway) policyFailed(toolset string) func(string, error) {
	var once sync.Once
	return func(tool string, err error) {
		once.Do(func() {
			g.log.Warn("a tool is left out of the toolset, as its policy cannot be evaluated", "toolset", toolset, "tool", tool, "error", err.Error())
		})
	}
}

// serveToolsets puts a plan in place. Lists are looked at anew once the catalog
// has changed.
func (g *Gateway) serveToolsets(plan []serving, cfg *Config) {
	for _, s := range plan {
		s.toolset.discovery.Change(cfg.MCP.discovery())
		s.toolset.now.Store(s.set)
	}
	g.toolsets.list.Store(&plan)
}

// endToolsets ends those of a plan that another does not have.
func (g *Gateway) endToolsets(before, after []serving) {
	for _, s := range before {
		if slices.ContainsFunc(after, func(a serving) bool { return a.toolset == s.toolset }) {
			continue
		}
		s.toolset.now.Store(nil)
		g.retiring.Go(func() {
			ctx, cancel := context.WithTimeout(g.life, g.config().Limits.drainTimeout())
			defer cancel()
			if err := s.toolset.end(ctx); err != nil {
				g.log.Warn("the toolset was not closed cleanly", "toolset", s.toolset.name, "error", err.Error())
			}
		})
	}
}

// closeToolsets ends all of them.
func (g *Gateway) closeToolsets(ctx context.Context) error {
	all := g.toolsets.all()
	faults := make([]error, len(all))
	var wg sync.WaitGroup
	for i, s := range all {
		wg.Go(func() { faults[i] = s.toolset.end(ctx) })
	}
	wg.Wait()
	return errors.Join(faults...)
}

// part is what the caller on ctx has of the catalog in the toolset.
func (t *toolset) part(ctx context.Context) tools.Part {
	if now := t.now.Load(); now != nil {
		return now.Part(ctx)
	}
	return tools.Part{Class: "gone"}
}

// narrow returns a context whose caller works in the toolset.
func (t *toolset) narrow(ctx context.Context) context.Context {
	return tools.WithPart(view.WithMemory(ctx, t.found), t.part)
}

// server returns the MCP server of the toolset, or nil once it has ended.
func (t *toolset) server() *mcpserver.Server {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mcp == nil && !t.ended {
		opts := t.g.mcpOptions()
		opts.Name, opts.Title, opts.Instructions = t.name, t.title, t.about
		opts.Part, opts.Discovery = t.part, t.discovery
		opts.Authenticate = func(r *http.Request) (context.Context, string, error) { return t.g.mcpCallerIn(r, t.name) }
		t.mcp = mcpserver.New(t.g.cat, opts)
	}
	if t.ended {
		return nil
	}
	return t.mcp
}

func (t *toolset) end(ctx context.Context) error {
	t.mu.Lock()
	t.ended = true
	s := t.mcp
	t.mu.Unlock()
	if s == nil {
		return nil
	}
	return s.Shutdown(ctx)
}

// count returns how many tools the caller on ctx is listed in the toolset, and
// whether there is one that is more than a means to reach others.
func (t *toolset) count(ctx context.Context) (n int, some bool) {
	c := view.Memo(view.From(t.narrow(ctx), t.g.cat), tallyKey{}, takeTally)
	return c.listed, c.some
}

type tallyKey struct{}

// tally is the count of one visibility class.
type tally struct {
	listed int
	some   bool
}

func takeTally(v view.View) (c tally) {
	for tool := range v.All() {
		if tool.Kind != tools.KindMeta || tool.Loading == tools.LoadingAlways {
			c.listed++
		}
		c.some = c.some || !isMeans(tool)
	}
	return c
}

// apiToolsets are the toolsets as the caller on ctx may know of them: who operates
// the gateway knows all, and others those in which there is something for them.
func (g *Gateway) apiToolsets(ctx context.Context) []api.Toolset {
	all := operates(ctx)
	var out []api.Toolset
	for _, s := range g.toolsets.all() {
		t := s.toolset
		if n, some := t.count(ctx); some || all {
			out = append(out, api.Toolset{Name: t.name, Title: t.title, Description: t.about, Path: toolsetPath + t.name, Tools: n})
		}
	}
	return out
}

// toolset returns the one of that name, if the caller on ctx may know of it.
func (g *Gateway) toolset(ctx context.Context, name string) (*toolset, error) {
	s, ok := g.toolsets.named(name)
	if ok && !operates(ctx) {
		_, ok = s.toolset.count(ctx)
	}
	if ok {
		return s.toolset, nil
	}
	e := &api.Error{Code: api.CodeToolsetNotFound, Message: fmt.Sprintf("there is no toolset %q", clip(name)), Class: tools.ErrClassPermanent}
	var known []string
	for _, row := range g.apiToolsets(ctx) {
		known = append(known, row.Name)
	}
	if near, ok := nearest.Word(name, known); ok {
		e.Message += fmt.Sprintf(", did you mean %q?", near)
	}
	return nil, e
}

// WithToolset returns a context whose caller works in a toolset: it sees, finds and
// can call what is in it and nothing else, through every entrance and in turns. The
// error is an *api.Error for a toolset that is not there for the caller.
func (g *Gateway) WithToolset(ctx context.Context, name string) (context.Context, error) {
	t, err := g.toolset(ctx, name)
	if err != nil {
		return nil, err
	}
	return t.narrow(ctx), nil
}

// toolsetPath begins the paths of the MCP servers of toolsets.
const toolsetPath = "/mcp/"

// serveToolset serves MCP in the toolset that the path names.
func (g *Gateway) serveToolset(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, toolsetPath), "/")
	ctx, _, err := g.mcpCallerIn(r, name)
	if err != nil {
		api.WriteError(w, refusedCaller(err))
		return
	}
	t, err := g.toolset(ctx, name)
	if err != nil {
		api.WriteError(w, err)
		return
	}
	server := t.server()
	if server == nil {
		api.WriteError(w, &api.Error{Code: api.CodeOverloaded, Message: "the toolset is being closed", Class: tools.ErrClassTransient, Retryable: true})
		return
	}
	server.ServeHTTP(w, r)
}

// refusedCaller is what a caller is told that was not admitted.
func refusedCaller(err error) *api.Error {
	e := &api.Error{Code: api.CodeUnauthenticated, Message: err.Error(), Class: tools.ErrClassPermanent}
	if refusal, ok := errors.AsType[*mcpserver.Refusal](err); ok && refusal.Status == http.StatusBadRequest {
		e.Code, e.Message = api.CodeInvalidRequest, refusal.Message
	}
	return e
}
