package provider_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/registry/stream"
)

// Another gateway that hears of a worker which it knows leaves its catalog as it is.
func TestKnownWorkersChangeNoCatalog(t *testing.T) {
	opts := quick()
	opts.PingInterval, opts.StaleAfter = time.Minute, time.Hour
	c := newCrib(t, opts)
	c.serve("demo", serving(echo), provider.Options{})
	c.up("demo", 1)
	other, err := registry.New(t.Context(), c.client, c.store, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close(other)
	var changes atomic.Int64
	for _, r := range []*registry.Registry{c.reg, other} {
		source := r.Source()
		source.OnChange(func() { changes.Add(1) })
		c.check(source.Connect(t.Context()))
	}
	hello := stream.Message{Name: registry.MessageHello}
	for range 3 {
		since := []time.Time{time.Now(), time.Now()}
		c.check(c.client.Publish(caller(t), registry.HelloSubject(""), hello))
		await(t, "both hear of the worker", func() bool {
			for i, r := range []*registry.Registry{c.reg, other} {
				if list := r.Toolsets(); len(list) != 1 || !list[0].LastPong.After(since[i]) {
					return false
				}
			}
			return true
		})
	}
	if n := changes.Load(); n > 0 {
		t.Errorf("the catalog changed %d times", n)
	}
	if _, err := c.call(caller(t), "demo.read", `{}`); err != nil {
		t.Error(err)
	}
}
