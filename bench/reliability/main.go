// Command reliability makes calls of tools on workers through a gateway, while it
// kills workers, the gateway and the stream server in turn and starts them again,
// and then holds what callers were told against what the tools did.
//
//	go run ./bench/reliability -calls 100000 -kills 30
//
// It ends with status 1 when a promise was broken: a tool with effects that ran
// twice, an answer without its effect, or a call without an answer in time.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	calls, kills, workers, inFlight int
	seed                            uint64
	deadline                        time.Duration
	toolcrib                        string

	be, server, dir string // of a process that the program starts
}

func main() {
	var o options
	flag.IntVar(&o.calls, "calls", 2000, "how many calls are made")
	flag.IntVar(&o.kills, "kills", 6, "how many processes are killed meanwhile")
	flag.IntVar(&o.workers, "workers", 4, "how many workers serve")
	flag.IntVar(&o.inFlight, "inflight", 32, "how many calls wait at a time")
	flag.Uint64Var(&o.seed, "seed", 1, "which processes are killed when")
	flag.DurationVar(&o.deadline, "deadline", 2*time.Minute, "how long a call may take, with all that its caller tries again")
	flag.StringVar(&o.toolcrib, "toolcrib", "", "the program to serve; built when empty")
	flag.StringVar(&o.be, "be", "", "be one of the processes: worker or server")
	flag.StringVar(&o.server, "server", "", "where the stream server is, for those")
	flag.StringVar(&o.dir, "dir", "", "their folder")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch o.be {
	case "worker":
		err = beWorker(ctx, &o)
	case "server":
		err = beServer(ctx, &o)
	default:
		err = run(ctx, &o)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// run makes the calls and judges them.
func run(ctx context.Context, o *options) error {
	dir, err := os.MkdirTemp("", "toolcrib-reliability-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	o.dir = dir
	c, err := startCluster(ctx, o)
	if err != nil {
		return err
	}
	defer c.stop()
	begin := time.Now()
	outcomes := makeCalls(ctx, o, c)
	took := time.Since(begin)
	done, err := readEffects(dir)
	if err != nil {
		return err
	}
	verdict := judge(outcomes, done)
	fmt.Print(verdict.table(o, c.killed(), took))
	if len(verdict.broken) > 0 {
		return fmt.Errorf("promises were broken: %v", verdict.broken)
	}
	return ctx.Err()
}
