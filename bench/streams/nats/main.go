// Command nats compares calls over packages natsserver and natsstream with the floor: a caller, with the NATS server in its
// process, and a worker in a process of its own, written with nats-server and nats.go alone. Requests of the floor go over
// a work queue of JetStream, and answers over core NATS. Calls over the packages go over a stream and are answered over the
// bus, as those of the registry are. Calls of a tool on a worker go through the door of a catalog as well; those of a tool
// that may have effects are recorded and claimed besides.
//
//	go run ./bench/streams/nats -sync grouped -calls 20000 -inflight 64 -rounds 5
//
//	go run ./bench/streams/nats -past 0,10000,100000
//	go run ./bench/streams/nats -idle 1,10,50
//
// -past measures calls after so many others in one run, -idle what passes the server while nothing is called, over as many
// ping intervals as there are rounds.
//
// With -sync every and -sync later both sync in the same way. With -sync grouped, the default of natsserver, the floor syncs
// every write, which is the only way for it to promise the same.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/toolcrib/toolcrib/bench/streams/calls"
	"github.com/toolcrib/toolcrib/bench/streams/floor"
	"github.com/toolcrib/toolcrib/registry/stream/natsserver"
)

// token lets workers connect.
const token = "bench"

func main() {
	o := floor.Flags()
	mode := flag.String("sync", "grouped", "grouped, every or later")
	toolsets := flag.String("idle", "", "count what passes the server while nothing is called, with so many toolsets, such as 1,10,50")
	flag.Parse()
	sync, known := map[string]natsserver.Sync{"grouped": natsserver.SyncGrouped, "every": natsserver.SyncEvery, "later": natsserver.SyncLater}[*mode]
	if !known {
		fmt.Fprintln(os.Stderr, "-sync is grouped, every or later")
		os.Exit(2)
	}
	if *toolsets != "" {
		if err := idle(context.Background(), *toolsets, o.Rounds); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	floor.Main(o, []floor.Program{
		{Name: "bare", Start: startBare(sync != natsserver.SyncLater), Work: workBare},
		{Name: "seam", Start: startSeam(sync), Work: workSeam},
		{Name: calls.Read, Start: startCalls(sync, calls.Read), Work: workCalls},
		{Name: calls.Write, Start: startCalls(sync, calls.Write), Work: workCalls},
	})
}
