package registry

import (
	"fmt"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/store/sqlstore"
)

// A record that is passed over is there as long as that of the call that was made
// instead, which would otherwise be made once more.
func TestPassedRecordsOutlast(t *testing.T) {
	const retention, callTime = time.Hour, 10 * time.Minute
	began, later := time.Now(), time.Duration(0)
	db, err := sqlstore.OpenMemory(t.Context(), &sqlstore.Options{Now: func() time.Time { return began.Add(later) }})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	l := &ledger{records: db, retention: retention}
	key := func(n int) store.Key { return callKey("acme", fmt.Sprint("c-", n)) }
	pass := func() int { return l.passUnrun(t.Context(), "digest", 0, began.Add(later+callTime), key) }
	if err := accepted("c-0", "digest").finish(t.Context(), l, failed("c-0", &ToolError{NotDelivered: true})); err != nil {
		t.Fatal(err)
	}
	later = retention - callTime
	if n := pass(); n != 1 {
		t.Fatalf("the call goes on under id %d", n)
	}
	made := accepted("c-1", "digest").rec
	made.State, made.Deadline = stateClaimed, began.Add(later+callTime)
	w, waits, err := l.writeOf(key(1), &made, store.Absent, stateAccepted)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.write(t.Context(), w, waits); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if n := pass(); n != 1 {
			t.Errorf("after %s the call goes on under id %d", later, n)
		}
		later += retention/2 - time.Minute
	}
}
