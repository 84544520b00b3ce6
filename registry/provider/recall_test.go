package provider_test

import (
	"context"
	"errors"
	"testing"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/store/sqlstore"
	"github.com/toolcrib/toolcrib/tools"
)

func keyed(ctx context.Context, key string) context.Context {
	return tools.WithEntrance(ctx, tools.Entrance{CallID: key, IdempotencyKey: key})
}

// TestAnswerIsRemembered: who asks again gets the answer that is recorded, though
// no worker serves the toolset any more.
func TestAnswerIsRemembered(t *testing.T) {
	c := newCrib(t, nil)
	stop := c.serve("demo", serving(echo), provider.Options{})
	c.up("demo", 1)
	if _, err := c.call(keyed(caller(t), "k"), "demo.write", `{"n":1}`); err != nil {
		t.Fatal(err)
	}
	c.check(stop())
	c.up("demo", 0)
	for _, ctx := range []context.Context{caller(t), registry.Wait(caller(t))} {
		if res, err := c.call(keyed(ctx, "k"), "demo.write", `{"n":1}`); err != nil || string(res.Structured) != `{"n":1}` {
			t.Errorf("the same call: %s, %v", res.Structured, err)
		}
		if _, err := c.call(keyed(ctx, "k"), "demo.write", `{"n":2}`); !errors.Is(err, tools.ErrIdempotencyConflict) {
			t.Errorf("another body under the same key: %v", err)
		}
	}
}

// TestAnswerComesWhileAnotherGatewayWaits: a worker that ends brings its answer to
// the gateway that took the place of the one which sent the call, where its caller
// already waits for a worker.
func TestAnswerComesWhileAnotherGatewayWaits(t *testing.T) {
	c := newCrib(t, nil)
	began, release := make(chan struct{}), make(chan struct{})
	stop := c.serve("demo", serving(func(_ context.Context, m registry.ToolCallMessage) (registry.ToolResultMessage, error) {
		close(began)
		<-release
		return registry.ToolResultMessage{ResultJSON: m.Payload}, nil
	}), provider.Options{})
	c.up("demo", 1)
	first := c.reg
	gone := make(chan error, 1)
	go func() {
		_, err := c.call(keyed(caller(t), "k"), "demo.write", `{}`)
		gone <- err
	}()
	<-began
	c.close(first)
	<-gone
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	c.open(nil)
	second := c.reg
	ctx, cancel := context.WithCancel(caller(t))
	defer cancel()
	answered := make(chan error, 1)
	go func() {
		_, err := c.call(keyed(registry.Wait(ctx), "k"), "demo.write", `{}`)
		answered <- err
	}()
	await(t, "the call waits", func() bool {
		s := second.Toolsets()
		return len(s) == 1 && s[0].Outstanding == 1
	})
	close(release)
	if err := <-answered; err != nil {
		t.Error(err)
	}
	c.check(<-ended)
}

// TestGatewaysWithStoresOfTheirOwn: a gateway with another store is refused, and
// one that came while nobody was there does not take the results of calls that it
// does not know.
func TestGatewaysWithStoresOfTheirOwn(t *testing.T) {
	c := newCrib(t, nil)
	store, err := sqlstore.OpenMemory(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.check(store.Close()) })
	other := c.connect()
	if _, err := registry.New(t.Context(), other, store, quick()); !errors.Is(err, registry.ErrNamespaceTaken) {
		t.Fatalf("a second store in the namespace: %v", err)
	}
	elsewhere := quick()
	elsewhere.Namespace, elsewhere.Ephemeral = "elsewhere", true
	neighbour, err := registry.New(t.Context(), other, store, elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	c.close(neighbour)
	g := newGate()
	stop := c.serve("demo", serving(g.handle), provider.Options{})
	c.up("demo", 1)
	away := c.reg
	gone := make(chan error, 1)
	go func() {
		_, err := c.call(keyed(caller(t), "k"), "demo.write", `{}`)
		gone <- err
	}()
	<-g.entered
	c.close(away)
	<-gone
	stranger, err := registry.New(t.Context(), other, store, quick())
	if err != nil {
		t.Fatal(err)
	}
	close(g.open)
	c.check(stop())
	c.close(stranger)
	c.open(nil)
	if _, err := c.call(keyed(registry.Wait(caller(t)), "k"), "demo.write", `{}`); err != nil {
		t.Errorf("the same call, whose result was left: %v", err)
	}
	if again := len(g.entered); again != 0 {
		t.Errorf("the tool ran %d times more", again)
	}
}
