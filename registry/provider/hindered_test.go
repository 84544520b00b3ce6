//go:build unix

package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/tools"
)

// hindered returns what the only worker says that keeps it from serving.
func (c *crib) hindered() string {
	for _, s := range c.reg.Toolsets() {
		for _, w := range s.Workers {
			return w.Hindered
		}
	}
	return ""
}

// A worker that lacks a right for serving calls is up, and says what it lacks: to its
// log once, and to gateways, which tell who waits for it.
func TestWorkerSaysWhatItLacks(t *testing.T) {
	for _, tt := range []struct {
		name    string
		start   func(*testing.T, ...edit) *guarded
		without string
		tool    string // that does not work then
		says    []string
	}{
		{"claim", guardedNATS, `"toolcrib.ask.registry.default.process.*.*"`, "weather.book",
			[]string{"it cannot claim calls", `publish to "toolcrib.ask.registry.default.process.`}},
		{"publish", guardedNATS, `"toolcrib.bus.registry.default.process.*.notes.*"`, "weather.add",
			[]string{"it cannot publish results", `publish to "toolcrib.bus.registry.default.process.`, "notes"}},
		{"take", guardedNATS, `"$JS.API.CONSUMER.MSG.NEXT.toolcrib~toolset~weather~requests.provider"`, "weather.add",
			[]string{"it cannot take calls", `$JS.API.CONSUMER.MSG.NEXT.toolcrib~toolset~weather~requests.provider`}},
		{"acknowledge", guardedNATS, `"$JS.ACK.toolcrib~toolset~weather~requests.provider.>"`, "",
			[]string{"it cannot take calls", `$JS.ACK.toolcrib~toolset~weather~requests.provider.`}},
		{"claim over Redis", guardedRedis, "&toolcrib:0:respond:????????????????:registry:default:process:* ", "weather.book",
			[]string{"it cannot claim calls", "PUBLISH toolcrib:0:respond:"}},
		{"publish over Redis", guardedRedis, "&toolcrib:0:bus:registry:default:process:*:notes ", "weather.add",
			[]string{"it cannot publish results", "PUBLISH toolcrib:0:bus:registry:default:process:"}},
		{"take from Redis", guardedRedis, "+xreadgroup ", "weather.add", []string{"it cannot take calls", "XREADGROUP pulse:stream:toolset:weather:requests"}},
		{"acknowledge to Redis", guardedRedis, "+xack ", "", []string{"it cannot take calls", "ACL LOG names the command"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := tt.start(t, ofWorker(t, tt.without))
			c := g.crib(t)
			g.serve(t, c, "weather", provider.FromCatalog(forecasts(t, nil, nil)))
			c.up("weather", 1)
			if said := c.hindered(); said != "" && tt.name[:4] != "take" {
				t.Errorf("before any call the worker says %s", said)
			}
			calling, end := context.WithCancel(caller(t))
			defer end()
			go func() {
				for calling.Err() == nil {
					c.call(calling, "weather.add", `{"a":1,"b":2}`)  //nolint:errcheck // It may fail.
					c.call(calling, "weather.book", `{"a":1,"b":2}`) //nolint:errcheck // It may fail.
				}
			}()
			if tt.tool != "" {
				go c.call(calling, tt.tool, `{"a":1,"b":2}`) //nolint:errcheck // It ends with the test.
			}
			await(t, "the worker says that it is kept from serving", func() bool {
				said := c.hindered()
				return !slices.ContainsFunc(tt.says, func(part string) bool { return !strings.Contains(said, part) })
			})
			if said := c.hindered(); len(said) > registry.MaxHinderedBytes || strings.Contains(said, "secret-of") {
				t.Errorf("it says %s", said)
			}
			if n := strings.Count(g.log.String(), "the stream server does not permit what the worker needs"); n != 1 && tt.tool != "" {
				t.Errorf("the worker's log says so %d times:\n%s", n, g.log)
			}
			await(t, "the gateway's log says it", func() bool { return strings.Contains(g.log.String(), "a worker is kept from serving calls") })
			if tt.tool == "" {
				return // Its calls are answered all the same.
			}
			ctx, cancel := context.WithTimeout(caller(t), time.Second)
			defer cancel()
			_, err := c.call(registry.Wait(ctx), tt.tool, `{"a":1,"b":2}`)
			var te *tools.Error
			if !errors.As(err, &te) || !strings.Contains(te.Message, "one says that it is kept from serving calls") || strings.Contains(te.Message, "permit") {
				t.Errorf("the caller is told %v", err)
			}
			if g.admin == nil {
				return
			}
			typeIn(t, g.admin, strings.Split(strings.TrimSpace(documented(t, "ACL SETUSER")), "\n")[1])
			await(t, "calls are served again", func() bool { return c.hindered() == "" })
		})
	}
}

// What somebody answers to pings is bounded, and has no control characters.
func TestHinderedIsBounded(t *testing.T) {
	c := newCrib(t, nil)
	c.serve("demo", serving(echo), provider.Options{})
	c.up("demo", 1)
	said := strings.Repeat("no \x1b[2J\n", 1000)
	_, err := c.client.Respond(t.Context(), registry.InstanceSubject("demo", "idle"), func(context.Context, stream.Message) stream.Message {
		payload, err := json.Marshal(map[string]any{"hindered": said})
		c.check(err)
		return stream.Message{Name: registry.MessagePong, Payload: payload}
	})
	c.check(err)
	c.announce("demo")
	kept := ""
	await(t, "it is kept", func() bool {
		for _, w := range c.reg.Toolsets()[0].Workers {
			if w.Instance == "idle" {
				kept = w.Hindered
			}
		}
		return kept != ""
	})
	if len(kept) > registry.MaxHinderedBytes || strings.ContainsFunc(kept, unicode.IsControl) || !strings.HasPrefix(kept, "no  [2J") {
		t.Errorf("%d bytes are kept: %q", len(kept), kept)
	}
}
