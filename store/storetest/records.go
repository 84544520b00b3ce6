package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/store"
)

func testCompareAndSet(t *testing.T, f *fixture) {
	s, k := f.store, key("a")
	if _, err := s.Get(t.Context(), k); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("Get of nothing = %v", err)
	}
	if _, err := store.Put(t.Context(), s, k, nil, 7); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a revision of nothing = %v, want ErrConflict", err)
	}
	first, err := store.Put(t.Context(), s, k, []byte("one"), store.Absent)
	if err != nil || first <= 0 {
		t.Fatalf("Put = %d, %v", first, err)
	}
	if _, err := store.Put(t.Context(), s, k, []byte("two"), store.Absent); !errors.Is(err, store.ErrConflict) {
		t.Errorf("Absent over a record = %v, want ErrConflict", err)
	}
	second, err := store.Put(t.Context(), s, k, []byte("two"), first)
	if err != nil || second <= first {
		t.Fatalf("Put = %d, %v, want more than %d", second, err, first)
	}
	if _, err := store.Put(t.Context(), s, k, []byte("three"), first); !errors.Is(err, store.ErrConflict) {
		t.Errorf("an old revision = %v, want ErrConflict", err)
	}
	if err := store.Delete(t.Context(), s, k, first); !errors.Is(err, store.ErrConflict) {
		t.Errorf("deleting an old revision = %v, want ErrConflict", err)
	}
	r, err := s.Get(t.Context(), k)
	if err != nil || string(r.Value) != "two" || r.Revision != second || r.Key != k {
		t.Errorf("Get = %+v, %v", r, err)
	}
	if err := store.Delete(t.Context(), s, k, second); err != nil {
		t.Error(err)
	}
	if err := store.Delete(t.Context(), s, k, store.Any); err != nil {
		t.Errorf("deleting what is not there = %v", err)
	}
}

func testBatchesAreWhole(t *testing.T, f *fixture) {
	s := f.store
	seen := put(t, s, store.Write{Key: key("seen"), Value: []byte("x")})
	old := put(t, s, store.Write{Key: key("old"), Value: []byte("x")})
	_, err := s.Apply(t.Context(), store.Batch{
		Writes: []store.Write{{Key: key("new"), Value: []byte("y")}, {Key: key("old"), Delete: true}},
		Checks: []store.Check{{Key: key("seen"), If: seen + 1}},
	})
	if !errors.Is(err, store.ErrConflict) {
		t.Fatalf("Apply = %v, want ErrConflict", err)
	}
	if _, err := s.Get(t.Context(), key("new")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a refused batch wrote: %v", err)
	}
	revisions, err := s.Apply(t.Context(), store.Batch{
		Writes: []store.Write{{Key: key("new"), Value: []byte("y"), If: store.Absent}, {Key: key("old"), Delete: true, If: old}},
		Checks: []store.Check{{Key: key("seen"), If: seen}, {Key: key("other"), If: store.Absent}},
	})
	if err != nil || len(revisions) != 2 || revisions[0] <= old || revisions[1] != 0 {
		t.Fatalf("Apply = %v, %v", revisions, err)
	}
	if _, err := s.Get(t.Context(), key("old")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the deletion of a batch = %v", err)
	}
}

func testOneWriterWins(t *testing.T, f *fixture) {
	const writers, rounds = 8, 10
	for round := range rounds {
		k := key("race" + strconv.Itoa(round))
		var won atomic.Int32
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				_, err := store.Put(t.Context(), f.store, k, []byte{byte(w)}, store.Absent)
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, store.ErrConflict):
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d of %d writers won", won.Load(), writers)
		}
	}
}

// increment adds one to a number by compare-and-set.
func increment(old store.Record) (store.Write, error) {
	n := 0
	if old.Revision != store.Absent {
		var err error
		if n, err = strconv.Atoi(string(old.Value)); err != nil {
			return store.Write{}, err
		}
	}
	return store.Write{Value: []byte(strconv.Itoa(n + 1))}, nil
}

func testUpdatesAddUp(t *testing.T, f *fixture) {
	const writers, each = 6, 20
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range each {
				if _, err := store.Update(t.Context(), f.store, key("count"), increment); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if r, err := f.store.Get(t.Context(), key("count")); err != nil || string(r.Value) != strconv.Itoa(writers*each) {
		t.Errorf("count = %s, %v, want %d", r.Value, err, writers*each)
	}
}

func testRevisionsGrow(t *testing.T, f *fixture) {
	last := store.Revision(0)
	for range 5 {
		revision := put(t, f.store, store.Write{Key: key("again"), If: store.Absent})
		if revision <= last {
			t.Fatalf("revision %d after %d", revision, last)
		}
		last = revision
		put(t, f.store, store.Write{Key: key("again"), Delete: true})
	}
}

func testExpiry(t *testing.T, f *fixture) {
	s, k := f.store, key("brief")
	until := f.clock.Now().Add(time.Minute)
	put(t, s, store.Write{Key: k, Value: []byte("x"), Expires: until})
	put(t, s, store.Write{Key: key("long"), Value: []byte("y")})
	f.clock.Advance(time.Minute - time.Millisecond)
	if r, err := s.Get(t.Context(), k); err != nil || !r.Expires.Equal(until) {
		t.Fatalf("before its end: %v, %v", r.Expires, err)
	}
	f.clock.Advance(time.Millisecond)
	if _, err := s.Get(t.Context(), k); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("at its end: %v, want ErrNotFound", err)
	}
	if names := list(t, s, store.Range{Collection: "things", Owner: k.Owner}); !slices.Equal(names, []string{"long"}) {
		t.Errorf("List shows %q", names)
	}
	if page, err := s.Sweep(t.Context(), store.Sweep{Collection: "things"}); err != nil || len(page.Records) != 1 {
		t.Errorf("Sweep = %d records, %v", len(page.Records), err)
	}
	if _, err := store.Put(t.Context(), s, k, nil, store.Absent); err != nil {
		t.Errorf("Absent over what expired = %v", err)
	}
	for i := range 300 { // enough writes for what expired to be removed
		put(t, s, store.Write{Key: key(fmt.Sprint("gone", i)), Expires: f.clock.Now()})
	}
	if names := list(t, s, store.Range{Collection: "things", Owner: k.Owner}); !slices.Equal(names, []string{"brief", "long"}) {
		t.Errorf("List shows %q", names)
	}
}

func testKeepExpires(t *testing.T, f *fixture) {
	s, k := f.store, key("kept")
	until := f.clock.Now().Add(time.Minute)
	revision := put(t, s, store.Write{Key: k, Value: []byte("x"), Expires: until, Due: f.clock.Now()})
	revision = put(t, s, store.Write{Key: k, Value: []byte("y"), If: revision, KeepExpires: true})
	r, err := s.Get(t.Context(), k)
	if err != nil || string(r.Value) != "y" || !r.Expires.Equal(until) || !r.Due.IsZero() || r.Revision != revision {
		t.Errorf("Get = %+v, %v", r, err)
	}
	if due, err := s.Due(t.Context(), k.Collection, 1); err != nil || len(due) != 0 {
		t.Errorf("Due = %v, %v", due, err)
	}
	for what, w := range map[string]store.Write{
		"of whatever there is": {Key: k, KeepExpires: true},
		"of nothing":           {Key: key("new"), If: store.Absent, KeepExpires: true},
		"of what is deleted":   {Key: k, If: revision, Delete: true, KeepExpires: true},
	} {
		if _, err := s.Apply(t.Context(), store.Batch{Writes: []store.Write{w}}); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("the expiry %s = %v, want ErrInvalid", what, err)
		}
	}
	f.clock.Advance(time.Minute)
	if _, err := s.Apply(t.Context(), store.Batch{Writes: []store.Write{{Key: k, If: revision, KeepExpires: true}}}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("the expiry of what has expired = %v, want ErrConflict", err)
	}
}

func testDue(t *testing.T, f *fixture) {
	s, now := f.store, f.clock.Now()
	other := store.Key{Collection: "things", Owner: store.Tenant(who("other", "", "")), Name: "theirs"}
	put(t, s, store.Write{Key: key("second"), Due: now.Add(2 * time.Second)})
	put(t, s, store.Write{Key: other, Due: now.Add(time.Second)})
	put(t, s, store.Write{Key: key("never")})
	put(t, s, store.Write{Key: key("expired"), Due: now, Expires: now})
	if due, err := s.Due(t.Context(), "things", 0); err != nil || len(due) != 0 {
		t.Errorf("Due = %d, %v before the time", len(due), err)
	}
	f.clock.Advance(2 * time.Second)
	due, err := s.Due(t.Context(), "things", 0)
	if err != nil || len(due) != 2 || due[0].Key != other || due[1].Key != key("second") || !due[1].Due.Equal(now.Add(2*time.Second)) {
		t.Errorf("Due = %+v, %v", due, err)
	}
	if due, err := s.Due(t.Context(), "things", 1); err != nil || len(due) != 1 {
		t.Errorf("Due of one = %d, %v", len(due), err)
	}
}

func list(t *testing.T, s store.Records, r store.Range) []string {
	t.Helper()
	var names []string
	for {
		page, err := s.List(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		for _, record := range page.Records {
			names = append(names, record.Key.Name)
		}
		if !page.More {
			return names
		}
		r.After = names[len(names)-1]
	}
}

func testPages(t *testing.T, f *fixture) {
	var want []string
	for i := range 25 {
		name := fmt.Sprintf("n%02d", i)
		put(t, f.store, store.Write{Key: key(name), Value: []byte(name)})
		want = append(want, name)
	}
	for _, limit := range []int{1, 7, 24, 25, 26, 0, store.MaxPage + 1} {
		got := list(t, f.store, store.Range{Collection: "things", Owner: key("x").Owner, Limit: limit})
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: %q", limit, got)
		}
	}
	page, err := f.store.List(t.Context(), store.Range{Collection: "things", Owner: key("x").Owner, Limit: 25})
	if err != nil || page.More {
		t.Errorf("More = %v, %v after the last record", page.More, err)
	}
}

func testPrefixes(t *testing.T, f *fixture) {
	names := []string{"a", "a\x00", "a/1", "a/2", "a\xff", "a\xff\xff", "b", "%", "a%", "_"}
	for _, n := range names {
		put(t, f.store, store.Write{Key: key(n)})
	}
	slices.Sort(names)
	for _, prefix := range []string{"", "a", "a/", "a\xff", "a\xff\xff", "\xff", "%", "_", "zz", "a\x00"} {
		var want []string
		for _, n := range names {
			if bytes.HasPrefix([]byte(n), []byte(prefix)) {
				want = append(want, n)
			}
		}
		if got := list(t, f.store, store.Range{Collection: "things", Owner: key("x").Owner, Prefix: prefix, Limit: 2}); !slices.Equal(got, want) {
			t.Errorf("prefix %q: %q, want %q", prefix, got, want)
		}
	}
}

func testSweeps(t *testing.T, f *fixture) {
	var want []store.Key
	for _, o := range everyOwner() {
		for _, name := range []string{"x", "y"} {
			k := store.Key{Collection: "swept", Owner: o, Name: name}
			put(t, f.store, store.Write{Key: k})
			put(t, f.store, store.Write{Key: store.Key{Collection: "other", Owner: o, Name: name}})
			want = append(want, k)
		}
	}
	slices.SortFunc(want, func(a, b store.Key) int {
		if c := a.Owner.Compare(b.Owner); c != 0 {
			return c
		}
		return bytes.Compare([]byte(a.Name), []byte(b.Name))
	})
	if got := sweep(t, f.store, store.Sweep{Collection: "swept", Limit: 3}); !slices.Equal(got, want) {
		t.Errorf("Sweep = %v\nwant    %v", got, want)
	}
	want = slices.DeleteFunc(want, func(k store.Key) bool { return k.Owner.Identity().TenantID != "acme" })
	if got := sweep(t, f.store, store.Sweep{Collection: "swept", Tenant: "acme", Limit: 3}); !slices.Equal(got, want) {
		t.Errorf("Sweep of a tenant = %v\nwant %v", got, want)
	}
}

func sweep(t *testing.T, s store.Records, w store.Sweep) []store.Key {
	t.Helper()
	var keys []store.Key
	for {
		page, err := s.Sweep(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Records {
			keys = append(keys, r.Key)
		}
		if !page.More {
			return keys
		}
		w.After = keys[len(keys)-1]
	}
}
