package provider

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/tools"
)

// Catalog is a handler that runs the tools of a catalog. It is made by
// FromCatalog.
type Catalog struct {
	from    tools.ToolCatalog
	secrets tools.SecretSource

	once  sync.Once
	run   tools.ToolCatalog
	specs []registry.ToolSpec
	err   error
}

var _ Contractor = (*Catalog)(nil)

// FromCatalog returns a handler that runs the tools that cat holds when Serve
// begins. The gateway's door has checked, approved, admitted and counted a call
// before it comes here; so arguments and results are checked against the
// schemas once more, hidden arguments are filled in, and the tool is run once.
// What the catalog does beyond that, its middleware and stages, is the
// gateway's work.
//
// The tool finds the caller's identity, its call and its _meta on the context,
// and its progress, log lines and questions reach the caller.
func FromCatalog(cat tools.ToolCatalog) *Catalog { return &Catalog{from: cat} }

// WithSecrets sets what resolves the secrets that tools have injected, and
// returns c. It is called before Serve.
func (c *Catalog) WithSecrets(s tools.SecretSource) *Catalog {
	c.secrets = s
	return c
}

// Contract implements Contractor. Tools that are about tools stay out of it: the
// gateway has its own.
func (c *Catalog) Contract(toolset string) (registry.Contract, error) {
	c.once.Do(c.prepare)
	return registry.Contract{Toolset: toolset, Tools: c.specs}, c.err
}

// prepare binds the tools anew in a catalog of their own, whose road has only
// the steps that belong here.
func (c *Catalog) prepare() {
	if c.from == nil {
		c.err = fmt.Errorf("provider: %w: FromCatalog was given no catalog", registry.ErrInvalid)
		return
	}
	c.run = tools.NewCatalog(tools.WithStages(tools.Stages{Secrets: c.secrets}), tools.WithLogger(slog.New(slog.DiscardHandler)))
	for _, t := range c.from.List(tools.CatalogFilter{LoadingModes: []tools.LoadingMode{tools.LoadingAlways, tools.LoadingDeferred}}) {
		if t.Kind == tools.KindMeta {
			continue
		}
		d, ok := c.from.Resolve(t.Name)
		if !ok {
			continue // it was removed meanwhile
		}
		if err := c.add(d); err != nil {
			c.err = errors.Join(c.err, err)
		}
	}
}

func (c *Catalog) add(d tools.ToolDescriptor) error {
	c.specs = append(c.specs, registry.SpecOf(d.Tool))
	bare := tools.Wrap(d)
	t := &bare.Tool
	t.AuthScopes, t.Tenants, t.Safety.NeedsConfirmation = nil, nil, tools.Unset
	t.Policy = tools.ToolPolicy{TimeoutMS: -1, MaxRetries: -1, Validate: t.Policy.Validate}
	return c.run.Register(bare)
}

// HandleToolCall implements Handler.
func (c *Catalog) HandleToolCall(ctx context.Context, msg registry.ToolCallMessage) (registry.ToolResultMessage, error) {
	if c.once.Do(c.prepare); c.err != nil {
		return registry.ToolResultMessage{}, c.err
	}
	res, err := tools.Invoke(arriving(ctx, &msg), c.run, msg.Tool, msg.Payload)
	if err != nil {
		return registry.ToolResultMessage{}, err
	}
	return registry.ResultMessage(msg.ToolUseID, res)
}

// arriving puts whose call it is on the context, and the way back.
func arriving(ctx context.Context, msg *registry.ToolCallMessage) context.Context {
	e := tools.Entrance{}
	if out, ok := ctx.Value(emitterKey{}).(*emitter); ok {
		e.Peer = peer{out: out}
	}
	if a := msg.Asks; a != nil {
		e.Client = a.Client
		e.Capabilities = tools.Capabilities{Sampling: a.Sampling, ElicitForm: a.ElicitForm, ElicitURL: a.ElicitURL, Roots: a.Roots, Declared: a.Declared}
	}
	if m := msg.Meta; m != nil {
		ctx = identity.WithQuadruple(ctx, identity.Quadruple{RunID: m.RunID,
			Identity: identity.Identity{TenantID: m.TenantID, UserID: m.UserID, SessionID: m.SessionID}})
		e.CallID, e.IdempotencyKey, e.Meta = m.ToolCallID, m.IdempotencyKey, m.Caller
	}
	return tools.WithEntrance(ctx, e)
}
