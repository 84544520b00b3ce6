package redisstream_test

import (
	"context"
	"fmt"
	"log"

	"github.com/toolcrib/toolcrib/registry/stream/redisstream"
)

// A worker takes calls of a toolset from Redis. The example is not run with the others, since it needs a server.
func Example() {
	ctx := context.Background()
	client, err := redisstream.Dial(ctx, "rediss://redis.internal:6380/0", &redisstream.Options{
		User:         "worker",
		PasswordFile: "/run/secrets/redis",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	requests, err := client.Stream(ctx, "toolset:weather:requests", nil)
	if err != nil {
		log.Fatal(err)
	}
	sink, err := requests.Sink(ctx, "provider", nil)
	if err != nil {
		log.Fatal(err)
	}
	for {
		event, err := sink.Receive(ctx)
		if err != nil {
			return
		}
		fmt.Println(event.Name, string(event.Payload))
		if err := event.Ack(ctx); err != nil {
			return
		}
	}
}
