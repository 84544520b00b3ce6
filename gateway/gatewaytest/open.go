// Package gatewaytest starts gateways for tests.
package gatewaytest

import (
	"context"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/gateway"
)

// patience bounds opening and closing; it decides only how long a failure takes.
const patience = 30 * time.Second

// Parse reads a configuration. The test fails when it is wrong.
func Parse(t testing.TB, text string) *gateway.Config {
	t.Helper()
	cfg, err := gateway.Parse("toolcrib.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// Open starts a gateway and waits until each of its sources had its first attempt. It is closed when the test ends, which
// fails when that does. opts may be nil.
func Open(t testing.TB, cfg *gateway.Config, opts *gateway.Options) *gateway.Gateway {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	g, err := gateway.Open(ctx, cfg, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := g.Close(ctx); err != nil {
			t.Errorf("closing the gateway: %v", err)
		}
	})
	if err := g.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	return g
}
