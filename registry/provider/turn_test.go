package provider_test

import (
	"errors"
	"testing"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/tools"
)

// When a registry knows nothing of a toolset any more, the worker on standby may be the
// first to say what it holds. The one that served takes its place then, and goes on.
func TestStandbyIsFirst(t *testing.T) {
	c := newCrib(t, nil)
	before := serving(echo)
	now := handler{HandlerFunc: echo, tools: []registry.ToolSpec{spec("demo.now", tools.SideEffectRead)}}
	c.serve("demo", before, provider.Options{})
	c.up("demo", 1)
	c.serve("demo", now, provider.Options{})
	await(t, "the other tools are there", func() bool { return c.reg.Toolsets()[0].Revision == 2 && c.live("demo") == 1 })
	again := c.serve("demo", before, provider.Options{})
	c.check(c.reg.Forget(caller(t), "demo"))
	await(t, "the worker on standby serves", func() bool { return len(c.reg.Toolsets()) == 1 && c.live("demo") == 1 })
	c.check(c.client.Publish(caller(t), registry.HelloSubject(""), stream.Message{Name: registry.MessageHello}))
	await(t, "the other tools are there again", func() bool { return c.reg.Toolsets()[0].Revision == 2 && c.live("demo") == 1 })
	if err := again(); !errors.Is(err, provider.ErrSuperseded) {
		t.Errorf("the worker of the tools before ended with %v", err)
	}
	if _, err := c.call(caller(t), "demo.now", `{}`); err != nil {
		t.Error(err)
	}
}
