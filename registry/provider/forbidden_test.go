//go:build unix

package provider_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/store/sqlstore"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
)

// A worker with the rights of another toolset, and of its own toolset beside the
// protocol, is refused at once, with an error that names what.
func TestPermissionsKeepToolsetsApart(t *testing.T) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			g := b.start(t)
			c := g.crib(t)
			g.serve(t, c, "weather", provider.FromCatalog(forecasts(t, nil, nil)))
			c.up("weather", 1)
			mail := g.client(t, "mail")
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			for _, name := range []string{registry.RequestStream("weather"), registry.DeadStream("weather"), registry.RequestStream("mail")} {
				forbidden(t, "add to "+name, name, func() error {
					s, err := mail.Stream(ctx, name, nil)
					if err != nil {
						return err
					}
					_, err = s.Add(ctx, "call", []byte(`{"type":"call","tool_use_id":"x","tool":"weather.add","payload":{}}`))
					return err
				})
			}
			for _, name := range []string{registry.RequestStream("weather"), registry.DeadStream("weather")} {
				forbidden(t, "read "+name, name, func() error {
					s, err := mail.Stream(ctx, name, nil)
					if err != nil {
						return err
					}
					_, err = s.Sink(ctx, "provider", nil)
					return err
				})
			}
			answer := func(context.Context, stream.Message) stream.Message { return stream.Message{Name: "ok"} }
			for _, subject := range []string{registry.AnnounceSubject(""), "registry:default:process:ANY", "registry:default:settle:ANY", "registry:default:home",
				registry.InstanceSubject("weather", "i")} {
				forbidden(t, "answer on "+subject, subject, func() error { _, err := mail.Respond(ctx, subject, answer); return err })
			}
			for _, subject := range []string{registry.CancelSubject("weather"), registry.PongSubject(""), "registry:default:news", "registry:default:process:ANY:notes"} {
				forbidden(t, "listen to "+subject, subject, func() error { _, err := mail.Subscribe(ctx, subject, func(stream.Message) {}); return err })
			}
			instance := c.reg.Toolsets()[0].Workers[0].Instance
			subject := registry.InstanceSubject("weather", instance)
			forbidden(t, "ask a worker of weather", subject, func() error { _, err := mail.Request(ctx, subject, stream.Message{Name: "ping"}); return err })
			if res, err := c.call(caller(t), "weather.book", `{"a":1,"b":2}`); err != nil || string(structured(t, res)) != `{"sum":3}` {
				t.Errorf("a call after all that: %s, %v", res.Structured, err)
			}
		})
	}
}

// forbidden checks that something is refused soon, and that the error says where.
func forbidden(t *testing.T, what, name string, try func() error) {
	t.Helper()
	began := time.Now()
	err := try()
	if !errors.Is(err, stream.ErrForbidden) {
		t.Errorf("%s: %v, want it refused", what, err)
		return
	}
	as := func(parts string) bool { return strings.Contains(err.Error(), strings.ReplaceAll(name, ":", parts)) }
	if !as(":") && !as("~") && !as(".") || !strings.Contains(err.Error(), "permit it with") {
		t.Errorf("%s: the error says neither where nor what to do: %v", what, err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("%s: the error took %v", what, took)
	}
}

// A gateway says which right it lacks: when it begins, or to its log and its caller.
func TestMissingPermissionsOfAGateway(t *testing.T) {
	for _, tt := range []struct {
		name    string
		start   func(*testing.T, ...edit) *guarded
		without string
		says    string
	}{
		{"answer", guardedNATS, `"toolcrib.ask.registry.default.>"`, `subscribe to "toolcrib.ask.registry.default.`},
		{"results", guardedNATS, `"$JS.API.STREAM.CREATE.*"`, `publish to "$JS.API.STREAM.CREATE.toolcrib~registry~default~results~`},
		{"answer through Redis", guardedRedis, "&toolcrib:0:respond:????????????????:registry:default:* ", ":registry:default:"},
		{"results in Redis", guardedRedis, "~pulse:stream:registry:default:results:* ", `"pulse:stream:registry:default:results:`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := tt.start(t, ofGateway(t, tt.without))
			client := g.client(t, "gateway")
			records, err := sqlstore.OpenMemory(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer records.Close()
			_, err = registry.New(caller(t), client, records, g.options())
			if !errors.Is(err, stream.ErrForbidden) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("the gateway begins with %v, want %s", err, tt.says)
			}
		})
	}
	for _, tt := range []struct {
		name    string
		start   func(*testing.T, ...edit) *guarded
		without string
		logs    string
	}{
		{"send", guardedNATS, `"toolcrib.stream.toolset.*.requests.*"`, `toolcrib.stream.toolset.weather.requests.call`},
		{"send through Redis", guardedRedis, "+xadd ", `pulse:stream:toolset:weather:requests`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := tt.start(t, ofGateway(t, tt.without))
			c := g.crib(t)
			g.serve(t, c, "weather", provider.FromCatalog(forecasts(t, nil, nil)))
			c.up("weather", 1)
			_, err := c.call(caller(t), "weather.book", `{"a":1,"b":2}`)
			if err == nil || !strings.Contains(err.Error(), "does not let the gateway send calls") || !strings.Contains(g.log.String(), tt.logs) {
				t.Errorf("the caller gets %v, and the log is\n%s", err, g.log)
			}
		})
	}
}

// ofGateway leaves a right of the gateway out.
func ofGateway(t *testing.T, right string) edit {
	return func(block string) string {
		if strings.HasPrefix(block, "ACL SETUSER weather") {
			return block
		}
		if !strings.Contains(block, right) {
			t.Fatalf("nothing to leave out: %s", right)
		}
		return strings.Replace(block, right, "", 1)
	}
}

// ofWorker leaves a right of the worker out.
func ofWorker(t *testing.T, right string) edit {
	return func(block string) string {
		gateway, weather, found := strings.Cut(block, "user: weather")
		if !found {
			gateway, weather = "", block
		}
		if strings.HasPrefix(block, "ACL SETUSER gateway") {
			return block
		}
		if !strings.Contains(weather, right) {
			t.Fatalf("nothing to leave out: %s", right)
		}
		if found {
			gateway += "user: weather"
		}
		return gateway + strings.ReplaceAll(weather, right, "")
	}
}

// A worker that starts before any gateway waits for the streams that it may not make,
// and one whose tools were replaced ends.
func TestPermissionsOfAChange(t *testing.T) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			g := b.start(t)
			first := &crib{t: t}
			cat := tools.NewCatalog()
			add := func(_ context.Context, in addArgs) (sum, error) { return sum{in.A + in.B}, nil }
			if err := inproc.RegisterFunc(cat, "weather.add", add, tools.WithDescription("Before.")); err != nil {
				t.Fatal(err)
			}
			stop := g.serve(t, first, "weather", provider.FromCatalog(cat))
			if b.name == "NATS" {
				await(t, "the worker says what it waits for", func() bool {
					return strings.Contains(g.log.String(), "waits for a gateway to make the streams")
				})
				if strings.Contains(g.log.String(), "permit it") {
					t.Errorf("a worker that lacks no right asks for one:\n%s", g.log)
				}
			}
			c := g.crib(t)
			c.up("weather", 1)
			if _, err := c.call(caller(t), "weather.add", `{"a":1,"b":2}`); err != nil {
				t.Error(err)
			}
			g.serve(t, c, "weather", provider.FromCatalog(forecasts(t, nil, nil)))
			await(t, "the other tools are there", func() bool { return c.reg.Toolsets()[0].Revision == 2 && c.live("weather") == 1 })
			if err := stop(); !errors.Is(err, provider.ErrSuperseded) {
				t.Errorf("the worker before ends with %v", err)
			}
			if strings.Contains(g.log.String(), "did not end in time") {
				t.Errorf("the log:\n%s", g.log)
			}
		})
	}
}

// What clients of NATS can do beside package stream is refused as well.
func TestPermissionsOfRawNATS(t *testing.T) {
	g := guardedNATS(t)
	c := g.crib(t)
	g.serve(t, c, "weather", provider.FromCatalog(forecasts(t, nil, nil)))
	c.up("weather", 1)
	denied := make(chan error, 100)
	conn, err := nats.Connect(g.url, nats.UserInfo("mail", "secret-of-mail"), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err }))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, subject := range []string{">", "toolcrib.>", "_INBOX.>", "toolcrib.inbox.>", "toolcrib.inbox.registry.default.>", "toolcrib.inbox.toolset.weather.>",
		"toolcrib.stream.>", "toolcrib.bus.>", "toolcrib.ask.>", "$JS.>", "$JS.ACK.>", "$JS.EVENT.>", "$SYS.>"} {
		if _, err := conn.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		if err := receive(t, denied); !strings.Contains(err.Error(), `Subscription to "`+subject+`"`) {
			t.Errorf("listen to %s: %v", subject, err)
		}
	}
	for _, subject := range []string{
		"toolcrib.stream.toolset.weather.requests.call", "toolcrib.stream.toolset~weather~requests.call", "toolcrib.stream.toolset.weather.dead.call",
		"toolcrib.stream.toolset.mail.requests.call", "toolcrib.stream.toolset~mail~requests.call", "toolcrib.short.result~x.result",
		"toolcrib.ask.toolset.weather.worker.i.ping", "toolcrib.bus.toolset.weather.cancel.cancel", "toolcrib.bus.registry.default.hello.hello",
		"toolcrib.bus.registry.default.news.announce", "toolcrib.inbox.registry.default.x.1", "toolcrib.inbox.toolset.weather.x.1",
		"$JS.ACK.toolcrib~toolset~weather~requests.provider.1.1.1.1.0", "$JS.API.CONSUMER.MSG.NEXT.toolcrib~toolset~weather~requests.provider",
		"$JS.API.CONSUMER.CREATE.toolcrib~toolset~weather~requests.provider", "$JS.API.CONSUMER.CREATE.toolcrib~toolset~mail~requests.other",
		"$JS.API.CONSUMER.DURABLE.CREATE.toolcrib~toolset~mail~requests.provider", "$JS.API.STREAM.CREATE.toolcrib~toolset~mail~requests",
		"$JS.API.STREAM.UPDATE.toolcrib~toolset~mail~requests", "$JS.API.STREAM.DELETE.toolcrib~toolset~weather~requests",
		"$JS.API.STREAM.PURGE.toolcrib~toolset~weather~requests", "$JS.API.STREAM.MSG.GET.toolcrib~toolset~weather~requests",
		"$JS.API.DIRECT.GET.toolcrib~toolset~weather~requests", "$JS.API.STREAM.INFO.toolcrib~toolset~weather~requests", "$JS.API.STREAM.NAMES",
	} {
		if err := conn.Publish(subject, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		if err := receive(t, denied); !strings.Contains(err.Error(), `Publish to "`+subject+`"`) {
			t.Errorf("publish to %s: %v", subject, err)
		}
	}
}

// A gateway answers to inboxes alone, and brings nothing to where a worker may not
// publish itself.
func TestAnswersGoToInboxes(t *testing.T) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			g := b.start(t)
			c := g.crib(t)
			heard := make(chan stream.Message, 10)
			weather := g.client(t, "weather")
			if _, err := weather.Subscribe(t.Context(), registry.CancelSubject("weather"), func(m stream.Message) { heard <- m }); err != nil {
				t.Fatal(err)
			}
			g.askFor(t, "mail", "announce", "bus.toolset.weather.cancel")
			await(t, "the gateway refuses to answer", func() bool { return strings.Contains(g.log.String(), "no inbox") })
			if err := c.client.Publish(t.Context(), registry.CancelSubject("weather"), stream.Message{Name: "end"}); err != nil {
				t.Fatal(err)
			}
			if m := receive(t, heard); m.Name != "end" {
				t.Errorf("an answer went to the workers of weather: %+v", m)
			}
		})
	}
}

// askFor asks a gateway for an answer that goes somewhere.
func (g *guarded) askFor(t *testing.T, user, what, where string) {
	t.Helper()
	if g.admin == nil {
		conn, err := nats.Connect(g.url, nats.UserInfo(user, "secret-of-"+user))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.PublishRequest("toolcrib.ask.registry.default."+what+"."+what, "toolcrib."+where+".answer", []byte("{}")); err != nil {
			t.Fatal(err)
		}
		if err := conn.Flush(); err != nil {
			t.Fatal(err)
		}
		return
	}
	conn := redis.NewClient(&redis.Options{Addr: g.admin.Options().Addr, Username: user, Password: "secret-of-" + user, Protocol: 2})
	defer conn.Close()
	channels := conn.PubSubChannels(t.Context(), "toolcrib:0:respond:*:registry:default:"+what).Val()
	if len(channels) != 1 {
		t.Fatalf("those who respond: %q", channels)
	}
	inbox := "toolcrib:0:" + strings.ReplaceAll(where, ".", ":")
	frame := string(rune(len(inbox))) + inbox + "\x01n" + string(rune(len(what))) + what + "{}"
	if err := conn.Publish(t.Context(), channels[0], frame).Err(); err != nil {
		t.Fatal(err)
	}
}

// What clients of Redis can do beside package stream is refused as well.
func TestPermissionsOfRawRedis(t *testing.T) {
	g := guardedRedis(t)
	c := g.crib(t)
	g.serve(t, c, "weather", provider.FromCatalog(forecasts(t, nil, nil)))
	c.up("weather", 1)
	conn := redis.NewClient(&redis.Options{Addr: g.admin.Options().Addr, Username: "mail", Password: "secret-of-mail", Protocol: 2})
	defer conn.Close()
	results := g.admin.Keys(t.Context(), "pulse:stream:registry:default:results:*").Val()
	if len(results) != 1 {
		t.Fatalf("streams of results: %q", results)
	}
	const weather, mail = "pulse:stream:toolset:weather:requests", "pulse:stream:toolset:mail:requests"
	id := strings.Repeat("0", 16)
	for _, words := range [][]any{
		{"XREADGROUP", "GROUP", "provider", "x", "STREAMS", weather, ">"}, {"XRANGE", weather, "-", "+"}, {"XREAD", "STREAMS", weather, "0"},
		{"XACK", weather, "provider", "1-1"}, {"XADD", weather, "*", "n", "call", "p", "{}"}, {"XDEL", weather, "1-1"}, {"DEL", weather},
		{"XPENDING", weather, "provider"}, {"XINFO", "GROUPS", weather}, {"HSET", "{" + weather + "}:state", "events", "1"},
		{"XADD", mail, "*", "n", "call", "p", "{}"}, {"KEYS", "*"}, {"SCAN", "0"},
		{"XREADGROUP", "GROUP", "registry", "x", "STREAMS", results[0], ">"}, {"XRANGE", results[0], "-", "+"}, {"XDEL", results[0], "1-1"},
		{"DEL", results[0]}, {"EVAL", "return redis.call('XRANGE', KEYS[1], '-', '+')", 1, results[0]},
		{"EVAL", "return redis.call('XADD', KEYS[1], '*', 'n', 'call', 'p', '{}')", 1, mail}, {"EVAL", "return redis.call('XLEN', '" + weather + "')", 0},
		{"XADD", "{" + results[0] + "}:later", "*", "n", "x"}, {"XADD", "{" + results[0] + "}:state", "*", "n", "x"},
		{"EVAL", "return redis.call('XADD', KEYS[1], '*', 'n', 'x')", 1, "{" + results[0] + "}:later"}, {"HGET", results[0], "events"},
		{"PUBLISH", "toolcrib:0:respond:" + id + ":toolset:weather:worker:i", "x"}, {"PUBLISH", "toolcrib:0:bus:toolset:weather:cancel", "x"},
		{"PUBLISH", "toolcrib:0:bus:registry:default:hello", "x"}, {"PUBLISH", "toolcrib:0:bus:registry:default:news", "x"},
		{"PUBLISH", "toolcrib:0:inbox:toolset:weather:" + id, "x"}, {"PUBLISH", "toolcrib:0:wake:toolset:weather:requests", "1"},
		{"SUBSCRIBE", "toolcrib:0:inbox:registry:default:" + id}, {"SUBSCRIBE", "toolcrib:0:inbox:toolset:weather:" + id},
		{"SUBSCRIBE", "toolcrib:0:respond:" + id + ":registry:default:announce"}, {"SUBSCRIBE", "toolcrib:0:bus:registry:default:process:p:notes"},
		{"PSUBSCRIBE", "*"}, {"ACL", "LIST"}, {"CONFIG", "GET", "*"}, {"MONITOR"}, {"FLUSHALL"}, {"CLIENT", "LIST"}, {"SCRIPT", "FLUSH"},
	} {
		if err := conn.Do(t.Context(), words...).Err(); err == nil || !strings.Contains(err.Error(), "NOPERM") && !strings.Contains(err.Error(), "ACL failure") &&
			!strings.Contains(err.Error(), "The user executing the script can't") {
			t.Errorf("%v: %v, want it refused", words, err)
		}
	}
}

// A right that is missing is told of at once, where the process can tell, and is in
// the log otherwise.
func TestMissingPermissions(t *testing.T) {
	for _, tt := range []struct {
		name    string
		start   func(*testing.T, ...edit) *guarded
		without string
		begins  bool   // the worker begins all the same
		says    string // its error, or its log
	}{
		{"answers", guardedNATS, `"toolcrib.inbox.toolset.weather.>"`, false, `subscribe to "toolcrib.inbox.toolset.weather.`},
		{"announce", guardedNATS, `"toolcrib.ask.registry.default.announce.*"`, false, `publish to "toolcrib.ask.registry.default.announce.announce"`},
		{"respond", guardedNATS, `"toolcrib.ask.toolset.weather.worker.>"`, false, `subscribe to "toolcrib.ask.toolset.weather.worker.`},
		{"cancel", guardedNATS, `"toolcrib.bus.toolset.weather.cancel.*"`, false, `subscribe to "toolcrib.bus.toolset.weather.cancel.*"`},
		{"look", guardedNATS, `"$JS.API.STREAM.INFO.toolcrib~toolset~weather~requests"`, false, `publish to "$JS.API.STREAM.INFO.toolcrib~toolset~weather~requests"`},
		{"consumer", guardedNATS, `"$JS.API.CONSUMER.CREATE.toolcrib~toolset~weather~requests.provider"`, false,
			`publish to "$JS.API.CONSUMER.CREATE.toolcrib~toolset~weather~requests.provider`},
		{"next", guardedNATS, `"$JS.API.CONSUMER.MSG.NEXT.toolcrib~toolset~weather~requests.provider"`, true,
			`$JS.API.CONSUMER.MSG.NEXT.toolcrib~toolset~weather~requests.provider`},
		{"claim", guardedNATS, `"toolcrib.ask.registry.default.process.*.*"`, true, `toolcrib.ask.registry.default.process.`},
		{"scripts", guardedRedis, "+script|load ", false, "SCRIPT LOAD"},
		{"listen", guardedRedis, "&toolcrib:0:bus:toolset:weather:cancel ", false, "SUBSCRIBE toolcrib:0:bus:toolset:weather:cancel"},
		{"answers of Redis", guardedRedis, "&toolcrib:0:inbox:toolset:weather:* ", false, "SUBSCRIBE toolcrib:0:inbox:toolset:weather:"},
		{"announce to Redis", guardedRedis, "&toolcrib:0:respond:????????????????:registry:default:announce ", false, ":registry:default:announce"},
		{"keys", guardedRedis, "~pulse:stream:toolset:weather:requests ", false, `"pulse:stream:toolset:weather:requests"`},
		{"read", guardedRedis, "+xreadgroup ", true, "XREADGROUP pulse:stream:toolset:weather:requests"},
		{"acknowledge", guardedRedis, "+xack ", true, "ACL LOG names the command"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := tt.start(t, ofWorker(t, tt.without))
			c := g.crib(t)
			ctx, cancel := context.WithTimeout(caller(t), patience)
			defer cancel()
			client, err := g.dial(t, "weather")
			if err == nil {
				pong := provider.Pong(client, "")
				serving, end := context.WithCancel(ctx)
				done := make(chan error, 1)
				go func() {
					done <- provider.Serve(serving, client, "weather", provider.FromCatalog(forecasts(t, nil, nil)), provider.Options{Pong: pong, Logger: g.log.Logger(slog.LevelInfo)})
				}()
				if tt.begins {
					if tt.name == "claim" || tt.name == "acknowledge" {
						c.up("weather", 1)
						go c.call(serving, "weather.book", `{"a":1,"b":2}`) //nolint:errcheck // It ends with the test.
					}
					await(t, "the log says it", func() bool {
						return strings.Contains(g.log.String(), tt.says) && strings.Contains(g.log.String(), "permit")
					})
					if tt.name == "acknowledge" && !strings.Contains(g.log.String(), "level=ERROR") {
						t.Errorf("the log has no error:\n%s", g.log)
					}
					end()
				}
				err = receive(t, done)
				end()
			}
			if tt.begins {
				return
			}
			if !errors.Is(err, stream.ErrForbidden) || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "secret-of") {
				t.Errorf("the worker ends with %v\nwant %s", err, tt.says)
			}
		})
	}
}
