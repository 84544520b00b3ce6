//go:build unix

package provider_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/stream"
)

// prefixed grants the tools of mail under names of their own.
func prefixed(_ context.Context, a *registry.Announcement) (registry.Grant, error) {
	if a.Toolset == "mail" {
		return registry.Grant{Prefix: "m."}, nil
	}
	return registry.Grant{}, nil
}

// A call of one toolset that is brought to the workers of another, which have a tool
// of the same name and description, is not run there.
func TestDivertedCalls(t *testing.T) {
	g := guardedNATS(t)
	opts := g.options()
	opts.Admit = prefixed
	c := g.cribWith(t, opts)
	var runs atomic.Int64
	weather := serving(func(context.Context, registry.ToolCallMessage) (registry.ToolResultMessage, error) {
		runs.Add(1)
		return registry.ToolResultMessage{ResultJSON: []byte(`"what only weather knows"`)}, nil
	})
	g.serve(t, c, "weather", weather)
	c.up("weather", 1)
	announce(t, g.client(t, "mail"), "mail", weather.tools)
	c.up("mail", 1)
	swap(c.cat, c.source)

	conn, err := nats.Connect(g.url, nats.UserInfo("mail", "secret-of-mail"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const mail = "toolcrib~toolset~mail~requests.provider"
	for _, tool := range []string{"m.demo.read", "m.demo.write"} {
		if err := conn.PublishRequest("$JS.API.CONSUMER.MSG.NEXT."+mail, "toolcrib.stream.toolset.weather.requests.call", []byte(`{"batch":1}`)); err != nil {
			t.Fatal(err)
		}
		if err := conn.Flush(); err != nil {
			t.Fatal(err)
		}
		res, err := c.call(caller(t), tool, `{}`)
		if err == nil || !strings.Contains(err.Error(), "a worker of another toolset") || runs.Load() != 0 {
			t.Errorf("%s of mail, brought to weather: %s, %v", tool, res.Structured, err)
		}
	}
	if _, err := c.call(caller(t), "demo.write", `{}`); err != nil || runs.Load() != 1 {
		t.Errorf("weather's own call: %v", err)
	}
}

// announce says that a worker serves a toolset, and makes the consumer of its calls.
func announce(t *testing.T, client stream.Client, toolset string, list []registry.ToolSpec) {
	t.Helper()
	a := registry.Announcement{Toolset: toolset, Instance: "i", Concurrency: 1, Contract: &registry.Contract{Toolset: toolset, Tools: list}}
	payload, err := registry.Encode(a)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Request(caller(t), registry.AnnounceSubject(""), stream.Message{Name: registry.MessageAnnounce, Payload: payload})
	if err != nil || !strings.Contains(string(answer.Payload), registry.StatusServe) {
		t.Fatalf("%s, %v", answer.Payload, err)
	}
	s, err := client.Stream(t.Context(), registry.RequestStream(toolset), nil)
	if err != nil {
		t.Fatal(err)
	}
	sink, err := s.Sink(t.Context(), "provider", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
}
