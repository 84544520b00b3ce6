package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/store"
)

func testLeases(t *testing.T, f *fixture) {
	ctx, s, k := t.Context(), f.store, key("lease")
	a, err := s.Acquire(ctx, k, "a", time.Minute)
	if err != nil || !a.Expires.Equal(f.clock.Now().Add(time.Minute)) {
		t.Fatalf("Acquire = %+v, %v", a, err)
	}
	if _, err := s.Acquire(ctx, k, "b", time.Minute); !errors.Is(err, store.ErrLeaseHeld) {
		t.Errorf("Acquire of what is held = %v", err)
	}
	f.clock.Advance(50 * time.Second)
	if a, err = s.Renew(ctx, a, time.Minute); err != nil || !a.Expires.Equal(f.clock.Now().Add(time.Minute)) {
		t.Fatalf("Renew = %+v, %v", a, err)
	}
	f.clock.Advance(time.Minute)
	if _, err := s.Renew(ctx, a, time.Minute); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("Renew of what expired = %v", err)
	}
	b, err := s.Acquire(ctx, k, "b", time.Minute)
	if err != nil || b.Token <= a.Token {
		t.Fatalf("Acquire = %+v, %v, want a token above %d", b, err, a.Token)
	}
	if err := s.Release(ctx, a); err != nil {
		t.Errorf("Release of what was lost = %v", err)
	}
	again, err := s.Acquire(ctx, k, "b", time.Minute)
	if err != nil || again.Token <= b.Token {
		t.Fatalf("Acquire by the holder = %+v, %v", again, err)
	}
	if _, err := s.Renew(ctx, b, time.Minute); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("Renew of an older token = %v", err)
	}
	if err := s.Release(ctx, again); err != nil {
		t.Fatal(err)
	}
	if c, err := s.Acquire(ctx, k, "c", time.Minute); err != nil || c.Token <= again.Token {
		t.Errorf("Acquire after Release = %+v, %v", c, err)
	}
	for _, bad := range []func() error{
		func() error { _, err := s.Acquire(ctx, k, "", time.Minute); return err },
		func() error { _, err := s.Acquire(ctx, k, "c", 0); return err },
	} {
		if err := bad(); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("Acquire = %v, want ErrInvalid", err)
		}
	}
}

func testLeasesFence(t *testing.T, f *fixture) {
	ctx, s, k := t.Context(), f.store, key("lease")
	lease, err := s.Acquire(ctx, k, "a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	fenced := func(value string, l store.Lease) error {
		_, err := s.Apply(ctx, store.Batch{Writes: []store.Write{{Key: key("fenced"), Value: []byte(value)}}, Holding: []store.Lease{l}})
		return err
	}
	if err := fenced("first", lease); err != nil {
		t.Fatal(err)
	}
	f.clock.Advance(time.Minute)
	if err := fenced("expired", lease); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("a batch under an expired lease = %v", err)
	}
	later, err := s.Acquire(ctx, k, "b", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := fenced("late", lease); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("a batch under a lost lease = %v", err)
	}
	if err := fenced("second", later); err != nil {
		t.Error(err)
	}
	if r, err := s.Get(ctx, key("fenced")); err != nil || string(r.Value) != "second" {
		t.Errorf("Get = %q, %v", r.Value, err)
	}
}

func testOneHolder(t *testing.T, f *fixture) {
	var holders atomic.Int32
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			_, err := f.store.Acquire(t.Context(), key("lease"), fmt.Sprint(w), time.Minute)
			switch {
			case err == nil:
				holders.Add(1)
			case !errors.Is(err, store.ErrLeaseHeld):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if holders.Load() != 1 {
		t.Errorf("%d holders", holders.Load())
	}
}

func testCancelled(t *testing.T, f *fixture) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range calls(f.store, key("c")) {
		if err := call(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s = %v, want context.Canceled", name, err)
		}
	}
	put(t, f.store, store.Write{Key: key("c"), Value: []byte("still works")})
	if _, err := f.store.Get(t.Context(), key("c")); err != nil {
		t.Error(err)
	}
}

func testClosed(t *testing.T, f *fixture) {
	put(t, f.store, store.Write{Key: key("c")})
	if err := f.store.Close(); err != nil {
		t.Fatal(err)
	}
	for name, call := range calls(f.store, key("c")) {
		if err := call(t.Context()); !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s = %v, want ErrClosed", name, err)
		}
	}
	for name, call := range map[string]func() error{
		"List": func() error {
			_, err := f.store.List(t.Context(), store.Range{Collection: "things", Owner: store.Global()})
			return err
		},
		"Sweep": func() error { _, err := f.store.Sweep(t.Context(), store.Sweep{Collection: "things"}); return err },
		"Due":   func() error { _, err := f.store.Due(t.Context(), "things", 1); return err },
		"Close": func() error {
			if err := f.store.Close(); err != nil {
				return err
			}
			return store.ErrClosed
		},
	} {
		if err := call(); !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s = %v, want ErrClosed", name, err)
		}
	}
}
