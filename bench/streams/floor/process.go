package floor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"
)

// work is a worker until it is killed. One that writes a profile is interrupted first.
func work(ctx context.Context, o *Options, p Program) error {
	if o.Profile == "" {
		return p.Work(ctx, o)
	}
	stop := profile(o, p.Name+".worker")
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt)
	defer cancel()
	go func() { _ = p.Work(ctx, o) }()
	<-ctx.Done()
	stop()
	return nil
}

// profile writes profiles of the processor, and of what is allocated, until the function is called that it returns.
func profile(o *Options, name string) func() {
	if o.Profile == "" {
		return func() {}
	}
	var out bytes.Buffer
	if err := pprof.StartCPUProfile(&out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return func() {}
	}
	return func() {
		pprof.StopCPUProfile()
		var allocated bytes.Buffer
		err := pprof.Lookup("allocs").WriteTo(&allocated, 0)
		for suffix, data := range map[string][]byte{".pprof": out.Bytes(), ".allocs.pprof": allocated.Bytes()} {
			err = errors.Join(err, os.WriteFile(filepath.Join(o.Profile, name+suffix), data, 0o600))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

// tick is the unit in which Linux tells what a process used of the processor.
const tick = time.Second / 100

// used returns how long a process has run on the processor, in units of tick, or 0 where there is no /proc.
func used(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * tick
}
