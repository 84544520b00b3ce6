package provider_test

import (
	"context"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/provider"
)

// What the stream loses is sent again from the record.
func TestLostByTheStream(t *testing.T) {
	c := newCrib(t, nil)
	idle := c.serve("demo", serving(echo), provider.Options{})
	c.up("demo", 1)
	c.check(idle())
	c.announce("demo") // and take nothing
	s, err := c.client.Stream(t.Context(), registry.RequestStream("demo"), nil)
	if err != nil {
		t.Fatal(err)
	}
	out := make(chan outcome, 2)
	for _, tool := range []string{"demo.read", "demo.write"} {
		go func() {
			res, err := c.call(registry.Wait(caller(t)), tool, `{"x":1}`)
			out <- outcome{res, err}
		}()
	}
	await(t, "the stream has both calls", func() bool {
		size, err := s.Size(t.Context())
		return err == nil && size.Waiting == 2
	})
	c.check(s.Destroy(t.Context()))
	c.serve("demo", serving(echo), provider.Options{})
	for range 2 {
		if o := <-out; o.err != nil {
			t.Errorf("a call that the stream lost: %v", o.err)
		}
	}
}

// A call whose event was acknowledged, and whose answer got lost, is sent again;
// one that a worker still has is not.
func TestLostAnswer(t *testing.T) {
	c := newCrib(t, nil)
	g := newGate()
	c.serve("demo", serving(g.handle), provider.Options{})
	c.up("demo", 1)
	long := c.calls(1, "demo.read")
	<-g.entered // and stays for longer than a lost answer takes to be noticed
	c.announce("demo")
	s, err := c.client.Stream(t.Context(), registry.RequestStream("demo"), nil)
	if err != nil {
		t.Fatal(err)
	}
	sink, err := s.Sink(t.Context(), "provider", nil)
	if err != nil {
		t.Fatal(err)
	}
	out := make(chan outcome, 64)
	for sent := 0; ; sent++ { // until this sink gets one of them
		go func() {
			res, err := c.call(registry.Wait(caller(t)), "demo.read", `{}`)
			out <- outcome{res, err}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		e, err := sink.Receive(ctx)
		cancel()
		if err != nil {
			continue
		}
		c.check(e.Ack(t.Context()))
		c.check(sink.Close())
		m, err := registry.DecodeCall(e.Payload)
		if err != nil {
			t.Fatal(err)
		}
		for id := <-g.entered; id != m.ToolUseID; id = <-g.entered {
		}
		close(g.open)
		for range sent + 1 {
			if o := <-out; o.err != nil {
				t.Error(o.err)
			}
		}
		break
	}
	if o := <-long; o.err != nil {
		t.Error(o.err)
	}
	if n := len(g.entered); n != 0 {
		t.Errorf("%d calls that a worker had were sent again", n)
	}
}
