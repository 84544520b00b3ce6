package toolstest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
)

// stepLimit bounds each thing that the suites wait for, generously: it decides
// only how long a failure takes.
const stepLimit = 30 * time.Second

// A SourceCase is one kind of source and the real server behind it.
type SourceCase struct {
	// Open starts a server of its own and returns it with a provider that is
	// not connected. What it starts it ends with t.Cleanup, and so completely
	// that no goroutine, file or child of it is left.
	Open func(t *testing.T) *Source
	// MaxBig bounds the size of the large result, in bytes, where the transport
	// has a limit of its own. 0 means 8 MiB.
	MaxBig int
}

// A Source is a provider and the real server that it reaches.
type Source struct {
	// Provider is what is tested.
	Provider tools.ToolProvider
	// Echo is a call whose result holds text.
	Echo func(text string) Probe
	// Big is a call whose result holds the letter x n times in a row.
	Big func(n int) Probe
	// Wait is a call that the server begins and does not answer until it is
	// cancelled.
	Wait Probe
	// Bad is a call whose arguments do not satisfy the tool's schema.
	Bad Probe
	// Failures are calls that fail, and how.
	Failures []Failure
	// Waiting receives when the server has begun a call of Wait.
	Waiting <-chan struct{}
	// Cancelled receives when the server saw such a call cancelled. Nil where
	// the transport cannot say so.
	Cancelled <-chan struct{}
	// Stop takes the server down: until Start nobody answers where it was, and
	// whatever was connected to it is cut off. Nil where it cannot be stopped.
	Stop, Start func()
	// Change gives the server one more tool and returns its canonical name. Nil
	// where what the source offers never changes.
	Change func() string
	// Secrets are texts that no error may hold.
	Secrets []string
}

// A Probe is one call.
type Probe struct {
	// Name is the canonical name of the tool.
	Name string
	// Args are its arguments.
	Args json.RawMessage
}

// A Failure is a call that the server lets fail, and what is known of it then.
type Failure struct {
	// Title names the failure in the test's output.
	Title string
	Probe
	// Answer says that the failure is the tool's answer, a result with IsError
	// and no error. The other fields then mean nothing.
	Answer bool
	// Class and Delivery are those of the error.
	Class    tools.ErrorClass
	Delivery tools.Delivery
	// RetryAfter is how long the server asked to wait.
	RetryAfter time.Duration
}

// RunSource runs the suite that every source of tools passes: discovery, change,
// results small and large, cancellation, deadlines, failures and what is known of
// them, many calls at once, a server that goes and comes back, and an end that
// leaves nothing behind. Its tests run one after the other.
func RunSource(t *testing.T, c SourceCase) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, *sourceRun)
	}{
		{"Discover", testDiscover},
		{"Call", testCall},
		{"Change", testChange},
		{"Cancel", testCancel},
		{"Deadline", testDeadline},
		{"BigResult", testBigResult},
		{"BadArguments", testBadArguments},
		{"Failures", testFailures},
		{"ManyAtOnce", testManyAtOnce},
		{"DownAndUp", testDownAndUp},
		{"Close", testClose},
	} {
		t.Run(test.name, func(t *testing.T) {
			NothingLeft(t)
			test.run(t, openSource(t, c))
		})
	}
}

// A sourceRun is one source while it is tested.
type sourceRun struct {
	*Source
	cat     tools.LiveCatalog
	changed chan struct{}
	big     int
}

func openSource(t *testing.T, c SourceCase) *sourceRun {
	t.Helper()
	s := &sourceRun{Source: c.Open(t), changed: make(chan struct{}, 1), big: c.MaxBig}
	if s.big == 0 {
		s.big = 8 << 20
	}
	cat, ok := tools.NewCatalog().(tools.LiveCatalog)
	if !ok {
		t.Fatal("the catalog cannot change")
	}
	s.cat = cat
	if n, ok := s.Provider.(tools.ChangeNotifier); ok {
		n.OnChange(s.noteChange)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stepLimit)
		defer cancel()
		if err := s.Provider.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func (s *sourceRun) noteChange() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// caller returns a context of a full identity that ends when the suite's patience
// does.
func caller(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stepLimit)
	t.Cleanup(cancel)
	return identity.With(ctx, identity.Identity{TenantID: "acme", UserID: "ada", SessionID: "s1"})
}

// connect connects and brings the catalog up to what the source has.
func (s *sourceRun) connect(t *testing.T) tools.Changes {
	t.Helper()
	if err := s.Provider.Connect(caller(t)); err != nil {
		t.Fatalf("Connect: %v", err)
	}
	return s.discover(t)
}

func (s *sourceRun) discover(t *testing.T) tools.Changes {
	t.Helper()
	list, err := s.Provider.Discover(caller(t))
	if err != nil {
		t.Fatalf("Discover: %v", err)
	}
	return s.cat.SwapSource(s.Provider.SourceID(), list)
}

// driver returns the innermost step of a tool: one attempt.
func (s *sourceRun) driver(t *testing.T, name string) tools.Invoker {
	t.Helper()
	list, err := s.Provider.Discover(caller(t))
	if err != nil {
		t.Fatalf("Discover: %v", err)
	}
	for _, d := range list {
		if d.Tool.Name == name {
			return d.Invoke
		}
	}
	t.Fatalf("there is no tool %s", name)
	return nil
}

func (s *sourceRun) call(t *testing.T, p Probe) (tools.ToolResult, error) {
	t.Helper()
	res, err := tools.Invoke(caller(t), s.cat, p.Name, p.Args)
	s.checkError(t, err)
	return res, err
}

// checkError holds every error to what all must be.
func (s *sourceRun) checkError(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	var te *tools.Error
	if !errors.As(err, &te) {
		t.Errorf("%#v is no *tools.Error", err)
	}
	for _, secret := range s.Secrets {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error holds a secret: %v", err)
		}
	}
}

// holds returns everything that a result says, as text.
func holds(t *testing.T, r tools.ToolResult) string {
	t.Helper()
	var b strings.Builder
	if raw, err := r.JSON(); err != nil {
		t.Errorf("the result cannot be encoded: %v", err)
	} else {
		b.Write(raw)
	}
	b.WriteString(r.Text())
	for _, c := range r.Content {
		b.Write(c.JSON)
	}
	return b.String()
}

func receive(t *testing.T, from <-chan struct{}, what string) {
	t.Helper()
	limit := time.NewTimer(stepLimit)
	defer limit.Stop()
	select {
	case <-from:
	case <-limit.C:
		t.Fatalf("%s within %s", what, stepLimit)
	}
}
