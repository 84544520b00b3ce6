package mcpserver_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/mcpserver"
	"github.com/toolcrib/toolcrib/tools"
)

// Of two sessions that watch, only the one whose list changed hears of it. That
// the other heard nothing is certain once it has heard of a later change.
func TestListChangedReachesWhomItConcerns(t *testing.T) {
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			c := newCrib(t)
			url := listenHTTP(t, c.serve(t, &mcpserver.Options{Authenticate: byTenant}))
			var cleared, plain hearing
			clearedSession := connect(t, overHTTP(t, url, "Bearer acme secret"), revision, cleared.options())
			plainSession := connect(t, overHTTP(t, url, "Bearer zeta"), revision, plain.options())
			sdkNames(t, clearedSession)
			sdkNames(t, plainSession)
			watching(t, c, &cleared, &plain)

			add(t, c, tools.Tool{Name: "new.secret", AuthScopes: []string{"secret"}})
			receive(t, cleared.lists)
			if !slices.Contains(sdkNames(t, clearedSession), "new.secret") {
				t.Error("the list was not new when its change was told")
			}
			select {
			case <-plain.lists:
				t.Error("a session hears of a tool that it does not see")
			default:
			}
			if slices.Contains(sdkNames(t, plainSession), "new.secret") {
				t.Error("a session sees what it may not")
			}

			add(t, c, tools.Tool{Name: "new.open"})
			receive(t, plain.lists)
			receive(t, cleared.lists)
			select {
			case <-plain.lists:
				t.Error("a change was told twice, or one that does not concern the session")
			default:
			}
		})
	}
}

// watching waits until each client hears of changes: one of the newest revision
// subscribes to them on its own, some time after it has connected.
func watching(t *testing.T, c *crib, clients ...*hearing) {
	t.Helper()
	for round := 0; round < 10; round++ {
		if round%2 == 0 {
			add(t, c, tools.Tool{Name: "watch.open", Loading: c.watched})
		} else if err := c.Deregister("watch.open"); err != nil {
			t.Fatal(err)
		}
		all := true
		for _, client := range clients {
			select {
			case <-client.lists:
			case <-time.After(2 * time.Second):
				all = false
			}
		}
		if all {
			return
		}
	}
	t.Fatal("a client never hears of changes")
}

func add(t *testing.T, c *crib, tool tools.Tool) {
	t.Helper()
	if err := c.Register(tools.ToolDescriptor{Tool: tool, Invoke: gives(nil)}); err != nil {
		t.Fatal(err)
	}
}

// Many changes at once are told once, over a pipe as over HTTP, in both eras.
func TestChangesAreGathered(t *testing.T) {
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			c := newCrib(t)
			var heard hearing
			session := connect(t, overPipe(t, c.serve(t, nil)), revision, heard.options())
			sdkNames(t, session)
			watching(t, c, &heard)
			var source []tools.ToolDescriptor
			for _, name := range []string{"s.a", "s.b", "s.c"} {
				source = append(source, tools.ToolDescriptor{Tool: tools.Tool{Name: name}, Invoke: gives(nil)})
			}
			for i := range 3 {
				c.SwapSource("src", source[:i+1])
			}
			receive(t, heard.lists)
			if names := sdkNames(t, session); !slices.Contains(names, "s.c") {
				t.Errorf("%v", names)
			}
			c.SwapSource("src", nil)
			receive(t, heard.lists)
			if n := len(heard.lists); n > 1 {
				t.Errorf("%d more notices of five changes", n)
			}
		})
	}
}

// A subscription to nothing that there is here is acknowledged and let go; one
// that names no notifications is refused.
func TestSubscriptions(t *testing.T) {
	c := newCrib(t)
	p := openPipe(t, c.serve(t, nil))
	listen := func(id, notifications string) {
		p.write(t, `{"jsonrpc":"2.0","id":`+id+`,"method":"subscriptions/listen","params":{`+notifications+modernMeta+`}}`)
	}
	listen("1", `"notifications":{"futureListChanged":true},`)
	if _, method := p.read(t); method != "notifications/subscriptions/acknowledged" {
		t.Errorf("first %s", method)
	}
	if id, _ := p.read(t); id != "1" {
		t.Errorf("the answer has id %s", id)
	}
	listen("2", "")
	if id, _ := p.read(t); id != "2" {
		t.Errorf("the answer has id %s", id)
	}
	listen("3", `"notifications":{"toolsListChanged":true},`)
	if _, method := p.read(t); method != "notifications/subscriptions/acknowledged" {
		t.Errorf("first %s", method)
	}
	add(t, c, tools.Tool{Name: "new"})
	if _, method := p.read(t); method != "notifications/tools/list_changed" {
		t.Errorf("then %s", method)
	}
	p.write(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	if said := p.end(t); bytes.Count(said, []byte(`"io.modelcontextprotocol/subscriptionId":3`)) != 2 {
		t.Errorf("two notifications are stamped with their subscription:\n%s", said)
	}
}
