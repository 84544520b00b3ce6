// Package floor compares ways to make a call with the least that one could do: a caller and a worker, in processes of
// their own, that take turns on the same server.
package floor

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Options are the flags that all comparisons have.
type Options struct {
	Calls    int
	InFlight int
	Payload  int
	Rounds   int
	Only     string // names of programs, separated by commas; empty is all of them
	Profile  string // a folder for profiles
	Past     string // numbers of calls, separated by commas, after each of which a round is run
	Worker   string // which program to be the worker of, in a worker's process
	Server   string // where the server is, in a worker's process
}

// Flags returns options that flag.Parse fills.
func Flags() *Options {
	var o Options
	flag.IntVar(&o.Calls, "calls", 20000, "how many calls a round makes")
	flag.IntVar(&o.InFlight, "inflight", 64, "how many calls wait at a time")
	flag.IntVar(&o.Payload, "payload", 1024, "bytes of a request and of its answer")
	flag.IntVar(&o.Rounds, "rounds", 5, "how many rounds are run")
	flag.StringVar(&o.Only, "only", "", "names of the programs to run beside the floor, separated by commas; all of them when empty")
	flag.StringVar(&o.Profile, "profile", "", "write CPU and allocation profiles of callers and workers into this folder")
	flag.StringVar(&o.Past, "past", "", "measure each program after so many calls, such as 0,10000,100000, all made in one run")
	flag.StringVar(&o.Worker, "worker", "", "be the worker of a program")
	flag.StringVar(&o.Server, "server", "", "where a worker finds the server")
	return &o
}

// Caller makes calls.
type Caller interface {
	// Call makes a call and waits for its answer.
	Call(ctx context.Context) error

	// Server is where a worker finds the server.
	Server() string

	Close() error
}

// Program is one way to make a call.
type Program struct {
	Name  string
	Start func(ctx context.Context, o *Options) (Caller, error)
	Work  func(ctx context.Context, o *Options) error // until it is killed
}

// Main runs the comparison. The first program is the floor. Each line is one round; the last gives the medians and their
// ratios.
func Main(o *Options, programs []Program) {
	if err := run(context.Background(), o, programs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o *Options, programs []Program) error {
	for _, p := range programs {
		if o.Worker == p.Name {
			return work(ctx, o, p)
		}
	}
	programs = wanted(o, programs)
	if o.Past != "" {
		return grow(ctx, o, programs)
	}
	rounds := make([][]round, len(programs))
	for range o.Rounds {
		for i, p := range programs {
			one, err := measure(ctx, o, p)
			if err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
			fmt.Printf("%s: %d calls, %d in flight, %.0f calls/s, p50 %.0f µs, p99 %.0f µs, CPU %.0f + %.0f µs\n", p.Name, o.Calls, o.InFlight,
				one.rate, one.p50, one.p99, one.caller, one.worker)
			rounds[i] = append(rounds[i], one)
		}
	}
	for i, p := range programs[1:] {
		fmt.Printf("%s, medians and ranges, times the floor: p50 %s; calls/s %s; CPU %s\n", p.Name,
			compare(rounds[i+1], rounds[0], func(r round) float64 { return r.p50 }),
			compare(rounds[i+1], rounds[0], func(r round) float64 { return r.rate }),
			compare(rounds[i+1], rounds[0], round.cpu))
	}
	return nil
}

// wanted returns the floor and those of the other programs that were asked for.
func wanted(o *Options, programs []Program) []Program {
	if o.Only == "" {
		return programs
	}
	names := strings.Split(o.Only, ",")
	return append(programs[:1:1], slices.DeleteFunc(slices.Clone(programs[1:]), func(p Program) bool { return !slices.Contains(names, p.Name) })...)
}

// compare tells how a figure of a program is to that of the floor, round by round.
func compare(of, floor []round, figure func(round) float64) string {
	var ratios []float64
	for i, r := range of {
		ratios = append(ratios, figure(r)/figure(floor[i]))
	}
	slices.Sort(ratios)
	return fmt.Sprintf("%.2f (%.2f–%.2f)", median(ratios), ratios[0], ratios[len(ratios)-1])
}

// round is what one round took: calls in a second, and times of a call in microseconds, those of the processor for its
// caller and its worker.
type round struct{ rate, p50, p99, caller, worker float64 }

// running is a program with its worker.
type running struct {
	program Program
	options *Options
	caller  Caller
	worker  *exec.Cmd
}

// start starts a program with its worker, and lets it warm up.
func start(ctx context.Context, o *Options, p Program) (*running, error) {
	caller, err := p.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	r := &running{program: p, options: o, caller: caller}
	r.worker = exec.Command(os.Args[0], "-worker", p.Name, "-server", caller.Server(), "-inflight", fmt.Sprint(o.InFlight), "-profile", o.Profile)
	r.worker.Stderr = os.Stderr
	if err := r.worker.Start(); err != nil {
		return nil, errors.Join(err, caller.Close())
	}
	if _, err := many(ctx, caller, o.InFlight, max(o.Calls/20, o.InFlight)); err != nil {
		return nil, errors.Join(err, r.end())
	}
	return r, nil
}

// end ends both.
func (r *running) end() error {
	if r.options.Profile != "" {
		_ = r.worker.Process.Signal(os.Interrupt) // It ends when it has written its profile.
	} else {
		_ = r.worker.Process.Kill()
	}
	_ = r.worker.Wait()
	return r.caller.Close()
}

// round makes calls.
func (r *running) round(ctx context.Context, calls int) (round, error) {
	here, there := used(os.Getpid()), used(r.worker.Process.Pid)
	stop := profile(r.options, r.program.Name+".caller")
	one, err := many(ctx, r.caller, r.options.InFlight, calls)
	stop()
	one.caller = float64((used(os.Getpid()) - here).Microseconds()) / float64(calls)
	one.worker = float64((used(r.worker.Process.Pid) - there).Microseconds()) / float64(calls)
	return one, err
}

// measure starts a program, makes the calls of a round, and ends it.
func measure(ctx context.Context, o *Options, p Program) (round, error) {
	r, err := start(ctx, o, p)
	if err != nil {
		return round{}, err
	}
	one, err := r.round(ctx, o.Calls)
	return one, errors.Join(err, r.end())
}

// grow measures each program after more and more calls, of which it keeps what it keeps. The floor takes a turn beside
// each.
func grow(ctx context.Context, o *Options, programs []Program) error {
	var levels []int
	for part := range strings.SplitSeq(o.Past, ",") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return fmt.Errorf("-past is made of numbers: %w", err)
		}
		levels = append(levels, n)
	}
	for _, p := range programs[1:] {
		r, err := start(ctx, o, p)
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		if err := errors.Join(r.grow(ctx, levels, programs[0]), r.end()); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	return nil
}

func (r *running) grow(ctx context.Context, levels []int, floor Program) error {
	made := 0
	for _, level := range levels {
		if level > made {
			if _, err := many(ctx, r.caller, r.options.InFlight, level-made); err != nil {
				return err
			}
			made = level
		}
		var own, beside []round
		for range r.options.Rounds {
			one, err := r.round(ctx, r.options.Calls)
			if err != nil {
				return err
			}
			bare, err := measure(ctx, r.options, floor)
			if err != nil {
				return err
			}
			made += r.options.Calls
			own, beside = append(own, one), append(beside, bare)
		}
		p50 := func(r round) float64 { return r.p50 }
		fmt.Printf("%s after %d calls: p50 %.0f µs, %s times the floor; CPU %.0f µs, %s times the floor\n", r.program.Name, level,
			middle(own, p50), compare(own, beside, p50), middle(own, round.cpu), compare(own, beside, round.cpu))
	}
	return nil
}

func (r round) cpu() float64 { return r.caller + r.worker }

// middle is the median of a figure.
func middle(of []round, figure func(round) float64) float64 {
	var list []float64
	for _, r := range of {
		list = append(list, figure(r))
	}
	return median(list)
}

// many makes calls, a number of them at a time.
func many(ctx context.Context, caller Caller, inflight, calls int) (round, error) {
	each := make([][]float64, inflight)
	errs := make([]error, inflight)
	var loops sync.WaitGroup
	start := time.Now()
	for i := range inflight {
		loops.Go(func() {
			for range calls / inflight {
				begin := time.Now()
				if errs[i] = caller.Call(ctx); errs[i] != nil {
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

// Answers gives each call the answer that bears its id.
type Answers struct {
	mu      sync.Mutex
	next    int
	waiting map[string]chan struct{}
}

// Expect returns the id of a new call, and what is closed when its answer came.
func (a *Answers) Expect() (id string, answered <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting == nil {
		a.waiting = map[string]chan struct{}{}
	}
	a.next++
	id = fmt.Sprint(a.next)
	waiting := make(chan struct{})
	a.waiting[id] = waiting
	return id, waiting
}

// Come notes the answer to a call.
func (a *Answers) Come(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if waiting := a.waiting[id]; waiting != nil {
		close(waiting)
		delete(a.waiting, id)
	}
}

// Await waits for an answer.
func Await(id string, answered <-chan struct{}) error {
	timer := time.NewTimer(30 * time.Second)
	defer timer.Stop()
	select {
	case <-answered:
		return nil
	case <-timer.C:
		return fmt.Errorf("no answer to call %s", id)
	}
}
