package natsserver_test

import (
	"context"
	"fmt"
	"os"

	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/registry/stream/natsserver"
	"github.com/toolcrib/toolcrib/registry/stream/natsstream"
)

// A process that runs the server adds an event, and a worker, which connects as
// one in another process would, works on it.
func Example() {
	if err := example(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output: call {"city":"Oslo"}
}

func example(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "streams")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // It is a temporary folder.
	server, err := natsserver.Start(dir, nil)
	if err != nil {
		return err
	}
	defer server.Close() //nolint:errcheck // The program ends.

	caller, err := server.Client(ctx, nil)
	if err != nil {
		return err
	}
	defer caller.Close() //nolint:errcheck // The program ends.
	requests, err := caller.Stream(ctx, "toolset:weather:requests", &stream.Options{MaxEvents: 1000})
	if err != nil {
		return err
	}
	if _, err := requests.Add(ctx, "call", []byte(`{"city":"Oslo"}`)); err != nil {
		return err
	}
	return work(ctx, server.URL(), server.TokenFile())
}

func work(ctx context.Context, url, tokenFile string) error {
	client, err := natsstream.Dial(ctx, url, &natsstream.Options{TokenFile: tokenFile})
	if err != nil {
		return err
	}
	defer client.Close() //nolint:errcheck // The program ends.
	requests, err := client.Stream(ctx, "toolset:weather:requests", nil)
	if err != nil {
		return err
	}
	sink, err := requests.Sink(ctx, "provider", nil)
	if err != nil {
		return err
	}
	event, err := sink.Receive(ctx)
	if err != nil {
		return err
	}
	fmt.Println(event.Name, string(event.Payload))
	if err := event.Ack(ctx); err != nil {
		return err
	}
	return sink.Drain(ctx)
}
