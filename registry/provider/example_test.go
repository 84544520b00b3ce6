package provider_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/registry/stream/natsserver"
	"github.com/toolcrib/toolcrib/store/sqlstore"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
)

// A Go function is served by a worker, and called through a catalog that knows
// the worker's tools. Here both are in one process, with the stream server.
func ExampleServe() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example-")
	check(err)
	defer os.RemoveAll(dir)
	server, err := natsserver.Start(dir, nil)
	check(err)
	defer server.Close()

	// The worker.
	own := tools.NewCatalog()
	check(inproc.RegisterFunc(own, "math.add", func(_ context.Context, in addArgs) (sum, error) { return sum{in.A + in.B}, nil },
		tools.WithSideEffect(tools.SideEffectPure)))
	client, err := server.Client(ctx, nil)
	check(err)
	defer client.Close()
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error)
	go func() {
		ended <- provider.Serve(serving, client, "math", provider.FromCatalog(own), provider.Options{Pong: provider.Pong(client, "")})
	}()

	// The gateway.
	records, err := sqlstore.OpenMemory(ctx, nil)
	check(err)
	defer records.Close()
	atGateway, err := server.Client(ctx, nil)
	check(err)
	defer atGateway.Close()
	reg, err := registry.New(ctx, atGateway, records, nil)
	check(err)
	cat := tools.NewCatalog().(tools.LiveCatalog)
	source, changed := reg.Source(), make(chan struct{}, 8)
	source.OnChange(func() { changed <- struct{}{} })
	check(source.Connect(ctx))
	for changed <- struct{}{}; ; {
		<-changed
		list, err := source.Discover(ctx)
		check(err)
		cat.SwapSource(source.SourceID(), list)
		if _, ok := cat.Resolve("math.add"); ok {
			break
		}
	}
	res, err := tools.Invoke(registry.Wait(ctx), cat, "math.add", json.RawMessage(`{"a":2,"b":3}`))
	check(err)
	fmt.Println(string(res.Structured))

	stop()
	check(<-ended)
	check(reg.Close(ctx))
	// Output: {"sum":5}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
