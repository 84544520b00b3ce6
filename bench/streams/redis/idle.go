package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/toolcrib/toolcrib/bench/streams/calls"
	"github.com/toolcrib/toolcrib/bench/streams/floor"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/registry/stream/redisstream"
)

// idle counts the commands that a server gets while nothing is called.
func idle(ctx context.Context, o *floor.Options, toolsets string, intervals int) error {
	client, err := connect(o)
	if err != nil {
		return err
	}
	defer client.Close()
	return calls.Idle(ctx, calls.Server{
		What:    "commands",
		Connect: func(ctx context.Context) (stream.Client, error) { return redisstream.Dial(ctx, o.Server, nil) },
		Count: func(ctx context.Context) (int64, error) {
			stats, err := client.Info(ctx, "commandstats").Result()
			return commands(stats), err
		},
	}, toolsets, intervals)
}

// commands adds up what a server says of its commands, those of scripts among them.
func commands(stats string) int64 {
	var all int64
	for line := range strings.Lines(stats) {
		name, rest, found := strings.Cut(line, ":calls=")
		var n int64
		if _, err := fmt.Sscan(strings.Split(rest, ",")[0], &n); found && err == nil && name != "cmdstat_info" {
			all += n
		}
	}
	return all
}
