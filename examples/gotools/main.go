package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/tools"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ln, err := net.Listen("tcp", gateway.DefaultListen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on http://%s\n", ln.Addr())
	if err := serve(ctx, ln); err != nil {
		log.Fatal(err)
	}
}

// serve offers the shop's tools, and clock.now beside them, until ctx ends.
func serve(ctx context.Context, ln net.Listener) error {
	var cfg gateway.Config
	cfg.Tools.BuiltIn = []string{"clock.now"}
	cfg.Tools.GrantedScopes = []string{"orders.write"}
	g, err := gateway.Open(ctx, &cfg, &gateway.Options{
		Register: []func(tools.ToolCatalog) error{NewShop().Register},
	})
	if err != nil {
		return err
	}
	server := &http.Server{Handler: g.Handler(), ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(ln) }()
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	// Calls under way may finish: first those of the gateway, then the answers.
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(err, g.Close(closing), server.Shutdown(closing))
}
