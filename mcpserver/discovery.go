package mcpserver

import (
	"context"
	"strings"
	"sync"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/view"
)

// declared returns what the caller on ctx is listed. What it has found is
// missing while its memory fails.
func (s *Server) declared(ctx context.Context) view.Declared {
	d, err := s.opts.Discovery.Declared(s.withMemory(ctx), s.cat)
	if err != nil {
		s.logger.WarnContext(ctx, "what the caller has found is not known and not listed", "error", err)
	}
	return d
}

// withMemory has tools keep what they find for the caller where its list looks
// for it.
func (s *Server) withMemory(ctx context.Context) context.Context {
	if s.opts.Discovery == nil {
		return ctx
	}
	return view.WithMemory(ctx, s.opts.Discovery.Memory())
}

// howToFind is what instructions say where something is deferred.
const howToFind = "Not every tool is listed: find others with " + view.SearchTool + ", by what they should do. " +
	"What you find joins the list; where the list does not change, call it with tool_call."

// instructions tell the caller on ctx how to use the server.
func (s *Server) instructions(ctx context.Context) string {
	if s.opts.Discovery == nil || s.declared(ctx).Deferred() == 0 {
		return s.opts.Instructions
	}
	return strings.TrimSpace(s.opts.Instructions + "\n\n" + howToFind)
}

// finds are callers who found something and whose clients have yet to hear that
// their list is longer now. It is safe for concurrent use.
type finds struct {
	wake chan struct{} // holds one: there are some

	mu      sync.Mutex
	callers map[identity.Identity]bool
}

func (f *finds) add(caller identity.Identity) {
	f.mu.Lock()
	if f.callers == nil {
		f.callers = map[identity.Identity]bool{}
	}
	f.callers[caller] = true
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// take returns the callers so far.
func (f *finds) take() map[identity.Identity]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	callers := f.callers
	f.callers = nil
	return callers
}

// followFinds tells the clients of whoever found something, until ctx ends.
func (s *Server) followFinds(ctx context.Context) {
	f := &s.audience.finds
	for {
		select {
		case <-f.wake:
		case <-ctx.Done():
			return
		}
		callers := f.take()
		s.audience.wakeListeners(func(who identity.Identity) bool { return callers[who] })
		for _, sess := range s.wire.Sessions() {
			if c := clientOf(sess); c != nil && callers[c.identity()] {
				s.tellSession(ctx, sess)
			}
		}
	}
}
