//go:build linux

package partition

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/registry"
)

// limit bounds what must happen at some time beside the cut.
const limit = 90 * time.Second

// An outcome is what a caller was told.
type outcome struct {
	tool, id string
	where    string // who answered
	err      error
	began    time.Time
	took     time.Duration
}

func (o *outcome) unknown() bool {
	var e *api.Error
	return errors.As(o.err, &e) && e.OutcomeUnknown
}

func (o *outcome) String() string {
	if o.err != nil {
		return fmt.Sprintf("%s %s after %s: %v", o.tool, o.id, o.took.Round(time.Millisecond), o.err)
	}
	return fmt.Sprintf("%s %s after %s: %s", o.tool, o.id, o.took.Round(time.Millisecond), o.where)
}

// exercise cuts the link while calls of all kinds are under way.
func (d *deployment) exercise(t *testing.T) {
	d.worker(t, "far", 2)
	d.far = d.await(t, "one worker is up", limit, func(list []registry.WorkerState) bool { return len(list) == 1 && list[0].Up })[0].Instance

	until(t, "the tools are listed", limit, func() bool {
		_, err := d.client.Get(t.Context(), "log_write")
		return err == nil
	})

	// Two calls keep the far worker busy, and some wait in its queue.
	held := d.calls(t, []entry{{ID: "held", FarMS: int((d.cut + 2*time.Second).Milliseconds())}}, "write", "read")
	d.logged(t, 2)
	var list []entry
	for i := range 5 {
		list = append(list, entry{ID: fmt.Sprintf("queued-%d", i)})
	}
	queued := d.calls(t, list, "write")
	d.await(t, "calls wait in the far worker", limit, func(list []registry.WorkerState) bool { return list[0].Queued == len(queued) })
	d.worker(t, "near", 4)
	d.await(t, "two workers are up", limit, func(list []registry.WorkerState) bool { return len(list) == 2 && list[0].Up && list[1].Up })

	steady := d.callSteadily(t)
	d.link.cut(t)
	cutAt := time.Now()
	d.await(t, "the far worker is down", d.bound(), func(list []registry.WorkerState) bool { return !d.isUp(list, d.far) })
	down := time.Since(cutAt).Round(100 * time.Millisecond)
	write, read := <-held[0], <-held[1]
	var failedOver []outcome
	for _, c := range queued {
		failedOver = append(failedOver, <-c)
	}
	wait(t.Context(), time.Until(cutAt.Add(d.cut)))
	d.link.mend(t)
	mendedAt := time.Now()
	d.await(t, "the far worker is up again and has nothing left", limit, func(list []registry.WorkerState) bool {
		return d.isUp(list, d.far) && d.of(list, d.far).Running == 0 && d.of(list, d.far).Queued == 0
	})
	up := time.Since(mendedAt).Round(100 * time.Millisecond)
	outcomes := steady(func(all []outcome) bool { return servedByFarAgain(all, mendedAt) })

	told := write.began.Add(write.took).Sub(cutAt).Round(100 * time.Millisecond)
	if !write.unknown() || told > d.bound()+5*time.Second {
		t.Errorf("the write that the far worker ran: %s, which is %s after the cut; want its outcome to be unknown as soon as the worker is down", &write, told)
	}
	if read.err != nil || read.where != "near" {
		t.Errorf("the read that the far worker ran: %s; want it from the near one", &read)
	}
	for _, o := range failedOver {
		if o.err != nil || o.where != "near" {
			t.Errorf("a write that waited in the far worker: %s; want it from the near one", &o)
		}
	}
	t.Logf("cut for %s; down after %s (bound %s); up again after %s", d.cut, down, d.bound(), up)
	t.Logf("what the far worker ran: the write's caller was told %s after the cut, the read's had its answer after %s", told,
		read.began.Add(read.took).Sub(cutAt).Round(100*time.Millisecond))
	d.judge(t, append(append(outcomes, write, read), failedOver...), cutAt, mendedAt)
}

func servedByFarAgain(all []outcome, since time.Time) bool {
	for _, o := range all {
		if o.began.After(since) && o.where == "far" {
			return true
		}
	}
	return false
}

// judge holds what callers were told against the log of the tools.
func (d *deployment) judge(t *testing.T, outcomes []outcome, cut, mended time.Time) {
	t.Helper()
	runs := map[string]int{}
	for _, line := range d.lines(t) {
		tool, id, _ := strings.Cut(line, " ")
		id, _, _ = strings.Cut(id, " ")
		runs[tool+" "+id]++
	}
	var during, unknown, again int
	var longest outcome
	for _, o := range outcomes {
		n := runs[o.tool+" "+o.id]
		if o.began.After(cut) && o.began.Before(mended) {
			during++
		}
		if o.took > longest.took {
			longest = o
		}
		switch {
		case o.tool == "read":
			again += max(n-1, 0)
			if o.err != nil {
				t.Errorf("%s", &o)
			}
		case n > 1:
			t.Errorf("%s ran %d times", &o, n)
		case o.unknown():
			unknown++
		case o.err != nil:
			t.Errorf("%s, and it ran %d times", &o, n)
		case n != 1:
			t.Errorf("%s, and it ran %d times", &o, n)
		}
	}
	if bound := d.bound() + 30*time.Second; longest.took > bound {
		t.Errorf("%s: longer than %s", &longest, bound)
	}
	t.Logf("%d calls, %d of them during the cut; outcome unknown: %d; reads that ran again: %d; longest: %s", len(outcomes), during, unknown, again, &longest)
}

// call makes one call.
func (d *deployment) call(ctx context.Context, tool string, e entry) outcome {
	o := outcome{tool: tool, id: e.ID, began: time.Now()}
	args, err := json.Marshal(e)
	if err != nil {
		return outcome{tool: tool, id: e.ID, err: err}
	}
	res, err := d.client.Call(ctx, api.CallRequest{Name: "log_" + tool, Arguments: args})
	o.took, o.err = time.Since(o.began), err
	if err != nil {
		return o
	}
	var p place
	if o.err = json.Unmarshal(res.Structured, &p); o.err == nil {
		o.where = p.Where
	}
	return o
}

// calls makes calls of each tool with each entry, all at once.
func (d *deployment) calls(t *testing.T, list []entry, tools ...string) []chan outcome {
	var all []chan outcome
	for _, e := range list {
		for _, tool := range tools {
			c := make(chan outcome, 1)
			go func() { c <- d.call(t.Context(), tool, e) }()
			all = append(all, c)
		}
	}
	return all
}

// callSteadily makes calls from several callers until the function that it returns is called, and what that one demands
// of the outcomes holds.
func (d *deployment) callSteadily(t *testing.T) (end func(func([]outcome) bool) []outcome) {
	var (
		mu   sync.Mutex
		all  []outcome
		stop = make(chan struct{})
		busy sync.WaitGroup
	)
	for caller := range 8 {
		busy.Go(func() {
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-tick.C:
				}
				tool := [...]string{"write", "write", "read"}[i%3]
				o := d.call(t.Context(), tool, entry{ID: fmt.Sprintf("steady-%d-%d", caller, i)})
				mu.Lock()
				all = append(all, o)
				mu.Unlock()
			}
		})
	}
	return func(enough func([]outcome) bool) []outcome {
		until(t, "calls reach the far worker again", limit, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return enough(all)
		})
		close(stop)
		busy.Wait()
		return all
	}
}

// until waits for something that another process does.
func until(t *testing.T, what string, within time.Duration, is func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(within); !is(); {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("it did not come to be that %s within %s", what, within)
		}
	}
}

// await waits until something holds of the workers.
func (d *deployment) await(t *testing.T, what string, within time.Duration, is func([]registry.WorkerState) bool) []registry.WorkerState {
	t.Helper()
	var list []registry.WorkerState
	until(t, what, within, func() bool {
		resp, err := d.client.Workers(t.Context())
		if err != nil || len(resp.Toolsets) == 0 {
			return false
		}
		list = resp.Toolsets[0].Workers
		return is(list)
	})
	return list
}

func (d *deployment) of(list []registry.WorkerState, instance string) registry.WorkerState {
	for _, w := range list {
		if w.Instance == instance {
			return w
		}
	}
	return registry.WorkerState{}
}

func (d *deployment) isUp(list []registry.WorkerState, instance string) bool {
	return d.of(list, instance).Up
}

// lines returns the log of the tools.
func (d *deployment) lines(t *testing.T) []string {
	text, err := os.ReadFile(d.log)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// logged waits until so many calls have begun.
func (d *deployment) logged(t *testing.T, n int) {
	t.Helper()
	until(t, fmt.Sprintf("%d calls have begun", n), limit, func() bool { return len(d.lines(t)) >= n })
}
