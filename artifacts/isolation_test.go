package artifacts_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gocloud.dev/blob/memblob"

	"github.com/toolcrib/toolcrib/artifacts"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/store/sqlstore"
	"github.com/toolcrib/toolcrib/tools"
)

// known is what the test knows about an artifact.
type known struct {
	owner identity.Identity
	scope store.Scope
	size  int64
	gone  bool
}

func (k *known) visible(to identity.Identity) bool {
	if k.gone || k.owner.TenantID != to.TenantID {
		return false
	}
	switch k.scope {
	case store.ScopeTenant:
		return true
	case store.ScopeUser:
		return k.owner.UserID == to.UserID
	}
	return k.owner == to
}

// world is a store, and what should be in it.
type world struct {
	t       *testing.T
	f       *fixture
	rnd     *rand.Rand
	callers []identity.Identity
	all     map[string]*known
	refs    []string
}

// Two tenants with users and sessions of the same names do 10,000 things at random.
// None of them ever reads, lists, counts, removes or hears of what is another's.
func TestNothingLeaks(t *testing.T) {
	w := &world{t: t, f: newFixture(t, artifacts.Options{}), rnd: rand.New(rand.NewPCG(1, 2)), all: map[string]*known{}}
	for _, tenant := range []string{"red", "blue"} {
		for _, user := range []string{"ada", "bob"} {
			for _, session := range []string{"s1", "s2"} {
				w.callers = append(w.callers, identity.Identity{TenantID: tenant, UserID: user, SessionID: session})
			}
		}
	}
	operations := []func(context.Context, identity.Identity){w.put, w.stat, w.open, w.fetch, w.fetch, w.list, w.usage, w.bound, w.delete}
	steps, least := 10_000, 500
	if raced {
		steps, least = 1_000, 50 // one goroutine does them
	}
	for range steps {
		who := w.callers[w.rnd.IntN(len(w.callers))]
		operations[w.rnd.IntN(len(operations))](identity.With(t.Context(), who), who)
	}
	if len(w.refs) < least {
		t.Errorf("only %d artifacts", len(w.refs))
	}
}

// secret is in the content of everything that an identity stores.
func secret(id identity.Identity) string {
	return fmt.Sprintf("secret-%s-%s-%s", id.TenantID, id.UserID, id.SessionID)
}

// pick returns a ref, mostly one that somebody has.
func (w *world) pick() (string, *known) {
	if len(w.refs) == 0 || w.rnd.IntN(10) == 0 {
		return "art-s" + strings.Repeat("a", 26), &known{gone: true}
	}
	ref := w.refs[w.rnd.IntN(len(w.refs))]
	return ref, w.all[ref]
}

func (w *world) put(ctx context.Context, who identity.Identity) {
	scope := []store.Scope{0, store.ScopeSession, store.ScopeUser, store.ScopeTenant}[w.rnd.IntN(4)]
	content := fmt.Sprintf(`{"secret":%q,"pad":%q}`, secret(who), strings.Repeat("x", w.rnd.IntN(2000)))
	info, err := w.f.Put(ctx, strings.NewReader(content), artifacts.Meta{Scope: scope, Name: "same name"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.keep(info, who, scope)
}

func (w *world) keep(info artifacts.Info, who identity.Identity, scope store.Scope) {
	if scope == 0 {
		scope = store.ScopeSession
	}
	w.all[info.Ref] = &known{owner: who, scope: scope, size: info.SizeBytes}
	w.refs = append(w.refs, info.Ref)
}

// expect demands success where the caller sees the artifact, and otherwise the
// words that are said of nothing.
func (w *world) expect(what string, who identity.Identity, k *known, err error) bool {
	w.t.Helper()
	if k.visible(who) {
		if err != nil {
			w.t.Errorf("%s by %v of what it sees: %v", what, who, err)
		}
		return err == nil
	}
	const nothing = "artifacts: not found: there is no such artifact, or it has expired"
	if !errors.Is(err, artifacts.ErrNotFound) || err.Error() != nothing {
		w.t.Errorf("%s by %v of what it does not see: %v", what, who, err)
	}
	return false
}

func (w *world) stat(ctx context.Context, who identity.Identity) {
	ref, k := w.pick()
	info, err := w.f.Stat(ctx, ref)
	if !w.expect("Stat", who, k, err) && info != (artifacts.Info{}) {
		w.t.Errorf("Stat gave %+v with an error", info)
	}
}

func (w *world) open(ctx context.Context, who identity.Identity) {
	ref, k := w.pick()
	content, err := w.f.read(ctx, ref, artifacts.Section{Length: int64(w.rnd.IntN(100) + 60)})
	if w.expect("Open", who, k, err) {
		w.check(content, who, k)
	}
}

// check demands that content is what its owner stored.
func (w *world) check(content string, who identity.Identity, k *known) {
	w.t.Helper()
	if !strings.Contains(content, secret(k.owner)) {
		w.t.Errorf("%v reads %.80q of %v", who, content, k.owner)
	}
}

func (w *world) fetch(ctx context.Context, who identity.Identity) {
	ref, k := w.pick()
	args := []artifacts.FetchArgs{{}, {MaxBytes: 70}, {Search: "secret"}, {FromLine: 1, ToLine: 1}, {Query: ".secret"}, {Offset: 1 << 40}, {Query: "."}}[w.rnd.IntN(7)]
	args.Ref = ref
	res, err := w.f.Fetch(ctx, args)
	if err != nil {
		w.t.Fatal(err)
	}
	switch {
	case !k.visible(who):
		if res != (artifacts.FetchResult{Ref: ref, Error: "there is no such artifact, or it has expired"}) {
			w.t.Errorf("Fetch by %v of what it does not see: %+v", who, res)
		}
	case args.Offset == 0:
		w.check(res.Content, who, k)
	}
}

func (w *world) list(ctx context.Context, who identity.Identity) {
	page, _, err := w.f.List(ctx, artifacts.Listing{Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	var got, want []string
	for _, info := range page {
		got = append(got, info.Ref)
	}
	for ref, k := range w.all {
		if k.visible(who) {
			want = append(want, ref)
		}
	}
	if slices.Sort(want); !slices.Equal(got, want) {
		w.t.Errorf("%v lists %d artifacts, and sees %d", who, len(got), len(want))
	}
}

func (w *world) usage(ctx context.Context, who identity.Identity) {
	tenant, user, err := w.f.Usage(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	var wantTenant, wantUser artifacts.Usage
	for _, k := range w.all {
		if k.gone || k.owner.TenantID != who.TenantID {
			continue
		}
		wantTenant.Bytes, wantTenant.Count = wantTenant.Bytes+k.size, wantTenant.Count+1
		if k.owner.UserID == who.UserID {
			wantUser.Bytes, wantUser.Count = wantUser.Bytes+k.size, wantUser.Count+1
		}
	}
	if tenant != wantTenant || user != wantUser {
		w.t.Errorf("%v uses %+v and %+v, want %+v and %+v", who, tenant, user, wantTenant, wantUser)
	}
}

// bound makes a heavy result small; its artifact is its caller's session's.
func (w *world) bound(ctx context.Context, who identity.Identity) {
	if w.rnd.IntN(4) > 0 {
		return
	}
	value := fmt.Appendf(nil, `{"secret":%q,"pad":%q}`, secret(who), strings.Repeat("y", 3000))
	res, err := w.f.Bounder(&artifacts.Bounds{Threshold: 2048}).Bound(ctx, reader, tools.ToolResult{Structured: value})
	if err != nil || len(res.Artifacts) != 1 {
		w.t.Fatal(res.Artifacts, err)
	}
	w.keep(artifacts.Info{Ref: res.Artifacts[0].Ref, SizeBytes: res.Artifacts[0].SizeBytes}, who, store.ScopeSession)
	ref, k := w.pick()
	foreign, err := w.f.Bounder(nil).Bound(ctx, reader, tools.ToolResult{Artifacts: []tools.ArtifactRef{{Ref: ref, MIME: "text/plain", SizeBytes: 5}}})
	if err != nil {
		w.t.Fatal(err)
	}
	if said := foreign.Text(); !k.visible(who) && strings.Contains(said, "secret") {
		w.t.Errorf("%v is shown %q of %v", who, said, k.owner)
	}
}

func (w *world) delete(ctx context.Context, who identity.Identity) {
	if w.rnd.IntN(3) > 0 {
		return
	}
	ref, k := w.pick()
	err := w.f.Delete(ctx, ref)
	if k.visible(who) && k.owner.UserID != who.UserID {
		if !errors.Is(err, artifacts.ErrDenied) {
			w.t.Errorf("Delete by %v of what %v shares: %v", who, k.owner, err)
		}
		return
	}
	if w.expect("Delete", who, k, err) {
		k.gone = true
	}
}

// watchedRecords notes which methods of a store are called.
type watchedRecords struct {
	store.Records
	calls []string
}

func (r *watchedRecords) Get(ctx context.Context, k store.Key) (store.Record, error) {
	r.calls = append(r.calls, fmt.Sprint("Get ", k.Collection, k.Owner.Scope(), len(k.Name)))
	return r.Records.Get(ctx, k)
}

func (r *watchedRecords) Apply(ctx context.Context, b store.Batch) ([]store.Revision, error) {
	r.calls = append(r.calls, "Apply")
	return r.Records.Apply(ctx, b)
}

func (r *watchedRecords) List(ctx context.Context, l store.Range) (store.Page, error) {
	r.calls = append(r.calls, "List")
	return r.Records.List(ctx, l)
}

// How long a refusal takes tells nothing either: the same is asked of the store for
// an artifact of somebody else as for one that does not exist.
func TestRefusalsTakeTheSameSteps(t *testing.T) {
	db, err := sqlstore.OpenMemory(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	bucket := memblob.OpenBucket(nil)
	t.Cleanup(func() { _ = errors.Join(bucket.Close(), db.Close()) })
	records := &watchedRecords{Records: db}
	s := artifacts.New(bucket, records, nil)
	for _, scope := range []store.Scope{store.ScopeSession, store.ScopeUser, store.ScopeTenant} {
		info, err := s.Put(ada(t), strings.NewReader("x"), artifacts.Meta{Scope: scope})
		if err != nil {
			t.Fatal(err)
		}
		missing := info.Ref[:5] + strings.Repeat("a", 26)
		rival := as(t.Context(), "rival", "ada", "s1")
		for name, ask := range map[string]func(ref string) error{
			"Stat":   func(ref string) error { _, err := s.Stat(rival, ref); return err },
			"Open":   func(ref string) error { _, err := s.Open(rival, ref, artifacts.Section{}); return err },
			"Delete": func(ref string) error { return s.Delete(rival, ref) },
			"Fetch": func(ref string) error {
				_, err := s.Fetch(rival, artifacts.FetchArgs{Ref: ref, Query: "."})
				return err
			},
		} {
			var steps [2][]string
			for i, ref := range []string{info.Ref, missing} {
				records.calls = nil
				_ = ask(ref) // TestScopes looks at the answers
				steps[i] = records.calls
			}
			if !slices.Equal(steps[0], steps[1]) || len(steps[0]) != 1 {
				t.Errorf("%s of what belongs to another's %s asks %q, of nothing %q", name, scope, steps[0], steps[1])
			}
		}
	}
}
