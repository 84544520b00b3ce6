package faults

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/test/control"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/toolstest"
)

func number(t testing.TB, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// However many calls race for a child that is dying, one takes its place, and never two at a time. A call that was still
// written into the pipe of the old one says so, and none runs twice.
func TestOneChildForAllCallers(t *testing.T) {
	toolstest.NothingLeft(t)
	desk := control.Open(t, nil)
	g := open(t, child("kid", "plain", desk, ""))
	desk.Order(t, "crash")
	desk.Wait(t, control.Gone, 1)
	var wg sync.WaitGroup
	var answered, lost atomic.Int32
	for i := range 50 {
		wg.Go(func() {
			res, err := g.call(t, "kid_echo", fmt.Sprintf(`{"i":%d}`, i))
			switch {
			case errors.Is(err, tools.ErrOutcomeUnknown):
				lost.Add(1)
			case err == nil && res.Text() == fmt.Sprintf(`{"i":%d}`, i):
				answered.Add(1)
			default:
				t.Errorf("call %d: %q, %v", i, res.Text(), err)
			}
		})
	}
	wg.Wait()
	g.text(t, "kid_echo", `{}`)
	if starts := desk.Events("start"); len(starts) != 2 || desk.Most() != 1 {
		t.Errorf("children: %v, at the same time: %d", starts, desk.Most())
	}
	desk.Wait(t, "call", int(answered.Load())+1) // a report may come after the answer
	if ran := len(desk.Events("call")); ran != int(answered.Load())+1 {
		t.Errorf("%d calls were answered and %d lost, and %d ran", answered.Load()+1, lost.Load(), ran)
	}
}

// Of whoever has a connection of its own, each has one child, however many of its calls race, beside the one that is asked
// for the lists.
func TestOneChildForEachScope(t *testing.T) {
	toolstest.NothingLeft(t)
	for scope, want := range map[string]int{"shared": 1, "per_user": 4, "per_session": 7} {
		t.Run(scope, func(t *testing.T) {
			desk := control.Open(t, nil)
			g := open(t, child("kid", "plain", desk, ", session: "+scope))
			var wg sync.WaitGroup
			for i := range 60 {
				who := identity.Identity{TenantID: "t", UserID: fmt.Sprint(i % 3), SessionID: fmt.Sprint(i % 6)}
				wg.Go(func() {
					ctx := identity.With(g.LocalContext(bounded(t)), who)
					if _, err := tools.Invoke(ctx, g.Catalog(), "kid_echo", nil); err != nil {
						t.Errorf("call %d: %v", i, err)
					}
				})
			}
			wg.Wait()
			if starts := desk.Events("start"); len(starts) != want {
				t.Errorf("%d children, want %d: %v", len(starts), want, starts)
			}
		})
	}
}

func TestChildHasItsOwnGroupAndEnvironment(t *testing.T) {
	t.Setenv("FAULTS_TEST_SECRET", "s3cr3t")
	t.Setenv("LANG", "C")
	t.Setenv("TMPDIR", "/tmp")
	desk := control.Open(t, nil)
	g := open(t, child("kid", "plain", desk, ""))
	ids := strings.Fields(desk.Wait(t, "start", 1))
	if ids[0] != ids[1] {
		t.Errorf("process %s is in group %s", ids[0], ids[1])
	}
	env := strings.Split(g.text(t, "kid_env", `{}`), "\n")
	slices.Sort(env)
	want := []string{modeVariable + "=plain", "GORACE=atexit_sleep_ms=0", "HOME=" + os.Getenv("HOME"), "LANG=C", "PATH=" + os.Getenv("PATH"),
		control.Variable + "=" + desk.Addr(), "TMPDIR=/tmp"}
	slices.Sort(want)
	if diff := cmp.Diff(want, env); diff != "" {
		t.Error(diff)
	}
}

func TestNoiseIsTolerated(t *testing.T) {
	desk := control.Open(t, nil)
	g := open(t, child("kid", "plain", desk, ""))
	for range 3 {
		if got := g.text(t, "kid_noise", `{}`); got != "quiet again" {
			t.Errorf("the answer after noise: %q", got)
		}
	}
	if n := len(desk.Events("start")); n != 1 {
		t.Errorf("%d children", n)
	}
}

func TestStderrIsLabelledAndBounded(t *testing.T) {
	desk := control.Open(t, nil)
	g := open(t, child("kid", "chatty", desk, ""))
	g.text(t, "kid_echo", `{}`)
	lines := 0
	for line := range strings.Lines(g.log.String()) {
		if strings.Contains(line, "line ") && strings.Contains(line, "stderr") {
			lines++
			if !strings.Contains(line, "kid") {
				t.Errorf("unlabelled: %s", line)
			}
		}
	}
	if lines < 50 || lines > 1000 {
		t.Errorf("%d lines of 5000 are in the log", lines)
	}
}

// Closing sends the end of the input, then SIGTERM, then SIGKILL, to the child and to what it started.
func TestStubbornChildIsEnded(t *testing.T) {
	toolstest.NothingLeft(t)
	desk := control.Open(t, nil)
	g := open(t, child("kid", "stubborn", desk, ""))
	kid, grand := number(t, g.text(t, "kid_pid", `{}`)), number(t, g.text(t, "kid_family", `{}`))
	stray := number(t, g.text(t, "kid_stray", `{}`))
	began := time.Now()
	if err := g.Close(bounded(t)); err != nil {
		t.Errorf("Close: %v", err)
	}
	if spent := time.Since(began); spent > 15*time.Second {
		t.Errorf("it took %s", spent)
	}
	desk.Wait(t, "eof", 1)
	if len(desk.Events("eof")) != 1 {
		t.Error("its input did not end first")
	}
	if peertest.Alive(kid) || peertest.Alive(stray) {
		t.Error("the child, or what it started, is left when Close has returned")
	}
	peertest.ExpectGone(t, grand, "the grandchild")
}

// The answer of a child that closes its output and then hangs is an answer.
func TestAnswerOfAChildThatHangsOnExit(t *testing.T) {
	toolstest.NothingLeft(t)
	desk := control.Open(t, nil)
	g := open(t, child("kid", "plain", desk, ""))
	began := time.Now()
	if got := g.text(t, "kid_lastwords", `{}`); got != "farewell" {
		t.Errorf("answer: %q", got)
	}
	if spent := time.Since(began); spent > 2*time.Second {
		t.Errorf("the answer took %s", spent)
	}
	await(t, "another child takes its place", func() bool {
		_, err := g.call(t, "kid_echo", `{}`)
		return err == nil
	})
	if desk.Most() != 1 {
		t.Errorf("%d children at the same time", desk.Most())
	}
}

// The answer that a child writes with its last breath is never lost.
func TestAnswerOfAChildThatEnds(t *testing.T) {
	toolstest.NothingLeft(t)
	var servers []string
	for i := range 10 {
		servers = append(servers, child(fmt.Sprintf("kid%d", i), "plain", control.Open(t, nil), ""))
	}
	g := open(t, servers...)
	for i := range servers {
		if res, err := g.call(t, fmt.Sprintf("kid%d_goodbye", i), `{}`); err != nil || res.Text() != "goodbye" {
			t.Errorf("server %d: %q, %v", i, res.Text(), err)
		}
	}
}

// A call under way when the gateway is closed gets its answer, from a child that does not end by itself.
func TestCallUnderWayAtTheEnd(t *testing.T) {
	toolstest.NothingLeft(t)
	desk := control.Open(t, nil)
	g := open(t, child("kid", "stubborn", desk, ""))
	call := g.later(t, "kid_wait", `{}`)
	desk.Wait(t, "waiting", 1)
	closed := make(chan error, 1)
	go func() { closed <- g.Close(bounded(t)) }()
	await(t, "new calls are refused", func() bool {
		_, err := g.call(t, "kid_echo", `{}`)
		return errors.Is(err, tools.ErrOverloaded)
	})
	desk.Order(t, "release")
	if got := receive(t, call); got.err != nil || got.Text() != "released" {
		t.Errorf("the call: %q, %v", got.Text(), got.err)
	}
	if err := receive(t, closed); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// Calls that a child had when it died are told that their outcome is unknown and are not sent again, unless they only
// read; calls that come later find another child.
func TestCrashTellsTheTruth(t *testing.T) {
	toolstest.NothingLeft(t)
	desk := control.Open(t, nil)
	g := open(t, child("kid", "plain", desk, ""))
	first := g.text(t, "kid_pid", `{}`)
	waiting := g.later(t, "kid_wait", `{}`)
	desk.Wait(t, "waiting", 1)
	_, err := g.call(t, "kid_crash", `{}`)
	for title, got := range map[string]error{"the call that it died of": err, "the other call": receive(t, waiting).err} {
		var te *tools.Error
		if !errors.Is(got, tools.ErrOutcomeUnknown) || !errors.As(got, &te) || te.Attempts != 1 || !strings.Contains(te.SafeMessage(), "kid") {
			t.Errorf("%s ended with %#v", title, got)
		}
	}
	if second := g.text(t, "kid_pid", `{}`); second == first {
		t.Errorf("still process %s", second)
	}
	if ran := desk.Events("call"); slices.Contains(ran[3:], "crash") || slices.Contains(ran[3:], "wait") {
		t.Errorf("something was sent again: %v", ran)
	}
	if g.state("kid") != "ready" {
		t.Errorf("the source is %s", g.state("kid"))
	}
}

// A child that ends as soon as it starts is started ever more rarely.
func TestCrashLoopBacksOff(t *testing.T) {
	toolstest.NothingLeft(t)
	desk, other := control.Open(t, nil), control.Open(t, nil)
	g := open(t, child("bad", "failing", desk, ""), child("good", "plain", other, ""))
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
		g.text(t, "good_echo", `{}`)
	}
	if n := len(desk.Events("start")); n < 2 || n > 12 {
		t.Errorf("%d starts in three seconds", n)
	}
	if g.state("bad") != "down" || !strings.Contains(fmt.Sprint(g.Sources()), "out of luck") {
		t.Errorf("states: %+v", g.Sources())
	}
}

// What a child started ends with it.
func TestGrandchildEndsWithACrash(t *testing.T) {
	desk := control.Open(t, nil)
	g := open(t, child("kid", "plain", desk, ""))
	grand, stray := number(t, g.text(t, "kid_family", `{}`)), number(t, g.text(t, "kid_stray", `{}`))
	for end := time.Now().Add(time.Second); time.Now().Before(end); { // until the stray has been seen
		g.text(t, "kid_echo", `{}`)
	}
	desk.Order(t, "crash")
	peertest.ExpectGone(t, grand, "the grandchild")
	peertest.ExpectGone(t, stray, "the grandchild with a session of its own")
}

func TestNothingLeftAfterCycles(t *testing.T) {
	toolstest.NothingLeft(t)
	n := *cycles
	if testing.Short() {
		n = min(n, 10)
	}
	desk := control.Open(t, nil)
	for i := range n {
		t.Run("", func(t *testing.T) {
			g := open(t, child("kid", "plain", desk, ""))
			if got := g.text(t, "kid_echo", `{}`); got != `{}` {
				t.Errorf("cycle %d: %s", i, got)
			}
		})
	}
	starts := desk.Events("start")
	if len(starts) != n || desk.Most() != 1 {
		t.Errorf("%d cycles had %d children, %d at the same time", n, len(starts), desk.Most())
	}
	for _, ids := range starts {
		if pid := number(t, strings.Fields(ids)[0]); peertest.Alive(pid) && slices.Contains(toolstest.Children(os.Getpid()), pid) {
			t.Errorf("child %d is left", pid)
		}
	}
}

// A child that never says anything is given up, holds up nobody, and is ended.
func TestMuteChild(t *testing.T) {
	toolstest.NothingLeft(t)
	desk, other := control.Open(t, nil), control.Open(t, nil)
	g := openWith(t, "limits: {connect_timeout_ms: 1000}", child("mute", "mute", desk, ""), child("kid", "plain", other, ""))
	g.text(t, "kid_echo", `{}`)
	if g.state("mute") != "down" {
		t.Errorf("states: %+v", g.Sources())
	}
	desk.Wait(t, "start", 2)
	if desk.Most() != 1 {
		t.Errorf("%d children at the same time", desk.Most())
	}
}

// A child that reads its input no more takes no call with it for longer than the time limit, and no other server.
func TestChildThatStopsReading(t *testing.T) {
	toolstest.NothingLeft(t)
	desk, other := control.Open(t, nil), control.Open(t, nil)
	g := open(t, child("kid", "plain", desk, ", policy: {timeout_ms: 500, max_attempts: 1}"), child("other", "plain", other, ""))
	g.text(t, "kid_blind", `{}`)
	_, _ = g.call(t, "kid_echo", `{}`) // the last message that it reads
	defer g.keepCalling(t, "other_echo")()
	args := fmt.Sprintf(`{"a":%q}`, strings.Repeat("a", 64<<10))
	var wg sync.WaitGroup
	began := time.Now()
	for range 32 {
		wg.Go(func() {
			_, err := g.call(t, "kid_echo", args)
			var te *tools.Error
			if !errors.As(err, &te) || te.Class == tools.ErrClassPermanent || te.Delivery == tools.Answered {
				t.Errorf("the call ended with %#v", err)
			}
		})
	}
	wg.Wait()
	if spent := time.Since(began); spent > 5*time.Second {
		t.Errorf("the calls took %s", spent)
	}
}
