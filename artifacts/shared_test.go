package artifacts_test

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/artifacts"
)

// Two stores on the same bucket and the same records, as two processes have them,
// store, remove and collect at once. What is kept, what is listed and what is counted
// agree at the end, and the quota held all the time.
func TestStoresThatShareARoom(t *testing.T) {
	const each, fit = 100_000, 12
	opts := artifacts.Options{Tenant: artifacts.Quota{Bytes: fit * each}, TTL: time.Hour}
	f := newFixture(t, opts)
	opts.Now = f.clock.Now
	stores := []*artifacts.Store{f.Store, artifacts.New(f.bucket, f.records, &opts)}
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() { putAndDelete(t, stores[i%2], stores[(i+1)%2], fmt.Sprint("user", i%2), each) })
	}
	wg.Go(func() {
		for range 20 {
			if _, err := stores[1].Collect(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	tenant, _, err := f.Usage(ada(t))
	if kept := int64(len(f.names(t))); err != nil || tenant.Count != kept || tenant.Bytes != kept*each || kept > fit {
		t.Errorf("%d artifacts are kept, and the usage is %+v, %v", kept, tenant, err)
	}
	f.clock.Advance(2 * time.Hour)
	collectAtOnce(t, stores)
	f.empty(t)
}

// putAndDelete stores with one store and removes with the other.
func putAndDelete(t *testing.T, puts, deletes *artifacts.Store, user string, size int64) {
	ctx := as(t.Context(), "acme", user, "s")
	for i := range 10 {
		info, err := puts.Put(ctx, io.LimitReader(endless{}, size), artifacts.Meta{})
		if errors.Is(err, artifacts.ErrQuota) {
			continue
		}
		if err != nil {
			t.Error(err)
			return
		}
		if i%3 == 0 {
			continue
		}
		if err := deletes.Delete(ctx, info.Ref); err != nil {
			t.Error(err)
		}
	}
}

// collectAtOnce lets all of them collect what has expired.
func collectAtOnce(t *testing.T, stores []*artifacts.Store) {
	t.Helper()
	var wg sync.WaitGroup
	for _, s := range stores {
		wg.Go(func() {
			if _, err := s.Collect(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
