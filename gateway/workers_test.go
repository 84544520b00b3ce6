package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/gateway/gatewaytest"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/registry/provider"
	streams "github.com/toolcrib/toolcrib/registry/stream/connect"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
)

const embedded = "data_dir: %s\nworkers: {enabled: true, listen: \"127.0.0.1:0\"%s}\n"

// serveToolset runs a worker of one tool until the test ends or stop is called,
// which waits for it.
func serveToolset(t *testing.T, at gateway.WorkersAddress, toolset, key string) (stop func() error) {
	t.Helper()
	return serveTools(t, at, toolset, key, toolset+".double")
}

func serveTools(t *testing.T, at gateway.WorkersAddress, toolset, key string, names ...string) (stop func() error) {
	t.Helper()
	cat := tools.NewCatalog()
	double := func(_ context.Context, in struct {
		N int `json:"n"`
	}) (int, error) {
		return 2 * in.N, nil
	}
	for _, name := range names {
		if err := inproc.RegisterFunc(cat, name, double); err != nil {
			t.Fatal(err)
		}
	}
	client, err := streams.Client(t.Context(), at.URL, &streams.Options{TokenFile: at.TokenFile})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- provider.Serve(ctx, client, toolset, provider.FromCatalog(cat), provider.Options{Pong: provider.Pong(client, ""), Key: []byte(key)})
	}()
	stopped := false
	stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return errors.Join(<-ended, client.Close())
	}
	t.Cleanup(func() { _ = stop() })
	return stop
}

// awaitTool waits until a tool is in the catalog, or is not.
func awaitTool(t *testing.T, g *gateway.Gateway, name string, there bool) {
	t.Helper()
	sub := g.Bus().Subscribe(events.Filter{Types: []events.EventType{tools.EventTypeCatalogChanged}}, nil)
	defer sub.Close()
	for {
		if _, ok := g.Catalog().Resolve(name); ok == there {
			return
		}
		select {
		case <-sub.Events():
		case <-t.Context().Done():
			t.Fatalf("%s: %v", name, t.Context().Err())
		}
	}
}

func TestWorkersOfTheServerInThisProcess(t *testing.T) {
	dir := t.TempDir()
	cfg := fmt.Sprintf(embedded, dir, "")
	g := gatewaytest.Open(t, gatewaytest.Parse(t, cfg), nil)
	at, ok := g.WorkersAddress()
	if !ok || at.Elsewhere || !strings.HasPrefix(at.URL, "nats://127.0.0.1:") {
		t.Fatalf("workers connect at %+v, %t", at, ok)
	}
	if info, err := os.Stat(at.TokenFile); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the token's file: %v, %v", info, err)
	}
	stop := serveToolset(t, at, "sums", "")
	awaitTool(t, g, "sums.double", true)

	res, err := tools.Invoke(g.LocalContext(t.Context()), g.Catalog(), "sums.double", json.RawMessage(`{"n":21}`))
	if err != nil || string(res.Structured) != "42" {
		t.Fatalf("the worker gave %s, %v", res.Structured, err)
	}
	_, err = tools.Invoke(g.LocalContext(t.Context()), g.Catalog(), "sums.double", json.RawMessage(`{"n":"x"}`))
	if !errors.Is(err, tools.ErrToolInvalidArgs) {
		t.Errorf("wrong arguments: %v", err)
	}
	list := g.Workers()
	if len(list) != 1 || !list[0].Up || len(list[0].Workers) != 1 || !slices.Equal(list[0].Tools, []string{"sums.double"}) {
		t.Errorf("workers: %+v", list)
	}
	if told, err := g.LocalAPI().Workers(g.LocalContext(t.Context())); err != nil || len(told.Toolsets) != 1 || len(told.Toolsets[0].Workers) != 1 {
		t.Errorf("the JSON protocol tells of %+v, %v", told, err)
	}

	// A program beside it joins its stream server, and calls the same worker.
	joined := gatewaytest.Open(t, gatewaytest.Parse(t, cfg), &gateway.Options{Joins: true})
	res, err = tools.Invoke(joined.LocalContext(t.Context()), joined.Catalog(), "sums.double", json.RawMessage(`{"n":4}`))
	if err != nil || string(res.Structured) != "8" {
		t.Errorf("a gateway that joined: %s, %v", res.Structured, err)
	}

	_, err = g.LocalAPI().ForgetWorkers(g.LocalContext(t.Context()), "sums")
	if err == nil || !strings.Contains(err.Error(), "still serve") {
		t.Errorf("a toolset that is served was forgotten: %v", err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	_, err = tools.Invoke(g.LocalContext(t.Context()), g.Catalog(), "sums.double", json.RawMessage(`{"n":1}`))
	var failed *tools.Error
	if !errors.As(err, &failed) || failed.OutcomeUnknown {
		t.Errorf("a call without a worker: %v", err)
	}
	if _, err := g.LocalAPI().ForgetWorkers(g.LocalContext(t.Context()), "sums"); err != nil {
		t.Error(err)
	}
	awaitTool(t, g, "sums.double", false)
}

// Tools that the catalog refused, because another source or an older toolset has
// their names, are not told as served.
func TestWorkersAreToldWithTheToolsThatAreRefused(t *testing.T) {
	g := gatewaytest.Open(t, gatewaytest.Parse(t, fmt.Sprintf(embedded, t.TempDir(), "")), nil)
	at, _ := g.WorkersAddress()
	if err := inproc.RegisterFunc(g.Catalog(), "local", func(context.Context, struct{}) (int, error) { return 1, nil }); err != nil {
		t.Fatal(err)
	}
	serveTools(t, at, "old", "", "local", "shared")
	awaitTool(t, g, "shared", true)
	serveTools(t, at, "late", "", "own", "shared")
	awaitTool(t, g, "own", true)

	told, err := g.LocalAPI().Workers(g.LocalContext(t.Context()))
	if err != nil || len(told.Toolsets) != 2 {
		t.Fatalf("workers: %+v, %v", told, err)
	}
	late, old := told.Toolsets[0], told.Toolsets[1]
	if !slices.Equal(late.Tools, []string{"own"}) || len(late.Refused) != 1 || late.Refused[0].Name != "shared" ||
		!strings.Contains(late.Refused[0].Reason, `toolset "old"`) {
		t.Errorf("the later toolset: %+v", late)
	}
	if !slices.Equal(old.Tools, []string{"shared"}) || len(old.Refused) != 1 || old.Refused[0].Name != "local" ||
		!strings.Contains(old.Refused[0].Reason, "another toolset or source") {
		t.Errorf("the older toolset: %+v", old)
	}
	other := identity.With(t.Context(), identity.Identity{TenantID: "globex", UserID: "u", SessionID: "s"})
	if seen, err := g.LocalAPI().Workers(other); err != nil || len(seen.Toolsets) != 2 || seen.Toolsets[0].Refused != nil {
		t.Errorf("who does not operate the gateway is told of %+v, %v", seen, err)
	}
}

func TestWorkersNeedTheKeyOfTheirToolset(t *testing.T) {
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte("open sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	more := fmt.Sprintf(", toolsets: [{name: sums, key: \"file:%s\", tenants: [acme], prefix: far_}]", key)
	g := gatewaytest.Open(t, gatewaytest.Parse(t, fmt.Sprintf(embedded, dir, more)), nil)
	at, _ := g.WorkersAddress()

	for toolset, key := range map[string]string{"sums": "wrong", "others": "open sesame"} {
		if err := serveUntilRefused(t, at, toolset, key); !errors.Is(err, provider.ErrRefused) {
			t.Errorf("a worker of %s: %v", toolset, err)
		}
	}
	serveToolset(t, at, "sums", "open sesame")
	awaitTool(t, g, "far_sums.double", true)
	acme := identity.With(t.Context(), identity.Identity{TenantID: "acme", UserID: "u", SessionID: "s"})
	if res, err := tools.Invoke(acme, g.Catalog(), "far_sums.double", json.RawMessage(`{"n":2}`)); err != nil || string(res.Structured) != "4" {
		t.Errorf("the tenant gets %s, %v", res.Structured, err)
	}
	other := identity.With(t.Context(), identity.Identity{TenantID: "globex", UserID: "u", SessionID: "s"})
	if _, err := tools.Invoke(other, g.Catalog(), "far_sums.double", json.RawMessage(`{"n":2}`)); !errors.Is(err, tools.ErrToolNotFound) {
		t.Errorf("another tenant: %v", err)
	}
	if seen, err := g.LocalAPI().Workers(other); err != nil || len(seen.Toolsets) != 0 {
		t.Errorf("another tenant is told of %+v, %v", seen, err)
	}
	if seen, err := g.LocalAPI().Workers(acme); err != nil || len(seen.Toolsets) != 1 || seen.Toolsets[0].Workers != nil {
		t.Errorf("the tenant is told of %+v, %v", seen, err)
	}
}

func serveUntilRefused(t *testing.T, at gateway.WorkersAddress, toolset, key string) error {
	t.Helper()
	client, err := streams.Client(t.Context(), at.URL, &streams.Options{TokenFile: at.TokenFile})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	cat := tools.NewCatalog()
	if err := inproc.RegisterFunc(cat, "n", func(context.Context, struct{}) (int, error) { return 1, nil }); err != nil {
		t.Fatal(err)
	}
	return provider.Serve(t.Context(), client, toolset, provider.FromCatalog(cat), provider.Options{Pong: provider.Pong(client, ""), Key: []byte(key)})
}

func TestWorkersWithoutADataFolder(t *testing.T) {
	g := gatewaytest.Open(t, gatewaytest.Parse(t, "workers: {enabled: true, listen: \"127.0.0.1:0\"}\n"), nil)
	at, ok := g.WorkersAddress()
	if !ok {
		t.Fatal("workers cannot connect")
	}
	folder := filepath.Dir(filepath.Dir(at.TokenFile))
	stop := serveToolset(t, at, "sums", "")
	awaitTool(t, g, "sums.double", true)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if err := g.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the temporary folder is still there: %v", err)
	}
}

// TestWorkersListenInUse: who finds the port of the stream server taken hears which
// key chooses another.
func TestWorkersListenInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	cfg := gatewaytest.Parse(t, fmt.Sprintf("workers: {enabled: true, listen: %q}\n", taken.Addr()))
	g, err := gateway.Open(t.Context(), cfg, nil)
	if err == nil {
		_ = g.Close(t.Context())
	}
	want := fmt.Sprintf("cannot listen on %s: the port is in use", taken.Addr())
	if err == nil || !strings.Contains(err.Error(), want) || !strings.HasSuffix(err.Error(), "workers.listen") {
		t.Errorf("got %v", err)
	}
}

// TestMissingSecretsOfWorkers: what the workers' settings refer to is looked for
// before the gateway starts.
func TestMissingSecretsOfWorkers(t *testing.T) {
	t.Setenv("GATEWAY_TEST_WORKERS_URL", "nats://u:hunter2@a.example:notaport")
	for text, want := range map[string]string{
		`workers: {url: "nats://a.example", token: "${GATEWAY_TEST_NOT_SET}"}`:        "workers.token",
		`workers: {enabled: true, toolsets: [{name: a, key: "file:not-there"}]}`:      "workers.toolsets[0].key",
		`workers: {enabled: true, cert_file: not-there.pem, key_file: not-there.key}`: "workers.cert_file",
		`workers: {url: "nats://a.example", ca_file: not-there.pem}`:                  "workers.ca_file",
		`workers: {url: "${GATEWAY_TEST_WORKERS_URL}"}`:                               "workers.url",
	} {
		cfg, err := gateway.Parse("c.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "c.yaml:1:") || !strings.Contains(err.Error(), want+": ") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
