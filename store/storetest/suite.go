package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/store"
)

// Opener opens the database that source names, with a clock.
type Opener func(ctx context.Context, source string, now func() time.Time) (store.Store, error)

// Harness makes stores for the suite.
type Harness struct {
	// New makes an empty database that lasts as long as the test, and returns
	// its name for Open.
	New func(t *testing.T) (source string)
	// Open opens a database, again and by several processes at once unless
	// Private says otherwise.
	Open Opener
	// Private says that what is opened is gone when it is closed, and is seen
	// by this process alone. The tests of several processes are left out.
	Private bool
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	cases := []struct {
		name string
		run  func(t *testing.T, f *fixture)
	}{
		{"compare-and-set", testCompareAndSet},
		{"batches are whole", testBatchesAreWhole},
		{"one writer wins", testOneWriterWins},
		{"updates add up", testUpdatesAddUp},
		{"revisions are not used again", testRevisionsGrow},
		{"expiry", testExpiry},
		{"expiry is kept", testKeepExpires},
		{"due", testDue},
		{"pages", testPages},
		{"prefixes", testPrefixes},
		{"sweeps", testSweeps},
		{"owners are apart", testOwnersAreApart},
		{"an owner is never forgotten", testOwnerIsNeeded},
		{"hostile keys", testHostileKeys},
		{"large values", testLargeValues},
		{"limits", testLimits},
		{"logs", testLogs},
		{"logs trim", testLogTrim},
		{"logs have no holes", testLogHasNoHoles},
		{"leases", testLeases},
		{"leases fence", testLeasesFence},
		{"one holder", testOneHolder},
		{"cancelled", testCancelled},
		{"closed", testClosed},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(t, newFixture(t, h)) })
	}
	if h.Private {
		return
	}
	t.Run("reopened", func(t *testing.T) { testReopened(t, newFixture(t, h)) })
	t.Run("opened at once", func(t *testing.T) { testOpenedAtOnce(t, h) })
	t.Run("two processes", func(t *testing.T) { testTwoProcesses(t, newFixture(t, h)) })
	t.Run("killed while it writes", func(t *testing.T) { testKilled(t, newFixture(t, h)) })
}

type fixture struct {
	harness Harness
	source  string
	clock   *Clock
	store   store.Store
}

func newFixture(t *testing.T, h Harness) *fixture {
	t.Helper()
	f := &fixture{harness: h, source: h.New(t), clock: NewClock()}
	f.store = f.open(t)
	return f
}

func (f *fixture) open(t *testing.T) store.Store {
	t.Helper()
	s, err := f.harness.Open(t.Context(), f.source, f.clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func who(tenant, user, session string) identity.Identity {
	return identity.Identity{TenantID: tenant, UserID: user, SessionID: session}
}

// someone is a caller of whom nothing more is needed.
func someone() identity.Identity { return who("acme", "ada", "s1") }

func key(name string) store.Key {
	return store.Key{Collection: "things", Owner: store.Session(someone()), Name: name}
}

func put(t *testing.T, s store.Records, w store.Write) store.Revision {
	t.Helper()
	revisions, err := s.Apply(t.Context(), store.Batch{Writes: []store.Write{w}})
	if err != nil {
		t.Fatalf("Apply(%q): %v", w.Key.Name, err)
	}
	return revisions[0]
}
