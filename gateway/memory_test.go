package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/store/sqlstore"
	"github.com/toolcrib/toolcrib/view"
)

func caller(tenant, user, session string) context.Context {
	return identity.With(context.Background(), identity.Identity{TenantID: tenant, UserID: user, SessionID: session})
}

// counted counts the writes of a store.
type counted struct {
	store.Records
	writes int
}

func (c *counted) Apply(ctx context.Context, b store.Batch) ([]store.Revision, error) {
	c.writes++
	return c.Records.Apply(ctx, b)
}

func openRecords(t *testing.T) *counted {
	t.Helper()
	db, err := sqlstore.OpenMemory(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &counted{Records: db}
}

func TestStoredMemoryIsKeptForEachCaller(t *testing.T) {
	m := storedMemory{openRecords(t), foundTools}
	want := map[context.Context][]string{}
	for i, ctx := range []context.Context{caller("a", "u", "s"), caller("b", "u", "s"), caller("a", "v", "s"), caller("a", "u", "t")} {
		names := []string{fmt.Sprint("b", i), fmt.Sprint("a", i)}
		if err := m.Add(ctx, names...); err != nil {
			t.Fatal(err)
		}
		slices.Sort(names)
		want[ctx] = names
	}
	for ctx, names := range want {
		if got, err := m.Found(ctx); err != nil || !slices.Equal(got, names) {
			t.Errorf("found %v, want %v (%v)", got, names, err)
		}
	}
	if _, err := m.Found(context.Background()); err == nil {
		t.Error("a caller without an identity has a memory")
	}
}

func TestStoredMemoryIsBounded(t *testing.T) {
	m, ctx := storedMemory{openRecords(t), foundTools}, caller("a", "u", "s")
	for i := range view.DefaultMaxFound + 10 {
		if err := m.Add(ctx, fmt.Sprintf("tool%03d", i)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := m.Found(ctx)
	if err != nil || len(got) != view.DefaultMaxFound || got[0] != "tool010" {
		t.Errorf("%d, from %s (%v)", len(got), got[0], err)
	}
}

// What is found again costs no write, until it is about time.
func TestStoredMemoryWritesWhatIsNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		records := openRecords(t)
		m, ctx := storedMemory{records, foundTools}, caller("a", "u", "s")
		for _, step := range []struct {
			names  string
			after  time.Duration
			writes int
		}{{"x y", 0, 1}, {"y", 0, 1}, {"x y", 23 * time.Hour, 1}, {"z", 0, 2}, {"x", 25 * time.Hour, 3}, {"x", 0, 3}} {
			time.Sleep(step.after)
			if err := m.Add(ctx, strings.Fields(step.names)...); err != nil || records.writes != step.writes {
				t.Errorf("after %v, adding %s: %d writes, want %d (%v)", step.after, step.names, records.writes, step.writes, err)
			}
		}
	})
}
