package main

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/gateway/gatewaytest"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/registry/stream/natsserver"
	"github.com/toolcrib/toolcrib/store/sqlstore"
	"github.com/toolcrib/toolcrib/tools"
)

func TestWorker(t *testing.T) {
	cfg, err := gateway.Load("toolcrib.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Workers.Listen = "127.0.0.1:0"
	g := gatewaytest.Open(t, cfg, &gateway.Options{DataDir: filepath.Join(t.TempDir(), "data")})
	news := g.Bus().Subscribe(events.Filter{Types: []events.EventType{tools.EventTypeCatalogChanged, registry.EventTypeWorkerUp}}, nil)
	defer news.Close()
	at, _ := g.WorkersAddress()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, at.URL, at.TokenFile) }()
	for {
		if _, ok := g.Catalog().Resolve("post.postage"); ok {
			break
		}
		select {
		case <-news.Events():
		case err := <-ended:
			t.Fatalf("the worker ended: %v", err)
		}
	}
	for args, want := range map[string]string{
		`{"grams":500,"to":"home"}`:   `{"cents":150}`,
		`{"grams":501,"to":"abroad"}`: `{"cents":690}`,
	} {
		res, err := tools.Invoke(g.LocalContext(t.Context()), g.Catalog(), "post.postage", json.RawMessage(args))
		if err != nil || string(res.Structured) != want {
			t.Errorf("%s: got %s, %v", args, res.Structured, err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A catalog without a gateway gets the tools of workers that hold the key.
func TestReach(t *testing.T) {
	server, err := natsserver.Start(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	client, err := server.Client(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	records, err := sqlstore.OpenMemory(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer records.Close()
	bus := events.NewBus(nil)
	news := bus.Subscribe(events.Filter{Types: []events.EventType{tools.EventTypeCatalogChanged}}, nil)
	defer news.Close()
	cat := tools.NewCatalog(tools.WithEvents(bus)).(tools.LiveCatalog)
	reg, err := reach(t.Context(), cat, client, records, []byte("key"))
	if err != nil {
		t.Fatal(err)
	}
	defer reg.Close(context.WithoutCancel(t.Context()))

	served, err := catalog()
	if err != nil {
		t.Fatal(err)
	}
	opts := provider.Options{Pong: provider.Pong(client, "")}
	if err := provider.Serve(t.Context(), client, "post", provider.FromCatalog(served), opts); !errors.Is(err, provider.ErrRefused) {
		t.Errorf("a worker without the key: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	opts.Key = []byte("key")
	ended := make(chan error, 1)
	go func() { ended <- provider.Serve(ctx, client, "post", provider.FromCatalog(served), opts) }()
	<-news.Events()
	acme := identity.With(t.Context(), identity.Identity{TenantID: "acme", UserID: "u", SessionID: "s"})
	res, err := tools.Invoke(acme, cat, "post.postage", json.RawMessage(`{"grams":1,"to":"home"}`))
	if err != nil || string(res.Structured) != `{"cents":150}` {
		t.Errorf("got %s, %v", res.Structured, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
