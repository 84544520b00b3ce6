// Command workflow runs a skill and a flow over an MCP server, an HTTP API and tools of
// its own process, all from the configuration beside it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"

	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/tools"
)

// prices is the API that prices.yaml describes.
func prices() http.Handler {
	list := map[string]int{"pen": 3, "lamp": 60, "paper": 7}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /prices/{item}", func(w http.ResponseWriter, r *http.Request) {
		price, ok := list[r.PathValue("item")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"item": r.PathValue("item"), "price": price}) // the client went away
	})
	return mux
}

// run opens the gateway of a configuration and calls its skill and its flow.
func run(ctx context.Context, config string) error {
	cfg, err := gateway.Load(config)
	if err != nil {
		return err
	}
	g, err := gateway.Open(ctx, cfg, nil)
	if err != nil {
		return err
	}
	defer g.Close(context.WithoutCancel(ctx))
	if err := g.Ready(ctx); err != nil {
		return err
	}
	for _, call := range []struct{ name, args string }{
		{"shop_quote", `{"item":"pen","shipping":4}`},
		{"shop_order", `{"items":["pen","lamp"]}`},
		{"shop_order", `{"items":["pen","paper"]}`},
	} {
		result, err := tools.Invoke(g.LocalContext(ctx), g.Catalog(), call.name, json.RawMessage(call.args))
		if err != nil {
			return err
		}
		out, err := result.JSON()
		if err != nil {
			return err
		}
		fmt.Println(string(out))
	}
	return nil
}

func main() {
	config := flag.String("c", "toolcrib.yaml", "configuration")
	address := flag.String("listen", "127.0.0.1:7782", "address of the API of prices")
	api := flag.Bool("api", false, "serve the API of prices alone")
	flag.Parse()
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	if *api {
		fmt.Println("listening on", listener.Addr())
		log.Fatal(http.Serve(listener, prices()))
	}
	go func() { log.Fatal(http.Serve(listener, prices())) }()
	if err := run(context.Background(), *config); err != nil {
		log.Fatal(err)
	}
}
