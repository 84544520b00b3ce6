package main

import (
	"context"
	"fmt"
	"log"
	"net"
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
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = g.Close(closing) // Serve closed it already, unless it could not begin
	}()
	return g.Serve(ctx, ln)
}
