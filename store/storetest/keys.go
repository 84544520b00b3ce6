package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/store"
)

// everyOwner are owners that an implementation which joins their parts to one
// text would take for each other.
func everyOwner() []store.Owner {
	var owners []store.Owner
	owners = append(owners, store.Global())
	for _, tenant := range []string{"acme", "ACME", "acme/ada", "acm", "acme\x00", "other"} {
		owners = append(owners, store.Tenant(who(tenant, "", "")))
		for _, user := range []string{"ada", "ada/s1", "e/ada", "/ada"} {
			owners = append(owners, store.User(who(tenant, user, "")))
			for _, session := range []string{"s1", "/s1", "1"} {
				owners = append(owners, store.Session(who(tenant, user, session)))
			}
		}
	}
	return owners
}

func testOwnersAreApart(t *testing.T, f *fixture) {
	owners := everyOwner()
	for i, o := range owners {
		k := store.Key{Collection: "things", Owner: o, Name: "same"}
		if _, err := store.Put(t.Context(), f.store, k, fmt.Append(nil, i), store.Absent); err != nil {
			t.Fatalf("%v: %v", o, err)
		}
		if _, err := f.store.Append(t.Context(), k, fmt.Append(nil, i)); err != nil {
			t.Fatalf("%v: %v", o, err)
		}
		if _, err := f.store.Acquire(t.Context(), k, fmt.Sprint("holder", i), time.Minute); err != nil {
			t.Fatalf("%v: %v", o, err)
		}
	}
	for i, o := range owners {
		k, want := store.Key{Collection: "things", Owner: o, Name: "same"}, fmt.Sprint(i)
		if r, err := f.store.Get(t.Context(), k); err != nil || string(r.Value) != want {
			t.Errorf("%v: Get = %s, %v", o, r.Value, err)
		}
		page, err := f.store.List(t.Context(), store.Range{Collection: "things", Owner: o})
		if err != nil || len(page.Records) != 1 || string(page.Records[0].Value) != want || page.Records[0].Key != k {
			t.Errorf("%v: List = %v, %v", o, page, err)
		}
		entries, err := f.store.Read(t.Context(), k, 0, 0)
		if err != nil || len(entries) != 1 || string(entries[0].Data) != want {
			t.Errorf("%v: Read = %v, %v", o, entries, err)
		}
	}
}

func testOwnerIsNeeded(t *testing.T, f *fixture) {
	owners := []store.Owner{{}, store.Tenant(who("", "u", "s")), store.User(who("t", "", "s")), store.Session(who("t", "u", "")),
		store.Session(who("", "u", "s")), store.Tenant(who(strings.Repeat("t", store.MaxPartBytes+1), "", ""))}
	for _, o := range owners {
		refused(t, f.store, store.Key{Collection: "things", Owner: o, Name: "n"})
		if _, err := f.store.List(t.Context(), store.Range{Collection: "things", Owner: o}); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("List of %v = %v, want ErrInvalid", o, err)
		}
	}
	for _, k := range []store.Key{{Owner: store.Global(), Name: "n"}, {Collection: "Things", Owner: store.Global(), Name: "n"},
		{Collection: "a b", Owner: store.Global(), Name: "n"}, {Collection: strings.Repeat("c", store.MaxCollectionBytes+1), Owner: store.Global(), Name: "n"},
		{Collection: "things", Owner: store.Global()}, {Collection: "things", Owner: store.Global(), Name: strings.Repeat("n", store.MaxPartBytes+1)}} {
		refused(t, f.store, k)
	}
}

// refused makes sure that no method takes a key.
func refused(t *testing.T, s store.Store, k store.Key) {
	t.Helper()
	ctx := t.Context()
	for name, call := range calls(s, k) {
		if err := call(ctx); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s of %+v = %v, want ErrInvalid", name, k, err)
		}
	}
}

// calls are all methods that take a key.
func calls(s store.Store, k store.Key) map[string]func(context.Context) error {
	lease := store.Lease{Key: k, Holder: "h", Token: 1}
	return map[string]func(context.Context) error{
		"Get":    func(ctx context.Context) error { _, err := s.Get(ctx, k); return err },
		"Put":    func(ctx context.Context) error { _, err := store.Put(ctx, s, k, nil, store.Any); return err },
		"Delete": func(ctx context.Context) error { return store.Delete(ctx, s, k, store.Any) },
		"Check": func(ctx context.Context) error {
			_, err := s.Apply(ctx, store.Batch{Checks: []store.Check{{Key: k, If: store.Absent}}})
			return err
		},
		"Append":  func(ctx context.Context) error { _, err := s.Append(ctx, k, []byte("x")); return err },
		"Read":    func(ctx context.Context) error { _, err := s.Read(ctx, k, 0, 0); return err },
		"Trim":    func(ctx context.Context) error { return s.Trim(ctx, k, 1) },
		"Extent":  func(ctx context.Context) error { _, err := s.Extent(ctx, k); return err },
		"Acquire": func(ctx context.Context) error { _, err := s.Acquire(ctx, k, "h", time.Second); return err },
		"Renew":   func(ctx context.Context) error { _, err := s.Renew(ctx, lease, time.Second); return err },
		"Release": func(ctx context.Context) error { return s.Release(ctx, lease) },
	}
}

func testHostileKeys(t *testing.T, f *fixture) {
	names := []string{"'; drop table records; --", "\x00", "a\x00b", "\xff\xfe", "../../etc/passwd", "%", "_", "日本", "e\u0301", "\u00e9",
		" ", "\n", "null", "A", "a", strings.Repeat("\xff", store.MaxPartBytes)}
	for i, n := range names {
		k := store.Key{Collection: "things", Owner: store.Session(who(n, n, n)), Name: n}
		put(t, f.store, store.Write{Key: k, Value: fmt.Append(nil, i), If: store.Absent})
		put(t, f.store, store.Write{Key: key(n), Value: fmt.Append(nil, i), If: store.Absent})
	}
	for i, n := range names {
		for _, k := range []store.Key{key(n), {Collection: "things", Owner: store.Session(who(n, n, n)), Name: n}} {
			if r, err := f.store.Get(t.Context(), k); err != nil || string(r.Value) != fmt.Sprint(i) {
				t.Errorf("Get(%q) = %s, %v", n, r.Value, err)
			}
		}
	}
	slices.Sort(names)
	if got := list(t, f.store, store.Range{Collection: "things", Owner: key("x").Owner, Limit: 3}); !slices.Equal(got, names) {
		t.Errorf("List = %q\nwant   %q", got, names)
	}
}

func testLargeValues(t *testing.T, f *fixture) {
	large := bytes.Repeat([]byte{0, 1, 0xff, '\''}, store.MaxValueBytes/4)
	put(t, f.store, store.Write{Key: key("large"), Value: large})
	if r, err := f.store.Get(t.Context(), key("large")); err != nil || !bytes.Equal(r.Value, large) {
		t.Errorf("a large value came back as %d bytes, %v", len(r.Value), err)
	}
	if _, err := f.store.Append(t.Context(), key("large"), large); err != nil {
		t.Fatal(err)
	}
	if e, err := f.store.Read(t.Context(), key("large"), 0, 0); err != nil || len(e) != 1 || !bytes.Equal(e[0].Data, large) {
		t.Errorf("a large entry did not come back: %v", err)
	}
	if _, err := store.Put(t.Context(), f.store, key("large"), append(large, 0), store.Any); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("a byte more = %v, want ErrTooLarge", err)
	}
	if _, err := f.store.Append(t.Context(), key("large"), append(large, 0)); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("a byte more in a log = %v, want ErrTooLarge", err)
	}
	for _, empty := range [][]byte{nil, {}} {
		put(t, f.store, store.Write{Key: key("empty"), Value: empty})
		if r, err := f.store.Get(t.Context(), key("empty")); err != nil || len(r.Value) != 0 {
			t.Errorf("an empty value came back as %q, %v", r.Value, err)
		}
	}
}

func testLimits(t *testing.T, f *fixture) {
	var b store.Batch
	for i := range store.MaxBatch {
		b.Writes = append(b.Writes, store.Write{Key: key(fmt.Sprint(i))})
	}
	if _, err := f.store.Apply(t.Context(), b); err != nil {
		t.Errorf("a batch of %d = %v", store.MaxBatch, err)
	}
	b.Checks = []store.Check{{Key: key("more"), If: store.Absent}}
	if _, err := f.store.Apply(t.Context(), b); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("a larger batch = %v, want ErrTooLarge", err)
	}
	twice := store.Batch{Writes: []store.Write{{Key: key("a")}, {Key: key("a"), Delete: true}}}
	if _, err := f.store.Apply(t.Context(), twice); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("a key twice = %v, want ErrInvalid", err)
	}
	if _, err := store.Put(t.Context(), f.store, key("a"), nil, -2); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("revision -2 = %v, want ErrInvalid", err)
	}
	if revisions, err := f.store.Apply(t.Context(), store.Batch{}); err != nil || len(revisions) != 0 {
		t.Errorf("an empty batch = %v, %v", revisions, err)
	}
	if _, err := f.store.Append(t.Context(), key("a")); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("appending nothing = %v, want ErrInvalid", err)
	}
	if _, err := f.store.Append(t.Context(), key("a"), make([][]byte, store.MaxBatch+1)...); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("appending too many = %v, want ErrTooLarge", err)
	}
}
