// Command redis compares calls over package redisstream with the floor: a caller and a worker, in processes of their own,
// written with go-redis alone. Requests of the floor go over one stream with a consumer group, and all answers over one
// reply stream; what was answered is acknowledged and deleted, so that the streams stay short. Calls over the package
// go over a stream and are answered over the bus, as those of the registry are. Calls of a tool on a worker go through the
// door of a catalog as well; those of a tool that may have effects are recorded and claimed besides.
//
//	go run ./bench/streams/redis -url redis://127.0.0.1:6379 -calls 20000 -inflight 64 -rounds 5
//
// Both take turns on the same server. Each line is one round; the last ones give the medians and their ratios.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/toolcrib/toolcrib/bench/streams/calls"
)

type options struct {
	url      string
	calls    int
	inflight int
	payload  int
	rounds   int
	worker   string
}

// program is one way to make a call.
type program interface {
	// call makes a call and waits for its answer.
	call(ctx context.Context) error
	close() error
}

// programs are what is compared, by name. The first is the floor.
var programs = []struct {
	name  string
	start func(ctx context.Context, o *options) (program, error)
	work  func(ctx context.Context, o *options) error
}{
	{"bare", startBare, workBare},
	{"seam", startSeam, workSeam},
	{calls.Read, startCalls(calls.Read), workCalls},
	{calls.Write, startCalls(calls.Write), workCalls},
}

func main() {
	var o options
	flag.StringVar(&o.url, "url", "redis://127.0.0.1:6379", "the Redis server")
	flag.IntVar(&o.calls, "calls", 20000, "how many calls a round makes")
	flag.IntVar(&o.inflight, "inflight", 64, "how many calls wait at a time")
	flag.IntVar(&o.payload, "payload", 1024, "bytes of a request and of its answer")
	flag.IntVar(&o.rounds, "rounds", 5, "how many rounds are run")
	flag.StringVar(&o.worker, "worker", "", "be the worker of a program")
	flag.Parse()
	if err := run(context.Background(), &o); err != nil {
		fmt.Fprintln(os.Stderr, "redis:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o *options) error {
	for _, p := range programs {
		if o.worker == p.name {
			return p.work(ctx, o)
		}
	}
	p50, rate := make([][]float64, len(programs)), make([][]float64, len(programs))
	for range o.rounds {
		for i, p := range programs {
			one, err := measure(ctx, o, i)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			fmt.Printf("%s: %d calls, %d in flight, %.0f calls/s, p50 %.0f µs, p99 %.0f µs\n", p.name, o.calls, o.inflight, one.rate, one.p50, one.p99)
			p50[i], rate[i] = append(p50[i], one.p50), append(rate[i], one.rate)
		}
	}
	for i := 1; i < len(programs); i++ {
		fmt.Printf("%s, medians: p50 %.0f and %.0f µs, %.2f times the floor; %.0f and %.0f calls/s, %.2f times the floor\n", programs[i].name,
			median(p50[0]), median(p50[i]), median(p50[i])/median(p50[0]),
			median(rate[0]), median(rate[i]), median(rate[i])/median(rate[0]))
	}
	return nil
}

// round is what one round took, in microseconds.
type round struct{ rate, p50, p99 float64 }

// measure starts a program with its worker, makes the calls, and ends both.
func measure(ctx context.Context, o *options, which int) (round, error) {
	p, err := programs[which].start(ctx, o)
	if err != nil {
		return round{}, err
	}
	r, err := withWorker(ctx, o, which, p)
	return r, errors.Join(err, p.close())
}

// withWorker makes the calls while a worker runs.
func withWorker(ctx context.Context, o *options, which int, p program) (round, error) {
	worker := exec.Command(os.Args[0], "-worker", programs[which].name, "-url", o.url, "-inflight", fmt.Sprint(o.inflight))
	worker.Stderr = os.Stderr
	if err := worker.Start(); err != nil {
		return round{}, err
	}
	defer func() {
		_ = worker.Process.Kill()
		_ = worker.Wait() // It was killed.
	}()
	if _, err := many(ctx, p, o.inflight, max(o.calls/20, o.inflight)); err != nil { // warms up
		return round{}, err
	}
	return many(ctx, p, o.inflight, o.calls)
}

// many makes calls, a number of them at a time.
func many(ctx context.Context, p program, inflight, calls int) (round, error) {
	each := make([][]float64, inflight)
	errs := make([]error, inflight)
	var loops sync.WaitGroup
	start := time.Now()
	for i := range inflight {
		loops.Go(func() {
			for range calls / inflight {
				begin := time.Now()
				if errs[i] = p.call(ctx); errs[i] != nil {
					return
				}
				each[i] = append(each[i], float64(time.Since(begin))/float64(time.Microsecond))
			}
		})
	}
	loops.Wait()
	all := time.Since(start)
	took := slices.Sorted(slices.Values(slices.Concat(each...)))
	if len(took) == 0 {
		return round{}, errors.Join(append(errs, errors.New("no call was made"))...)
	}
	return round{rate: float64(len(took)) / all.Seconds(), p50: took[len(took)/2], p99: took[len(took)*99/100]}, errors.Join(errs...)
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}

// answers gives each call the answer that bears its id.
type answers struct {
	mu      sync.Mutex
	next    int
	waiting map[string]chan struct{}
}

func (a *answers) expect() (id string, answered <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next++
	id = fmt.Sprint(a.next)
	waiting := make(chan struct{})
	a.waiting[id] = waiting
	return id, waiting
}

func (a *answers) come(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if waiting := a.waiting[id]; waiting != nil {
		close(waiting)
		delete(a.waiting, id)
	}
}

// await waits for an answer.
func await(id string, answered <-chan struct{}) error {
	timer := time.NewTimer(30 * time.Second)
	defer timer.Stop()
	select {
	case <-answered:
		return nil
	case <-timer.C:
		return fmt.Errorf("no answer to call %s", id)
	}
}
