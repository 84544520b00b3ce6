//go:build unix

package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/registry/stream/connect"
	"github.com/toolcrib/toolcrib/store/sqlstore"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
	"github.com/toolcrib/toolcrib/tools/toolstest"
)

// guarded is a stream server whose users have the rights that the documentation
// lists: gateway, weather, and mail, which has those of weather for itself.
type guarded struct {
	url   string
	admin *redis.Client // of Redis
	log   *peertest.Log
	count func(t *testing.T, name string) int // the events of a stream
}

// documented returns the block of the page that begins with a text.
func documented(t *testing.T, begin string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/workers-permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```text\n"+begin)
	block, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatalf("the page has no block that begins with %s", begin)
	}
	return begin + block
}

// edit changes the documented block before it is used, as an operator would who
// forgot something.
type edit func(block string) string

func guardedNATS(t *testing.T, edits ...edit) *guarded {
	t.Helper()
	block := documented(t, "authorization")
	user := regexp.MustCompile(`(?s)    \{\n      user: weather\n.*?\n    \}\n`).FindString(block)
	if user == "" {
		t.Fatal("the block has no user weather")
	}
	for _, e := range edits {
		block = e(block)
	}
	mail := strings.NewReplacer("weather", "mail", "WEATHER", "MAIL").Replace(user)
	block = strings.Replace(block, "  ]\n}\n", mail+"  ]\n}\n", 1)
	for _, name := range []string{"GATEWAY", "WEATHER", "MAIL"} {
		t.Setenv(name+"_PASSWORD", "secret-of-"+strings.ToLower(name))
	}
	file := filepath.Join(t.TempDir(), "nats.conf")
	config := fmt.Sprintf("listen: \"127.0.0.1:-1\"\njetstream { store_dir: %q }\n%s", t.TempDir(), block)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	opts, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	opts.NoSigs, opts.NoLog = true, true
	s, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server is not ready")
	}
	g := &guarded{url: s.ClientURL(), log: &peertest.Log{}}
	gateway := sync.OnceValue(func() stream.Client { return g.client(t, "gateway") })
	g.count = func(t *testing.T, name string) int {
		st, err := gateway().Stream(t.Context(), name, nil)
		if err != nil {
			t.Fatal(err)
		}
		size, err := st.Size(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return size.Waiting
	}
	return g
}

func guardedRedis(t *testing.T, edits ...edit) *guarded {
	t.Helper()
	block := documented(t, "ACL SETUSER")
	lines := strings.Split(strings.TrimSpace(block), "\n")
	lines = append(lines, strings.NewReplacer("weather", "mail", "WEATHER", "MAIL").Replace(lines[1]))
	for _, e := range edits {
		lines[0], lines[1] = e(lines[0]), e(lines[1])
	}
	r := peertest.StartRedis(t, nil)
	admin := redis.NewClient(&redis.Options{Addr: r.Addr()})
	t.Cleanup(func() { admin.Close() })
	for _, line := range lines {
		typeIn(t, admin, line)
	}
	return &guarded{url: r.URL(), admin: admin, log: &peertest.Log{}, count: func(t *testing.T, name string) int {
		return int(admin.XLen(t.Context(), "pulse:stream:"+name).Val())
	}}
}

// typeIn sends a documented line to Redis, with a password of its user.
func typeIn(t *testing.T, admin *redis.Client, line string) {
	t.Helper()
	var args []any
	for word := range strings.FieldsSeq(line) {
		if name, is := strings.CutSuffix(word, "_PASSWORD"); is {
			word = ">secret-of-" + strings.ToLower(strings.TrimPrefix(name, ">"))
		}
		args = append(args, word)
	}
	if err := admin.Do(t.Context(), args...).Err(); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
}

func (g *guarded) dial(t *testing.T, user string) (stream.Client, error) {
	t.Helper()
	inbox := registry.WorkerInbox(user)
	if user == "gateway" {
		inbox = registry.GatewayInbox("")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	client, err := connect.Client(ctx, g.url, &connect.Options{User: user, Password: "secret-of-" + user, Inbox: inbox, Logger: g.log.Logger(slog.LevelInfo)})
	if err == nil {
		t.Cleanup(func() { client.Close() })
	}
	return client, err
}

func (g *guarded) client(t *testing.T, user string) stream.Client {
	t.Helper()
	client, err := g.dial(t, user)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// crib is a gateway on the server, with a store of its own.
func (g *guarded) crib(t *testing.T) *crib {
	t.Helper()
	return g.cribWith(t, g.options())
}

func (g *guarded) cribWith(t *testing.T, opts *registry.Options) *crib {
	t.Helper()
	c := &crib{t: t, client: g.client(t, "gateway")}
	var err error
	if c.store, err = sqlstore.OpenMemory(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.check(c.store.Close()) })
	c.open(opts)
	return c
}

func (g *guarded) options() *registry.Options {
	o := quick()
	o.Logger = g.log.Logger(slog.LevelInfo)
	return o
}

func (g *guarded) serve(t *testing.T, c *crib, user string, h provider.Handler) (stop func() error) {
	t.Helper()
	client := g.client(t, user)
	return c.serveOn(client, user, h, provider.Options{Logger: g.log.Logger(slog.LevelInfo)})
}

// refusedNothing checks that no right was missing.
func (g *guarded) refusedNothing(t *testing.T) {
	t.Helper()
	for line := range strings.Lines(g.log.String()) {
		if strings.Contains(line, "permit") || strings.Contains(line, "NOPERM") {
			t.Errorf("a right is missing: %s", line)
		}
	}
}

// forecasts is a catalog of tools that use all that a worker can do.
func forecasts(t *testing.T, cancelled chan<- error, release <-chan struct{}) tools.ToolCatalog {
	t.Helper()
	cat := tools.NewCatalog()
	register := func(name string, f func(context.Context, addArgs) (sum, error), effect tools.SideEffect) {
		err := inproc.RegisterFunc(cat, name, f, tools.WithSideEffect(effect), tools.WithDescription("Forecasts."))
		if err != nil {
			t.Fatal(err)
		}
	}
	register("weather.add", func(ctx context.Context, in addArgs) (sum, error) {
		return sum{in.A + in.B}, tools.Progress(ctx, 1, 2, "half")
	}, tools.SideEffectPure)
	register("weather.book", func(ctx context.Context, in addArgs) (sum, error) {
		return sum{in.A + in.B}, tools.Progress(ctx, 1, 2, "half")
	}, tools.SideEffectWrite)
	register("weather.wait", func(ctx context.Context, _ addArgs) (sum, error) {
		cancelled <- nil
		<-ctx.Done()
		cancelled <- ctx.Err()
		return sum{}, ctx.Err()
	}, tools.SideEffectWrite)
	register("weather.late", func(ctx context.Context, in addArgs) (sum, error) {
		cancelled <- nil
		<-release
		return sum{in.A + in.B}, nil
	}, tools.SideEffectWrite)
	register("weather.ask", func(ctx context.Context, _ addArgs) (sum, error) {
		answer, err := tools.CallFrom(ctx).Ask(ctx, form)
		if err == nil && string(answer.Result) != `{"action":"accept"}` {
			err = fmt.Errorf("the answer is %s", answer.Result)
		}
		return sum{1}, err
	}, tools.SideEffectWrite)
	return cat
}

// overheard is a worker's tools, and the stream on which their results are left.
type overheard struct {
	*provider.Catalog
	results atomic.Pointer[string]
}

func (o *overheard) HandleToolCall(ctx context.Context, m registry.ToolCallMessage) (registry.ToolResultMessage, error) {
	o.results.Store(&m.ReplyTo)
	return o.Catalog.HandleToolCall(ctx, m)
}

var backends = []struct {
	name  string
	start func(*testing.T, ...edit) *guarded
}{{"NATS", guardedNATS}, {"Redis", guardedRedis}}

// A gateway and a worker need no more than the documented rights.
func TestPermissionsSuffice(t *testing.T) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			g := b.start(t)
			defer func() {
				if t.Failed() {
					t.Logf("the log:\n%s", g.log)
				}
			}()
			c := g.crib(t)
			cancelled, release := make(chan error, 4), make(chan struct{})
			h := &overheard{Catalog: provider.FromCatalog(forecasts(t, cancelled, release))}
			stop := g.serve(t, c, "weather", h)
			c.up("weather", 1)

			for _, tool := range []string{"weather.add", "weather.book"} {
				heard := &notes{}
				ctx := tools.WithEntrance(caller(t), tools.Entrance{Peer: heard, Client: "client-1"})
				res, err := c.call(ctx, tool, `{"a":1,"b":2}`)
				if err != nil || string(structured(t, res)) != `{"sum":3}` {
					t.Errorf("%s: %s, %v", tool, res.Structured, err)
				}
				await(t, "progress is heard", func() bool { return heard.progressed() == 1 })
			}

			peer := &toolstest.Peer{Answers: func(context.Context, tools.Question) (tools.Answer, error) {
				return tools.Answer{Result: json.RawMessage(`{"action":"accept"}`)}, nil
			}}
			if _, err := c.call(asked(t, peer), "weather.ask", `{"a":1,"b":2}`); err != nil {
				t.Errorf("a question: %v", err)
			}

			ctx, cancel := context.WithCancel(caller(t))
			done := make(chan error, 1)
			go func() { _, err := c.call(ctx, "weather.wait", `{"a":1,"b":2}`); done <- err }()
			receive(t, cancelled)
			cancel()
			if err := receive(t, cancelled); !errors.Is(err, context.Canceled) {
				t.Errorf("the tool ended with %v", err)
			}
			receive(t, done)

			since := time.Now()
			await(t, "a ping is answered", func() bool { return c.reg.Toolsets()[0].LastPong.After(since) })

			c.add("weather", "call", `{"type":"nonsense"}`)
			await(t, "a message that cannot be served is put aside", func() bool { return g.count(t, registry.DeadStream("weather")) == 1 })
			if page, err := c.reg.DeadLetters(t.Context(), registry.DeadLetterQuery{}); err != nil || len(page.Letters) != 1 {
				t.Errorf("the dead letters: %+v, %v", page, err)
			}
			lateResult(t, g, c, h, cancelled, release)

			c.check(stop())
			await(t, "the worker is gone", func() bool { return len(c.reg.Toolsets()[0].Workers) == 0 })
			g.refusedNothing(t)
		})
	}
}

// lateResult has a call end while no gateway is there, and the next one take its
// result.
func lateResult(t *testing.T, g *guarded, c *crib, h *overheard, begun <-chan error, release chan<- struct{}) {
	t.Helper()
	ctx := tools.WithEntrance(caller(t), tools.Entrance{CallID: "late", IdempotencyKey: "late"})
	done := make(chan error, 1)
	go func() { _, err := c.call(ctx, "weather.late", `{"a":1,"b":2}`); done <- err }()
	receive(t, begun)
	c.close(c.reg)
	if err := receive(t, done); err == nil {
		t.Error("a call of a gateway that ended has a result")
	}
	close(release)
	await(t, "the result is left on a stream", func() bool { return g.count(t, *h.results.Load()) == 1 })
	c.open(g.options())
	c.up("weather", 1)
	res, err := c.call(ctx, "weather.late", `{"a":1,"b":2}`)
	if err != nil || string(structured(t, res)) != `{"sum":3}` {
		t.Errorf("a result of the time without a gateway: %s, %v", res.Structured, err)
	}
}

func (n *notes) progressed() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.progress)
}

// A line that is typed in again leaves the user nothing that it had before, neither
// passwords nor selectors.
func TestPermissionsTypedInAgain(t *testing.T) {
	g := guardedRedis(t)
	for i, line := range strings.Split(strings.TrimSpace(documented(t, "ACL SETUSER")), "\n") {
		user := []string{"gateway", "weather"}[i]
		state := func() string { return fmt.Sprint(g.admin.Do(t.Context(), "ACL", "GETUSER", user).Val()) }
		before := state()
		typeIn(t, g.admin, "ACL SETUSER "+user+" >old ~* &* +@all (~* +@all)")
		typeIn(t, g.admin, line)
		if after := state(); after != before {
			t.Errorf("the user %s was %s\nand is %s", user, before, after)
		}
	}
}

// The selectors that the page names for calls by hand suffice to answer them.
func TestPermissionsOfCallsByHand(t *testing.T) {
	page, err := os.ReadFile("../../docs/workers-permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)three more selectors, `(.*?)`").FindSubmatch(page)
	if found == nil {
		t.Fatal("the page names no selectors for calls by hand")
	}
	more := " " + strings.Join(strings.Fields(string(found[1])), " ")
	g := guardedRedis(t, func(block string) string {
		if strings.HasPrefix(block, "ACL SETUSER weather") {
			return block + more
		}
		return block
	})
	c := g.crib(t)
	g.serve(t, c, "weather", provider.FromCatalog(forecasts(t, nil, nil)))
	c.up("weather", 1)
	for i := range 2 { // progress and result, and again where the stream is there
		c.add("weather", "call", fmt.Sprintf(`{"type":"call","tool_use_id":"h","tool":"weather.add","payload":{"a":1,"b":%d}}`, i))
		await(t, "the call is answered", func() bool { return g.count(t, registry.ResultStream("h")) >= 2*(i+1) })
	}
	g.refusedNothing(t)
}
