package registry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/store/sqlstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func memory(t testing.TB) *sqlstore.DB {
	t.Helper()
	db, err := sqlstore.OpenMemory(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func accepted(id, digest string) *call {
	c := newCall(id, record{Version: recordVersion, State: stateAccepted, Toolset: "math", Tool: "add", Digest: digest, Token: "token",
		Accepted: time.Now(), Deadline: time.Now().Add(time.Hour), Message: &ToolCallMessage{Type: TypeCall, ToolUseID: id, Tool: "add", Meta: &ToolCallMeta{TenantID: "acme"}}},
		callKey("acme", id))
	c.recorded = true
	return c
}

// model is what a call's record must be, and machine the processes that know of
// it.
type model struct {
	state  state
	holder string
	result string
	unrun  bool // it is over and did not run
	runs   int  // how many workers were told to run it, under any id, and did not say that they have not
	kept   bool
}

type machine struct {
	model
	l         *ledger
	name, id  string
	n         int      // of the id among those of the call
	processes [2]*call // nil after a crash
	past      []*call  // as processes knew it under ids before
}

func (m *machine) idAt(n int) string { return fmt.Sprint(m.name, "-", n) }

// process returns the call as a process knows it, which it reads from the store
// when it has just begun. While nothing is written, it is a call that comes to this
// process too.
func (m *machine) process(t *rapid.T, n int) *call {
	if m.processes[n] != nil {
		return m.processes[n]
	}
	key := callKey("acme", m.id)
	rec, rev, err := m.l.read(context.Background(), key)
	if err != nil {
		t.Fatalf("the record: %v", err)
	}
	if rec == nil {
		m.processes[n] = accepted(m.id, "digest")
		return m.processes[n]
	}
	r := &Registry{ledger: *m.l, calls: map[string]*call{}}
	m.processes[n] = r.adopt(key, rec, rev)
	return m.processes[n]
}

func (m *machine) claim(t *rapid.T, n int, by string) {
	v, held, err := m.process(t, n).claim(context.Background(), m.l, &Claim{ToolUseID: m.id, Instance: by, Token: "token"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[state]Verdict{stateAccepted: VerdictRun, stateClaimed: VerdictHeld, stateDone: VerdictOver}[m.state]
	if m.state == stateClaimed && m.holder == by {
		want = VerdictRun
	}
	if v != want || want == VerdictHeld && held != m.holder {
		t.Fatalf("a claim of %s in state %s, held by %q, gives %s, held by %q", by, m.state, m.holder, v, held)
	}
	if m.state == stateAccepted {
		m.state, m.holder = stateClaimed, by
		m.runs++
	}
}

func (m *machine) giveBack(t *rapid.T, n int, by string) {
	if err := m.process(t, n).unclaim(context.Background(), m.l, &Claim{ToolUseID: m.id, Instance: by, Token: "token"}); err != nil {
		t.Fatal(err)
	}
	if m.state == stateClaimed && m.holder == by {
		m.state, m.holder = stateAccepted, ""
		m.runs--
	}
}

// finish ends it. unrun says that whoever has it has not run it.
func (m *machine) finish(t *rapid.T, n int, message string, unrun bool) {
	if err := m.process(t, n).finish(context.Background(), m.l, failed(m.id, &ToolError{Message: message, NotDelivered: unrun})); err != nil {
		t.Fatal(err)
	}
	if m.state == stateDone {
		return
	}
	if unrun && m.state == stateClaimed {
		m.runs--
	}
	m.state, m.result, m.unrun = stateDone, message, unrun
}

// again asks for the call once more, which goes on under the next id when it did not
// run.
func (m *machine) again(t *rapid.T) {
	next := m.l.passUnrun(context.Background(), "digest", 0, time.Now().Add(time.Hour), func(n int) store.Key { return callKey("acme", m.idAt(n)) })
	want := m.n
	if m.state == stateDone && m.unrun {
		want++
	}
	if next != want {
		t.Fatalf("the call goes on under id %d, and not %d, in state %+v", next, want, m.model)
	}
	if next == m.n {
		return
	}
	for i, c := range m.processes {
		if c != nil {
			m.past = append(m.past, c)
		}
		m.processes[i] = nil
	}
	m.n, m.id = next, m.idAt(next)
	m.model = model{state: stateAccepted, runs: m.runs}
}

// late has a worker claim the call, and give it a result, under an id of before.
func (m *machine) late(t *rapid.T, i int, by string) {
	if len(m.past) == 0 {
		return
	}
	c := m.past[i%len(m.past)]
	v, _, err := c.claim(context.Background(), m.l, &Claim{ToolUseID: c.id, Instance: by, Token: "token"})
	if err != nil || v != VerdictOver {
		t.Fatalf("a late claim gives %s, %v", v, err)
	}
	if err := c.finish(context.Background(), m.l, failed(c.id, &ToolError{Message: "late"})); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) lose(t *rapid.T, n int, worker, message string) {
	if err := m.process(t, n).finishLost(context.Background(), m.l, worker, failed(m.id, &ToolError{Message: message})); err != nil {
		t.Fatal(err)
	}
	if m.state == stateClaimed && m.holder == worker {
		m.state, m.result = stateDone, message
	}
}

func (m *machine) withdraw(t *rapid.T, n int, message string) {
	got, err := m.process(t, n).finishUnclaimed(context.Background(), m.l, failed(m.id, &ToolError{Message: message, NotDelivered: true}))
	if err != nil || got != (m.state == stateAccepted) {
		t.Fatalf("withdrawn in state %s: %v, %v", m.state, got, err)
	}
	if got {
		m.state, m.result, m.unrun = stateDone, message, true
	}
}

func (m *machine) check(t *rapid.T) {
	rec, _, err := m.l.read(context.Background(), callKey("acme", m.id))
	if err == nil && rec == nil && m.state == stateAccepted && !m.kept {
		return
	}
	if err != nil || rec == nil || rec.State != m.state || rec.Instance != m.holder {
		t.Fatalf("the store says %+v, %v; want %+v", rec, err, m.model)
	}
	if (rec.Result != nil) != (m.state == stateDone) || rec.Message != nil && m.state != stateAccepted || (rec.meta() == nil) != (m.state == stateDone) {
		t.Fatalf("in state %s the record has the result %v, the message %v and the meta %v", m.state, rec.Result, rec.Message, rec.meta())
	}
	if rec.Result != nil && rec.Result.Error.Message != m.result {
		t.Fatalf("the result is %q, and was %q", rec.Result.Error.Message, m.result)
	}
	if m.runs > 1 {
		t.Fatalf("%d workers were told to run it", m.runs)
	}
}

// Whatever workers claim and answer, in two gateways that crash and come back, a
// call is run by one worker at most and ends in one result that stays. One that did
// not run goes on under another id when it is asked for again.
func TestCallRecord(t *testing.T) {
	db := memory(t)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		m := &machine{model: model{state: stateAccepted}, l: &ledger{records: db, retention: time.Hour}, name: fmt.Sprintf("call-%d", n)}
		m.id = m.idAt(0)
		process, worker := rapid.IntRange(0, 1), rapid.SampledFrom([]string{"w1", "w2", "w3"})
		message := rapid.StringMatching(`[a-z]{1,8}`)
		t.Repeat(map[string]func(*rapid.T){
			"claim": func(t *rapid.T) { m.claim(t, process.Draw(t, "process"), worker.Draw(t, "worker")) },
			"finish": func(t *rapid.T) {
				m.finish(t, process.Draw(t, "process"), message.Draw(t, "result"), rapid.Bool().Draw(t, "unrun"))
			},
			"again": m.again,
			"late":  func(t *rapid.T) { m.late(t, rapid.IntRange(0, 9).Draw(t, "which"), worker.Draw(t, "worker")) },
			"lose": func(t *rapid.T) {
				m.lose(t, process.Draw(t, "process"), worker.Draw(t, "worker"), message.Draw(t, "result"))
			},
			"withdraw":  func(t *rapid.T) { m.withdraw(t, process.Draw(t, "process"), message.Draw(t, "result")) },
			"give back": func(t *rapid.T) { m.giveBack(t, process.Draw(t, "process"), worker.Draw(t, "worker")) },
			"keep": func(t *rapid.T) {
				m.process(t, process.Draw(t, "process")).keep(context.Background(), m.l)
				m.kept = true
			},
			"crash": func(t *rapid.T) { m.processes[process.Draw(t, "process")] = nil },
			"look": func(t *rapid.T) {
				if err := m.process(t, process.Draw(t, "process")).refresh(context.Background(), m.l); err != nil {
					t.Fatal(err)
				}
			},
			"": m.check,
		})
	})
}

// Of many claims at once, through two gateways, one is granted.
func TestClaimsAtOnce(t *testing.T) {
	l := &ledger{records: memory(t), retention: time.Hour}
	first := accepted("one", "digest")
	first.keep(t.Context(), l)
	rec, rev, err := l.read(t.Context(), first.key)
	if err != nil {
		t.Fatal(err)
	}
	second := (&Registry{ledger: *l, calls: map[string]*call{}}).adopt(first.key, rec, rev)
	var mu sync.Mutex
	granted := 0
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			c := []*call{first, second}[i%2]
			v, _, err := c.claim(t.Context(), l, &Claim{ToolUseID: "one", Instance: fmt.Sprint("w", i), Token: "token"})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if v == VerdictRun {
				granted++
			}
		})
	}
	wg.Wait()
	if granted != 1 {
		t.Errorf("%d claims were granted", granted)
	}
}

// The same call again goes on with its record; another of the same id is refused.
func TestSameCallAgain(t *testing.T) {
	l := &ledger{records: memory(t), retention: time.Hour}
	first := accepted("one", "digest")
	first.keep(t.Context(), l)
	if err := first.finish(t.Context(), l, failed("one", &ToolError{Message: "the answer"})); err != nil {
		t.Fatal(err)
	}
	again := accepted("one", "digest")
	again.keep(t.Context(), l)
	if again.fault != nil || !again.over() || again.result.Error.Message != "the answer" {
		t.Errorf("again: %v, %+v", again.fault, again.result)
	}
	other := accepted("one", "another")
	other.keep(t.Context(), l)
	if !errors.Is(other.fault, errOtherBody) || other.over() {
		t.Errorf("another of the same id: %v", other.fault)
	}
	if v, _, err := again.claim(t.Context(), l, &Claim{ToolUseID: "one", Instance: "w", Token: "token"}); v != VerdictOver || err != nil {
		t.Errorf("a claim of a call that is over: %s, %v", v, err)
	}
}

func TestClaimNeedsTheToken(t *testing.T) {
	l := &ledger{records: memory(t), retention: time.Hour}
	c := accepted("one", "digest")
	c.keep(t.Context(), l)
	for token, want := range map[string]Verdict{"": VerdictOver, "other": VerdictOver} {
		if v, _, err := c.claim(t.Context(), l, &Claim{ToolUseID: "one", Instance: "w", Token: token}); v != want || err != nil {
			t.Errorf("token %q: %s, %v", token, v, err)
		}
	}
	if v, _, _ := c.claim(t.Context(), l, &Claim{ToolUseID: "one", Instance: "w", Token: "token"}); v != VerdictRun {
		t.Errorf("the right token: %s", v)
	}
}

// The record of a call that is over expires, so that the store does not grow
// with the calls of the past.
func TestRecordsExpire(t *testing.T) {
	now := time.Now()
	var mu sync.Mutex
	db, err := sqlstore.OpenMemory(t.Context(), &sqlstore.Options{Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	l := &ledger{records: db, retention: time.Hour}
	c := accepted("one", "digest")
	c.keep(t.Context(), l)
	if err := c.finish(t.Context(), l, failed("one", &ToolError{})); err != nil {
		t.Fatal(err)
	}
	for after, there := range map[time.Duration]bool{50 * time.Minute: true, 70 * time.Minute: false} {
		mu.Lock()
		now = time.Now().Add(after)
		mu.Unlock()
		rec, _, err := l.read(t.Context(), c.key)
		if err != nil || (rec != nil) != there {
			t.Errorf("after %s: %v, %v", after, rec, err)
		}
	}
	page, err := db.Due(t.Context(), callCollection, 10)
	if err != nil || len(page) != 0 {
		t.Errorf("a call that is over is due: %v, %v", page, err)
	}
}

// A call that is claimed or ends before it was recorded needs no record of before.
func TestFirstStepIsTheFirstRecord(t *testing.T) {
	db := memory(t)
	l := &ledger{records: db, retention: time.Hour}
	claimed, ended := accepted("claimed", "digest"), accepted("ended", "digest")
	if v, _, err := claimed.claim(t.Context(), l, &Claim{ToolUseID: "claimed", Instance: "w", Token: "token"}); v != VerdictRun || err != nil {
		t.Errorf("a claim: %s, %v", v, err)
	}
	if got, err := ended.finishUnclaimed(t.Context(), l, failed("ended", &ToolError{})); !got || err != nil {
		t.Errorf("withdrawn: %v, %v", got, err)
	}
	for c, want := range map[*call]state{claimed: stateClaimed, ended: stateDone} {
		before := c.rev
		c.keep(t.Context(), l)
		rec, rev, err := l.read(t.Context(), c.key)
		if err != nil || rec.State != want || rev != before {
			t.Errorf("the record of %s: %+v, revision %d, %v; want revision %d", c.id, rec, rev, err, before)
		}
	}
}

// noting is a store that notes which batches do not wait for the disk.
type noting struct {
	store.Records
	later []bool
}

func (n *noting) Apply(ctx context.Context, b store.Batch) ([]store.Revision, error) {
	n.later = append(n.later, b.Later)
	return n.Records.Apply(ctx, b)
}

// What would have a call run again, if it were lost, is on the disk before the next
// step.
func TestWhatWaitsForTheDisk(t *testing.T) {
	by := &Claim{ToolUseID: "one", Instance: "w", Token: "token"}
	steps := map[string]func(c *call, l *ledger) error{
		"keep":  func(c *call, l *ledger) error { c.keep(t.Context(), l); return nil },
		"claim": func(c *call, l *ledger) error { _, _, err := c.claim(t.Context(), l, by); return err },
		"back":  func(c *call, l *ledger) error { return c.unclaim(t.Context(), l, by) },
		"end":   func(c *call, l *ledger) error { return c.finish(t.Context(), l, failed("one", &ToolError{})) },
	}
	for _, way := range []struct {
		steps            []string
		grouped, relaxed string // d for each write that waits for the disk
	}{
		{[]string{"claim", "end"}, "d-", "--"},
		{[]string{"keep", "claim", "end"}, "dd-", "-d-"},
		{[]string{"end"}, "d", "-"},
		{[]string{"keep", "end"}, "dd", "-d"},
		{[]string{"claim", "back", "claim", "end"}, "ddd-", "--d-"},
		{[]string{"claim", "back", "end"}, "ddd", "--d"},
	} {
		for later, want := range map[bool]string{false: way.grouped, true: way.relaxed} {
			records := &noting{Records: memory(t)}
			l, c := &ledger{records: records, retention: time.Hour, later: later}, accepted("one", "digest")
			for _, name := range way.steps {
				if err := steps[name](c, l); err != nil {
					t.Fatal(err)
				}
			}
			got := ""
			for _, relaxed := range records.later {
				got += map[bool]string{false: "d", true: "-"}[relaxed]
			}
			if got != want {
				t.Errorf("%v, later %v: %s, want %s", way.steps, later, got, want)
			}
		}
	}
}

// The keeper records what no worker has claimed after a while, and at its end at
// once.
func TestKeeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{records: memory(t), retention: time.Hour}
		var k keeper
		k.init()
		ctx, end := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { k.run(ctx, l); close(done) }()
		there := func(id string) bool {
			rec, _, err := l.read(t.Context(), callKey("acme", id))
			if err != nil {
				t.Fatal(err)
			}
			return rec != nil
		}
		k.soon(accepted("early", "digest"))
		time.Sleep(keepAfter / 2)
		k.soon(accepted("late", "digest"))
		time.Sleep(keepAfter/2 + time.Millisecond)
		synctest.Wait()
		if !there("early") || there("late") {
			t.Errorf("after %s: early %v, late %v", keepAfter, there("early"), there("late"))
		}
		end()
		<-done
		k.soon(accepted("after", "digest"))
		if !there("late") || !there("after") {
			t.Errorf("at the end: late %v, after %v", there("late"), there("after"))
		}
	})
}

// A store that is away refuses the call and does not claim it.
func TestStoreAway(t *testing.T) {
	db := memory(t)
	l := &ledger{records: db, retention: time.Hour}
	c := accepted("one", "digest")
	c.keep(t.Context(), l)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if v, _, err := c.claim(t.Context(), l, &Claim{ToolUseID: "one", Instance: "w", Token: "token"}); v != VerdictRetry || !errors.Is(err, store.ErrClosed) {
		t.Errorf("a claim: %s, %v", v, err)
	}
	other := accepted("two", "digest")
	if other.keep(t.Context(), l); other.fault == nil || !other.homeless.Load() {
		t.Error("a call was accepted without a record")
	}
}

// A caller that went away may have the record read, as when its call is ended
// unless a worker has it.
func TestStepsOutliveTheirCaller(t *testing.T) {
	l := &ledger{records: memory(t), retention: time.Hour}
	c := accepted("one", "digest")
	if v, _, err := c.claim(t.Context(), l, &Claim{ToolUseID: "one", Instance: "w", Token: "token"}); v != VerdictRun || err != nil {
		t.Fatalf("a claim: %s, %v", v, err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if unclaimed, err := c.finishUnclaimed(gone, l, failed("one", &ToolError{})); unclaimed || err != nil {
		t.Errorf("the end of a call that a worker has: %v, %v", unclaimed, err)
	}
	if err := c.finishLost(gone, l, "another", failed("one", &ToolError{})); err != nil || c.over() {
		t.Errorf("the loss of a worker that does not have it: %v, over %v", err, c.over())
	}
}
