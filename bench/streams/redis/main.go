// Command redis compares calls over package redisstream with the floor: a caller and a worker, in processes of their own,
// written with go-redis alone. Requests of the floor go over one stream with a consumer group, and all answers over one
// reply stream; what was answered is acknowledged and deleted, so that the streams stay short. Calls over the package
// go over a stream and are answered over the bus, as those of the registry are. Calls of a tool on a worker go through the
// door of a catalog as well; those of a tool that may have effects are recorded and claimed besides.
//
//	go run ./bench/streams/redis -url redis://127.0.0.1:6379 -calls 20000 -inflight 64 -rounds 5
//
//	go run ./bench/streams/redis -past 0,10000,100000
//	go run ./bench/streams/redis -idle 1,10,50
//
// -past measures calls after so many others in one run, -idle what the server gets while nothing is called, over as many
// ping intervals as there are rounds.
//
// Records of calls are on the disk before the step that follows when the server is one that syncs every command
// (appendfsync always), and some time later otherwise, as nothing else is safe from a loss of power then. -sync grouped or
// -sync later says it instead.
//
// Both take turns on the same server. Each line is one round; the last ones give the medians and their ratios.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/toolcrib/toolcrib/bench/streams/calls"
	"github.com/toolcrib/toolcrib/bench/streams/floor"
)

func main() {
	o := floor.Flags()
	url := flag.String("url", "redis://127.0.0.1:6379", "the Redis server")
	synced := flag.String("sync", "", "grouped or later: when records of calls are on disk; as the server syncs, when empty")
	toolsets := flag.String("idle", "", "count the commands that the server gets while nothing is called, with so many toolsets, such as 1,10,50")
	flag.Parse()
	if o.Server == "" {
		o.Server = *url
	}
	if *toolsets != "" {
		if err := idle(context.Background(), o, *toolsets, o.Rounds); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	floor.Main(o, []floor.Program{
		{Name: "bare", Start: startBare, Work: workBare},
		{Name: "seam", Start: startSeam, Work: workSeam},
		{Name: calls.Read, Start: startCalls(calls.Read, synced), Work: workCalls},
		{Name: calls.Write, Start: startCalls(calls.Write, synced), Work: workCalls},
	})
}
