package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/store/sqlstore"
)

func Example() {
	ctx := context.Background()
	db, err := sqlstore.OpenMemory(ctx, nil) // Open keeps it in a file
	if err != nil {
		panic(err)
	}
	defer db.Close()

	ada := identity.Identity{TenantID: "acme", UserID: "ada", SessionID: "s1"}
	theme := store.Key{Collection: "settings", Owner: store.User(ada), Name: "theme"}
	first, err := store.Put(ctx, db, theme, []byte("dark"), store.Absent)
	if err != nil {
		panic(err)
	}
	if _, err := store.Put(ctx, db, theme, []byte("light"), first); err != nil {
		panic(err)
	}
	_, err = store.Put(ctx, db, theme, []byte("blue"), first)
	fmt.Println("somebody was faster:", errors.Is(err, store.ErrConflict))

	page, err := db.List(ctx, store.Range{Collection: "settings", Owner: store.User(ada)})
	if err != nil {
		panic(err)
	}
	for _, r := range page.Records {
		fmt.Printf("%s is %s\n", r.Key.Name, r.Value)
	}
	// Output:
	// somebody was faster: true
	// theme is light
}

// A batch that names a lease is written only while the lease is held.
func Example_lease() {
	ctx := context.Background()
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	db, err := sqlstore.OpenMemory(ctx, &sqlstore.Options{Now: func() time.Time { return now }})
	if err != nil {
		panic(err)
	}
	defer db.Close()

	job := store.Key{Collection: "jobs", Owner: store.Global(), Name: "nightly"}
	lease, err := db.Acquire(ctx, job, "worker-1", time.Minute)
	if err != nil {
		panic(err)
	}
	_, err = db.Acquire(ctx, job, "worker-2", time.Minute)
	fmt.Println("held:", errors.Is(err, store.ErrLeaseHeld))

	now = now.Add(2 * time.Minute) // worker-1 was away for too long
	_, err = db.Apply(ctx, store.Batch{Writes: []store.Write{{Key: job, Value: []byte("done")}}, Holding: []store.Lease{lease}})
	fmt.Println("lost:", errors.Is(err, store.ErrLeaseLost))
	// Output:
	// held: true
	// lost: true
}
