package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/gateway/gatewaytest"
	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
)

// logbook is a log that a test can read while it is written.
type logbook struct{ peertest.Log }

func (l *logbook) logger() *slog.Logger { return l.Logger(slog.LevelDebug) }

func bounded(t testing.TB) context.Context { return peertest.Bounded(t) }

func parse(t testing.TB, text string) *gateway.Config { return gatewaytest.Parse(t, text) }

// open starts a gateway whose sources had their first attempt, and closes it
// when the test ends.
func open(t testing.TB, cfg *gateway.Config, opts *gateway.Options) *gateway.Gateway {
	return gatewaytest.Open(t, cfg, opts)
}

// child is the configuration of a child process of this test binary.
func child(name string) string {
	return fmt.Sprintf("{name: %s, command: [%q], env: {%s: \"1\"}}", name, os.Args[0], childVariable)
}

func call(t testing.TB, g *gateway.Gateway, name, args string) string {
	t.Helper()
	res, err := tools.Invoke(g.LocalContext(bounded(t)), g.Catalog(), name, json.RawMessage(args))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	out, err := res.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func names(t testing.TB, g *gateway.Gateway) []string {
	var list []string
	for _, tool := range g.Catalog().List(tools.FilterFrom(g.LocalContext(bounded(t)))) {
		if tool.Kind != tools.KindMeta { // which are always there
			list = append(list, tool.Name)
		}
	}
	return list
}

// await waits until done, looking again at each change of the catalog.
func await(t testing.TB, g *gateway.Gateway, done func() bool) {
	t.Helper()
	changes, stop := g.Catalog().Watch()
	defer stop()
	for ctx := bounded(t); !done(); {
		select {
		case <-changes:
		case <-time.After(20 * time.Millisecond): // states change a moment later
		case <-ctx.Done():
			t.Fatalf("it did not happen; sources: %+v, tools: %v", g.Sources(), names(t, g))
		}
	}
}

func registerGreet(cat tools.ToolCatalog) error {
	return inproc.RegisterFunc(cat, "greet", func(_ context.Context, in textArgs) (textArgs, error) {
		return textArgs{"hello " + in.Text}, nil
	})
}

func TestEverySourceAnswers(t *testing.T) {
	cfg := parse(t, "tools: {built_in: [text.echo], mcp_servers: ["+child("kid")+"]}")
	g := open(t, cfg, &gateway.Options{Register: []func(tools.ToolCatalog) error{registerGreet}})
	want := []string{"greet", "kid_echo", "kid_grow", "kid_process", "text.echo"}
	if diff := cmp.Diff(want, names(t, g)); diff != "" {
		t.Fatal(diff)
	}
	for name, want := range map[string]string{"greet": `{"text":"hello x"}`, "kid_echo": `{"text":"x"}`, "text.echo": `{"text":"x"}`} {
		if got := call(t, g, name, `{"text":"x"}`); got != want {
			t.Errorf("%s = %s, want %s", name, got, want)
		}
	}
	wantState := []gateway.SourceState{{Name: "kid", Kind: "mcp", State: gateway.SourceReady, Tools: 3}}
	if diff := cmp.Diff(wantState, g.Sources()); diff != "" {
		t.Error(diff)
	}
}

func TestChangesOfASourceAreFollowed(t *testing.T) {
	g := open(t, parse(t, "tools: {mcp_servers: ["+child("kid")+"]}"), nil)
	call(t, g, "kid_grow", `{"text":"later"}`)
	await(t, g, func() bool { return slices.Contains(names(t, g), "kid_later") })
}

func TestADownServerHoldsUpNobody(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()
	cfg := parse(t, "tools: {mcp_servers: [{name: gone, url: 'http://"+addr+"/mcp'}, "+child("kid")+"]}")
	book := &logbook{}
	g := open(t, cfg, &gateway.Options{Logger: book.logger()})
	states := g.Sources()
	if states[0].State != gateway.SourceDown || states[0].Error == "" || states[1].State != gateway.SourceReady {
		t.Fatalf("states: %+v", states)
	}
	if got := call(t, g, "kid_echo", `{"text":"x"}`); got != `{"text":"x"}` {
		t.Errorf("the other server answers %s", got)
	}
	if !strings.Contains(book.String(), "source=gone") {
		t.Errorf("the log does not name it:\n%s", book)
	}
	serveAt(t, addr)
	await(t, g, func() bool { return g.Sources()[0].State == gateway.SourceReady })
	if got := call(t, g, "gone_echo", `{"text":"back"}`); got != `{"text":"back"}` {
		t.Errorf("after it came up: %s", got)
	}
}

// serveAt starts an MCP server on an address that was free a moment ago.
func serveAt(t *testing.T, addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	own := childServer()
	server := &http.Server{Handler: mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return own }, nil)}
	go func() { _ = server.Serve(ln) }()
	t.Cleanup(func() {
		for session := range own.Sessions() {
			_ = session.Close()
		}
		_ = server.Close()
	})
}

func TestAServerOfHTTPAndSSE(t *testing.T) {
	own := childServer()
	server := httptest.NewServer(mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return own }, nil))
	t.Cleanup(server.Close)
	g := open(t, parse(t, "tools: {mcp_servers: [{name: chosen, url: '"+server.URL+"', transport_mode: sse}, {name: found, url: '"+server.URL+"'}]}"), nil)
	for _, tool := range []string{"chosen_echo", "found_echo"} {
		if got := call(t, g, tool, `{"text":"old"}`); got != `{"text":"old"}` {
			t.Errorf("%s: %s", tool, got)
		}
	}
}

func TestAnEntryWaitsForItsTool(t *testing.T) {
	book := &logbook{}
	cfg := parse(t, `
tools:
  entries:
    - {name: greet, tags: [late], side_effect: read, description: Better., policy: {max_attempts: 1, timeout_ms: 50}}
    - {name: text.echo, loading_mode: deferred}
  built_in: [text.echo]`)
	g := open(t, cfg, &gateway.Options{Logger: book.logger()})
	if got := g.PendingEntries(); !slices.Equal(got, []string{"greet"}) {
		t.Fatalf("pending: %v", got)
	}
	for _, want := range []string{"an entry names a tool that does not exist yet", "tool=greet"} {
		if !strings.Contains(book.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, book)
		}
	}
	if err := registerGreet(g.Catalog()); err != nil {
		t.Fatal(err)
	}
	d, _ := g.Catalog().Resolve("greet")
	if d.Tool.Description != "Better." || !slices.Equal(d.Tool.Tags, []string{"late"}) || d.Tool.SideEffects != tools.SideEffectRead ||
		d.Tool.Policy.MaxRetries != -1 || d.Tool.Policy.TimeoutMS != 50 {
		t.Errorf("the entry was not applied: %+v", d.Tool)
	}
	if got := g.PendingEntries(); len(got) != 0 {
		t.Errorf("pending: %v", got)
	}
}

func TestADeniedToolIsDenied(t *testing.T) {
	cfg := parse(t, "tools: {built_in: [text.echo, clock.now], entries: [{name: text.echo, approval: {policy: denied, reason: not today}}]}")
	g := open(t, cfg, nil)
	_, err := tools.Invoke(g.LocalContext(bounded(t)), g.Catalog(), "text.echo", json.RawMessage(`{"text":"x"}`))
	if !errors.Is(err, tools.ErrToolDenied) || !strings.Contains(err.Error(), "not today") {
		t.Errorf("err = %v", err)
	}
	call(t, g, "clock.now", `{}`)
}

func TestScopesOfTheLocalCaller(t *testing.T) {
	const entries = "entries: [{name: text.echo, auth_scopes: [echo]}], built_in: [text.echo]"
	if got := names(t, open(t, parse(t, "tools: {"+entries+"}"), nil)); len(got) != 0 {
		t.Errorf("without the scope: %v", got)
	}
	if got := names(t, open(t, parse(t, "tools: {granted_scopes: [echo], "+entries+"}"), nil)); len(got) != 1 {
		t.Errorf("with the scope: %v", got)
	}
}

func TestOpenRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"listen: 0.0.0.0:80": "toolcrib.yaml:1:9: listen: is an address that other machines reach, and this version has no authentication; expected an address of this machine alone, such as 127.0.0.1:7711",
		"listen: ':80'":      "listen: is an address that other machines reach",
		"tools: {entries: [{name: x, approval: {policy: gated}}]}": "toolcrib.yaml:1:48: tools.entries[0].approval.policy: gated is not available in this version",
	} {
		g, err := gateway.Open(bounded(t), parse(t, text), nil)
		if g != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	failing := func(tools.ToolCatalog) error { return errors.New("my tools fail") }
	if _, err := gateway.Open(bounded(t), nil, &gateway.Options{Register: []func(tools.ToolCatalog) error{failing}}); err == nil || !strings.Contains(err.Error(), "my tools fail") {
		t.Errorf("err = %v", err)
	}
	if _, err := gateway.Open(bounded(t), &gateway.Config{Tools: gateway.Tools{MCPServers: []gateway.MCPServer{{Name: "a b"}}}}, nil); err == nil ||
		!strings.Contains(err.Error(), `tools.mcp_servers[0].name: "a b" is not a name`) {
		t.Errorf("a config made in Go: %v", err)
	}
}

func TestTheDataFolderIsMade(t *testing.T) {
	dir := t.TempDir()
	cfg, err := gateway.Parse(filepath.Join(dir, "toolcrib.yaml"), []byte("data_dir: a/b"))
	if err != nil {
		t.Fatal(err)
	}
	open(t, cfg, nil)
	open(t, cfg, &gateway.Options{DataDir: filepath.Join(dir, "c")})
	for _, want := range []string{"a/b", "c"} {
		if info, err := os.Stat(filepath.Join(dir, want)); err != nil || !info.IsDir() {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := gateway.Open(bounded(t), nil, &gateway.Options{DataDir: os.Args[0]}); err == nil || !strings.Contains(err.Error(), "data folder") {
		t.Errorf("a file in its place: %v", err)
	}
}

// Whatever keeps a start from happening is reported at once.
func TestEveryObstacleIsReported(t *testing.T) {
	err := parse(t, `
listen: 0.0.0.0:80
tools:
  entries: [{name: x, approval: {policy: gated}}, {name: y, approval: {policy: gated}}]
  mcp_servers:
    - {name: a, url: http://localhost:1, headers: {A: "${GATEWAY_TEST_NOT_SET}"}}`).Validate()
	var faults gateway.ConfigErrors
	if !errors.As(err, &faults) || !errors.Is(err, gateway.ErrUnavailable) || len(faults) != 4 {
		t.Errorf("err = %v", err)
	}
}

func TestAChildThatDiesComesBack(t *testing.T) {
	g := open(t, parse(t, "tools: {mcp_servers: ["+child("kid")+"]}"), nil)
	var before processResult
	if err := json.Unmarshal([]byte(call(t, g, "kid_process", `{}`)), &before); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(before.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, g, func() bool {
		res, err := tools.Invoke(g.LocalContext(bounded(t)), g.Catalog(), "kid_process", nil)
		var after processResult
		return err == nil && json.Unmarshal(res.Structured, &after) == nil && after.PID != before.PID
	})
	await(t, g, func() bool { return g.Sources()[0].State == gateway.SourceReady })
}

func TestMissingSecretsAreNamed(t *testing.T) {
	t.Setenv("GATEWAY_TEST_EMPTY", "")
	cfg := parse(t, `
tools:
  mcp_servers:
    - name: a
      command: [x]
      env: {A: "${GATEWAY_TEST_NOT_SET} and ${GATEWAY_TEST_EMPTY}", B: "file:not/there"}
  openapi:
    - name: b
      document: d.yaml
      auth: {kind: bearer, secret: "${GATEWAY_TEST_NOT_SET}"}`)
	_, err := gateway.Open(bounded(t), cfg, nil)
	var faults gateway.ConfigErrors
	if !errors.As(err, &faults) || len(faults) != 3 {
		t.Fatalf("err = %v", err)
	}
	for i, want := range []string{
		":6:16: tools.mcp_servers[0].env.A: the environment variable GATEWAY_TEST_NOT_SET is not set",
		":6:72: tools.mcp_servers[0].env.B: the file not/there cannot be read: no such file or directory",
		":10:36: tools.openapi[0].auth.secret: the environment variable GATEWAY_TEST_NOT_SET is not set",
	} {
		if !strings.Contains(faults[i].Error(), want) {
			t.Errorf("%v\nwant %s", faults[i], want)
		}
	}
}

// A secret reaches the child that it is for, and nothing else.
func TestSecretsGoWhereTheyBelong(t *testing.T) {
	const canary = "s3cr3t-c4n4ry"
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte(canary+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GATEWAY_TEST_CANARY", canary)
	for _, reference := range []string{"${GATEWAY_TEST_CANARY}", "file:token", "${file:token}"} {
		text := fmt.Sprintf("tools: {mcp_servers: [{name: kid, command: [%q], env: {%s: '1', CHILD_SECRET: '%s'}}, {name: bad, command: [%q, -nope], env: {CHILD_SECRET: '%s'}}]}",
			os.Args[0], childVariable, reference, os.Args[0], reference)
		cfg, err := gateway.Parse(filepath.Join(dir, "toolcrib.yaml"), []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		book := &logbook{}
		g := open(t, cfg, &gateway.Options{Logger: book.logger()})
		if got := call(t, g, "kid_process", `{}`); !strings.Contains(got, canary) {
			t.Errorf("%s: the child was given %s", reference, got)
		}
		if kid := g.Sources()[0]; len(kid.Refused) != 1 || !strings.Contains(kid.Refused[0].Reason, "points to nothing") {
			t.Errorf("%s: refused: %+v", reference, kid.Refused)
		}
		if states, _ := json.Marshal(g.Sources()); bytes.Contains(states, []byte(canary)) || strings.Contains(book.String(), canary) {
			t.Errorf("%s: the secret is shown:\n%s\n%s", reference, states, book)
		}
	}
}

func TestCloseDrains(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	register := func(cat tools.ToolCatalog) error {
		return inproc.RegisterFunc(cat, "slow", func(context.Context, nothing) (nothing, error) {
			close(entered)
			<-release
			return nothing{}, nil
		})
	}
	g := open(t, parse(t, "tools: {built_in: [text.echo], mcp_servers: ["+child("kid")+"]}"),
		&gateway.Options{Register: []func(tools.ToolCatalog) error{register}})
	var process processResult
	if err := json.Unmarshal([]byte(call(t, g, "kid_process", `{}`)), &process); err != nil {
		t.Fatal(err)
	}
	slow := make(chan error, 1)
	go func() {
		_, err := tools.Invoke(g.LocalContext(bounded(t)), g.Catalog(), "slow", nil)
		slow <- err
	}()
	<-entered
	closed := make(chan error, 1)
	go func() { closed <- g.Close(bounded(t)) }()
	awaitStatus(t, g, http.StatusServiceUnavailable)
	_, err := tools.Invoke(g.LocalContext(bounded(t)), g.Catalog(), "text.echo", json.RawMessage(`{"text":"x"}`))
	if !errors.Is(err, tools.ErrOverloaded) || !errors.Is(err, gateway.ErrClosed) {
		t.Errorf("a call during the drain: %v", err)
	}
	select {
	case err := <-closed:
		t.Fatalf("closed before the call ended: %v", err)
	default:
	}
	close(release)
	if err := errors.Join(<-slow, <-closed); err != nil {
		t.Errorf("drain: %v", err)
	}
	if err := syscall.Kill(process.PID, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the child is still there: %v", err)
	}
	if s := g.Sources()[0]; s.State != gateway.SourceClosed {
		t.Errorf("state after close: %+v", s)
	}
}

// A call that does not end is left behind when the bound is over.
func TestCloseIsBounded(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	register := func(cat tools.ToolCatalog) error {
		return inproc.RegisterFunc(cat, "stuck", func(context.Context, nothing) (nothing, error) {
			close(entered)
			<-release
			return nothing{}, nil
		})
	}
	g, err := gateway.Open(bounded(t), nil, &gateway.Options{Register: []func(tools.ToolCatalog) error{register}})
	if err != nil {
		t.Fatal(err)
	}
	stuck := make(chan struct{})
	go func() {
		defer close(stuck)
		_, _ = tools.Invoke(g.LocalContext(bounded(t)), g.Catalog(), "stuck", nil)
	}()
	<-entered
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := g.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("close: %v", err)
	}
	close(release)
	<-stuck
}
