package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/gateway/gatewaytest"
	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/registry/provider"
	streams "github.com/toolcrib/toolcrib/registry/stream/connect"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
)

// startWorker starts a worker of one tool, and returns what it ends with.
func startWorker(t *testing.T, g *gateway.Gateway, toolset string, login *streams.Options, opts provider.Options) (ended <-chan error) {
	t.Helper()
	at, _ := g.WorkersAddress()
	client, err := streams.Client(t.Context(), at.URL, login)
	if err != nil {
		t.Fatal(err)
	}
	cat := tools.NewCatalog()
	if err := inproc.RegisterFunc(cat, toolset+".one", func(context.Context, struct{}) (int, error) { return 1, nil }); err != nil {
		t.Fatal(err)
	}
	opts.Pong = provider.Pong(client, "")
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		done <- provider.Serve(ctx, client, toolset, provider.FromCatalog(cat), opts)
		_ = client.Close()
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return done
}

// A key that changes takes effect at once: workers with the old one are turned away, and
// those with the new one serve. A token does at the next start, and workers that read it
// from a file serve on. No log and no error has either.
func TestKeyAndTokenOfWorkersChange(t *testing.T) {
	dir, log := t.TempDir(), new(peertest.Log)
	logger := log.Logger(slog.LevelDebug)
	put := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	token := put("token", "token-one-CANARY")
	config := func(listen, key string) *gateway.Config {
		return gatewaytest.Parse(t, fmt.Sprintf("data_dir: %s\nworkers: {enabled: true, listen: %q, token: \"file:%s\", ping_interval: 200ms, stale_after: 2s, "+
			"toolsets: [{name: sums, key: \"file:%s\"}]}\n", filepath.Join(dir, "data"), listen, token, put(key, key+"-CANARY")))
	}
	work := func(g *gateway.Gateway, key string) <-chan error {
		t.Helper()
		return startWorker(t, g, "sums", &streams.Options{TokenFile: token, Logger: logger}, provider.Options{Key: []byte(key + "-CANARY"), Logger: logger})
	}
	refused := func(ended <-chan error) {
		t.Helper()
		if err := <-ended; !errors.Is(err, provider.ErrRefused) || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("a worker with another key: %v", err)
		}
	}
	served := func(g *gateway.Gateway) {
		t.Helper()
		awaitTool(t, g, "sums.one", true)
		if _, err := tools.Invoke(g.LocalContext(t.Context()), g.Catalog(), "sums.one", json.RawMessage(`{}`)); err != nil {
			t.Error(err)
		}
	}

	g, err := gateway.Open(t.Context(), config("127.0.0.1:0", "key-one"), &gateway.Options{Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	at, _ := g.WorkersAddress()
	first := work(g, "key-one")
	served(g)
	next := config(strings.TrimPrefix(at.URL, "nats://"), "key-two")
	if err := g.Reload(t.Context(), config("127.0.0.1:0", "key-two")); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(log.String(), "takes effect at the next start") {
		t.Error("the log says that a change waits")
	}
	refused(first)
	third := work(g, "key-two")
	served(g)
	refused(work(g, "key-one"))
	if err := g.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	put("token", "token-two-CANARY")
	g = gatewaytest.Open(t, next, &gateway.Options{Logger: logger})
	second := work(g, "key-two")
	served(g)
	served(g)
	select {
	case err := <-second:
		t.Errorf("the worker with the new token ended: %v", err)
	case err := <-third:
		t.Errorf("the worker that reads the token again ended: %v", err)
	default:
	}
	if at := strings.Index(log.String(), "CANARY"); at >= 0 {
		t.Errorf("the log holds %q", log.String()[max(0, at-200):at+6])
	}
}

// A reload admits workers of other toolsets and with other keys, and grants otherwise. A
// worker that is not admitted any more finishes and ends.
func TestReloadReadmitsWorkers(t *testing.T) {
	dir := t.TempDir()
	for name, key := range map[string]string{"a": "first", "b": "second", "c": "third"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(key), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parse := func(toolsets string) *gateway.Config {
		return gatewaytest.Parse(t, fmt.Sprintf(embedded, dir, ", toolsets: ["+strings.ReplaceAll(toolsets, "KEY", "file:"+dir)+"]"))
	}
	g := gatewaytest.Open(t, parse(`{name: sums, key: "KEY/a", prefix: far_}, {name: away}`), nil)
	at, _ := g.WorkersAddress()
	work := func(toolset, key string) <-chan error {
		t.Helper()
		return startWorker(t, g, toolset, &streams.Options{TokenFile: at.TokenFile}, provider.Options{Key: []byte(key)})
	}
	reload := func(toolsets string) {
		t.Helper()
		if err := g.Reload(bounded(t), parse(toolsets)); err != nil {
			t.Fatal(err)
		}
	}
	served := func(when string) {
		t.Helper()
		if res, err := tools.Invoke(g.LocalContext(t.Context()), g.Catalog(), "near_sums.one", json.RawMessage(`{}`)); err != nil || string(res.Structured) != "1" {
			t.Errorf("%s: %s, %v", when, res.Structured, err)
		}
	}
	old := work("sums", "first")
	awaitTool(t, g, "far_sums.one", true)
	stop := serveToolset(t, at, "away", "")
	awaitTool(t, g, "away.double", true)

	reload(`{name: sums, key: "KEY/b", previous_key: "KEY/a", prefix: near_}, {name: others, key: "KEY/c"}`)
	awaitTool(t, g, "near_sums.one", true)
	awaitTool(t, g, "far_sums.one", false)
	served("while both keys are taken")
	work("others", "third")
	awaitTool(t, g, "others.one", true)

	if err := g.Reload(bounded(t), parse(`{name: sums, key: "KEY/missing"}`)); err == nil || !strings.Contains(err.Error(), "workers.toolsets[0].key") {
		t.Errorf("a reload without its key: %v", err)
	}
	served("after a reload that failed")
	work("sums", "second")
	reload(`{name: sums, key: "KEY/b", prefix: near_}, {name: others, key: "KEY/c"}`)
	if err := <-old; !errors.Is(err, provider.ErrRefused) {
		t.Errorf("the worker with the key of before ends with %v", err)
	}
	served("with the new key alone")
	if err := <-work("sums", "first"); !errors.Is(err, provider.ErrRefused) {
		t.Errorf("a new worker with the key of before ends with %v", err)
	}
	_ = stop() // it may have been refused
	seen := func(tenant string) bool {
		list := g.Catalog().List(tools.CatalogFilter{TenantID: tenant, UserID: "u", SessionID: "s"})
		return slices.ContainsFunc(list, func(tool tools.Tool) bool { return tool.Name == "away.double" })
	}
	changed, unwatch := g.Catalog().Watch()
	defer unwatch()
	if !seen("globex") {
		t.Error("a toolset without a worker is gone")
	}
	reload(`{name: sums, key: "KEY/b", prefix: near_}, {name: others, key: "KEY/c"}, {name: away, tenants: [acme]}`)
	for seen("globex") {
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatal("a toolset without a worker is seen as before")
		}
	}
	if !seen("acme") {
		t.Error("the tenant that is to see the toolset does not")
	}
}
