package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/gateway/gatewaytest"
	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/registry/provider"
	streams "github.com/toolcrib/toolcrib/registry/stream/connect"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
)

// sums starts a worker of the toolset sums, and returns what it ends with.
func sums(t *testing.T, g *gateway.Gateway, login *streams.Options, opts provider.Options) (ended <-chan error) {
	t.Helper()
	at, _ := g.WorkersAddress()
	client, err := streams.Client(t.Context(), at.URL, login)
	if err != nil {
		t.Fatal(err)
	}
	cat := tools.NewCatalog()
	if err := inproc.RegisterFunc(cat, "sums.one", func(context.Context, struct{}) (int, error) { return 1, nil }); err != nil {
		t.Fatal(err)
	}
	opts.Pong = provider.Pong(client, "")
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() {
		done <- provider.Serve(ctx, client, "sums", provider.FromCatalog(cat), opts)
		_ = client.Close()
	}()
	return done
}

// A key and a token that change take effect at the next start, which the log says of a
// changed reference: until then workers with the old ones serve and those with the new
// ones are turned away, and then the other way round. No log and no error has either.
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
		return sums(t, g, &streams.Options{TokenFile: token, Logger: logger}, provider.Options{Key: []byte(key + "-CANARY"), Logger: logger})
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
	if err := g.Reload(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "takes effect at the next start\" key=workers") {
		t.Error("the log does not say that the change waits")
	}
	refused(work(g, "key-two"))
	served(g)
	if err := g.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	put("token", "token-two-CANARY")
	g = gatewaytest.Open(t, next, &gateway.Options{Logger: logger})
	second := work(g, "key-two")
	served(g)
	refused(first)
	served(g)
	select {
	case err := <-second:
		t.Errorf("the worker with the new key ended: %v", err)
	default:
	}
	if at := strings.Index(log.String(), "CANARY"); at >= 0 {
		t.Errorf("the log holds %q", log.String()[max(0, at-200):at+6])
	}
}
