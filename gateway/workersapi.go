package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/view"
)

// apiWorkers are the toolsets of workers as the caller on ctx may know of them:
// who operates the gateway sees all, and others which of the toolsets are up
// whose tools they see.
func (g *Gateway) apiWorkers(ctx context.Context) []registry.ToolsetState {
	all := g.Workers()
	if operates(ctx) {
		return all
	}
	seen := view.From(ctx, g.cat)
	var out []registry.ToolsetState
	for _, t := range all {
		visible := slices.DeleteFunc(slices.Clone(t.Tools), func(name string) bool {
			tool, ok := seen.Tool(name)
			return !ok || tool.Source != registry.SourceID
		})
		if len(visible) > 0 {
			out = append(out, registry.ToolsetState{Name: t.Name, Tools: visible, Up: t.Up})
		}
	}
	return out
}

// apiForgetWorkers removes a toolset that no worker serves, for who operates the
// gateway.
func (g *Gateway) apiForgetWorkers(ctx context.Context, name string) error {
	if operates(ctx) && g.workers != nil && g.workers.registry() == nil {
		return unreached()
	}
	list := g.Workers()
	at := slices.IndexFunc(list, func(t registry.ToolsetState) bool { return t.Name == name })
	switch {
	case !operates(ctx) || at < 0:
		return &api.Error{Code: api.CodeToolsetNotFound, Message: fmt.Sprintf("no workers serve a toolset %q", clip(name)), Class: tools.ErrClassPermanent}
	case list[at].Up:
		return &api.Error{Code: api.CodeInvalidRequest, Message: fmt.Sprintf("workers still serve the toolset %q; end them first", name), Class: tools.ErrClassPermanent}
	}
	reg := g.workers.registry()
	if reg == nil {
		return ErrClosed
	}
	return reg.Forget(ctx, name)
}

func unreached() error {
	return &api.Error{Code: api.CodeInternal, Message: "the stream server of the workers is not reached", Class: tools.ErrClassTransient, Retryable: true}
}

// apiDeadLetters returns what workers could not serve, to who operates the gateway.
func (g *Gateway) apiDeadLetters(ctx context.Context, q registry.DeadLetterQuery) (registry.DeadLetterPage, error) {
	reg := g.workers.registry()
	switch {
	case !operates(ctx):
		return registry.DeadLetterPage{}, &api.Error{Code: api.CodeDenied, Class: tools.ErrClassPermanent, Message: "dead letters are shown to who operates the gateway alone"}
	case g.workers == nil && q.Toolset == "":
		return registry.DeadLetterPage{Letters: []registry.DeadLetter{}}, nil
	case g.workers != nil && reg == nil:
		return registry.DeadLetterPage{}, unreached()
	}
	page, err := registry.DeadLetterPage{}, store.ErrNotFound
	if reg != nil {
		page, err = reg.DeadLetters(ctx, q)
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		err = &api.Error{Code: api.CodeToolsetNotFound, Message: fmt.Sprintf("no workers serve a toolset %q", clip(q.Toolset)), Class: tools.ErrClassPermanent}
	case errors.Is(err, registry.ErrInvalid), errors.Is(err, stream.ErrInvalid):
		err = &api.Error{Code: api.CodeInvalidRequest, Message: err.Error(), Class: tools.ErrClassPermanent}
	}
	return page, err
}
