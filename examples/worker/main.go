// Command worker serves a Go function to a gateway from a process of its own.
//
// The catalog is what a program that embeds Toolcrib calls; served by a worker, it
// is the last line that differs.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os/signal"
	"syscall"

	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/registry/stream/connect"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
)

type parcel struct {
	Grams int    `json:"grams" jsonschema:"minimum=1"`
	To    string `json:"to" jsonschema:"enum=home,enum=abroad"`
}

type postage struct {
	Cents int `json:"cents"`
}

// postageOf is a tool.
func postageOf(ctx context.Context, p parcel) (postage, error) {
	if err := tools.Progress(ctx, 1, 2, "weighing"); err != nil {
		return postage{}, err
	}
	cents := 150 + (p.Grams-1)/500*80
	if p.To == "abroad" {
		cents *= 3
	}
	return postage{cents}, nil
}

func catalog() (tools.ToolCatalog, error) {
	cat := tools.NewCatalog()
	return cat, inproc.RegisterFunc(cat, "post.postage", postageOf,
		tools.WithDescription("Says what it costs to send a parcel."), tools.WithSideEffect(tools.SideEffectPure))
}

func run(ctx context.Context, url, tokenFile string) error {
	cat, err := catalog()
	if err != nil {
		return err
	}
	client, err := connect.Client(ctx, url, &connect.Options{TokenFile: tokenFile})
	if err != nil {
		return err
	}
	defer client.Close()
	return provider.Serve(ctx, client, "post", provider.FromCatalog(cat), provider.Options{Pong: provider.Pong(client, "")})
}

func main() {
	url := flag.String("connect", "nats://127.0.0.1:7712", "address of the stream server")
	token := flag.String("token-file", "data/streams/token", "file with its token")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	fmt.Println("serving toolset post")
	if err := run(ctx, *url, *token); err != nil {
		log.Fatal(err)
	}
}
