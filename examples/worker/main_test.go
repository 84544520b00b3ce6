package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/gateway/gatewaytest"
	"github.com/toolcrib/toolcrib/registry"
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
