package store

import (
	"context"
	"errors"
	"time"
)

// Sentinels, for callers that branch. Compare with errors.Is.
var (
	// ErrNotFound: there is no live record of this key.
	ErrNotFound = errors.New("store: not found")
	// ErrConflict: a condition of a batch does not hold. Nothing was written.
	ErrConflict = errors.New("store: conflict")
	// ErrInvalid: a key, limit or argument cannot be used.
	ErrInvalid = errors.New("store: invalid")
	// ErrTooLarge: a value is above MaxValueBytes or a batch above MaxBatch.
	ErrTooLarge = errors.New("store: too large")
	// ErrLeaseHeld: another holder has the lease.
	ErrLeaseHeld = errors.New("store: lease held by another")
	// ErrLeaseLost: the lease expired, was released, or is another's now.
	ErrLeaseLost = errors.New("store: lease lost")
	// ErrFull: the disk has no room, or the store may not take more of it. Nothing
	// was written, and more can be once there is room.
	ErrFull = errors.New("store: full")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("store: closed")
)

// Store keeps records, logs and leases. It is safe for concurrent use, also by
// several processes on the same database. What a method acknowledged by
// returning no error survives the end of the process and the loss of power,
// but for what Batch.Later says. When a method fails because its context ended, it may have had its effect.
type Store interface {
	Records
	Logs
	Leases
	// Close releases what the store holds; every later call returns ErrClosed.
	Close() error
}

// Revision identifies one write of a record. No two writes have the same, also after
// the record was deleted and made anew. Of the writes of one process, later ones have
// greater revisions.
type Revision int64

// Revisions with a meaning of their own as a condition.
const (
	// Any is always satisfied.
	Any Revision = 0
	// Absent demands that there is no live record.
	Absent Revision = -1
)

// Record is a value under a key.
type Record struct {
	Key   Key
	Value []byte
	// Revision is that of the write that made it so.
	Revision Revision
	// Expires is when the record ceases to exist, or zero for never. Times are
	// kept to the millisecond.
	Expires time.Time
	// Due is when Records.Due lists the record, or zero for never.
	Due time.Time
}

// Write puts or deletes one record.
type Write struct {
	Key   Key
	Value []byte
	// Delete removes the record. Deleting what is not there is no error.
	Delete bool
	// If must hold, or the whole batch is refused: Any, Absent, or the
	// revision that the record must have.
	If Revision
	// Expires and Due are those of the record; zero means never.
	Expires, Due time.Time
	// KeepExpires leaves the expiry as it is in the record that If names, which must
	// be a revision. It costs less than to write one.
	KeepExpires bool
}

// Check is a condition on a record that a batch does not write.
type Check struct {
	Key Key
	If  Revision
}

// Batch is a bounded transaction: all of its writes happen, or none does. No
// key may occur in it twice.
type Batch struct {
	Writes []Write
	Checks []Check
	// Holding are leases that must be held, each with its token, when the
	// batch is written.
	Holding []Lease
	// Later lets the batch reach the disk some time after it was acknowledged.
	// It survives the end of the process all the same. The loss of power may
	// take it, and then all such batches that came after it too, but none that
	// came before a batch which is on the disk.
	Later bool
}

// Range selects records of one owner by name.
type Range struct {
	Collection string
	Owner      Owner
	// Prefix is what the names begin with.
	Prefix string
	// After is the name that the page comes after; empty begins.
	After string
	// Limit bounds the page; zero means DefaultPage.
	Limit int
}

// Sweep selects records of many owners. It is for maintenance and for
// administrators: what it gives must not reach a caller unfiltered.
type Sweep struct {
	Collection string
	// Tenant limits the sweep to owners of one tenant; empty means all.
	Tenant string
	// After is the key that the page comes after; the zero Key begins.
	After Key
	// Limit bounds the page; zero means DefaultPage.
	Limit int
}

// Page is a part of a listing.
type Page struct {
	// Records are sorted by name, and in a sweep by owner before that.
	Records []Record
	// More says that records follow the last one.
	More bool
}

// Records keeps values under keys.
type Records interface {
	// Get returns a live record, or ErrNotFound.
	Get(ctx context.Context, key Key) (Record, error)
	// Apply writes a batch and returns the new revision of each of its writes,
	// zero for deletions; or ErrConflict, ErrLeaseLost, ErrInvalid or
	// ErrTooLarge, and writes nothing.
	Apply(ctx context.Context, b Batch) ([]Revision, error)
	// List returns one owner's live records by name.
	List(ctx context.Context, r Range) (Page, error)
	// Sweep returns live records of many owners.
	Sweep(ctx context.Context, s Sweep) (Page, error)
	// Due returns up to limit live records of all owners whose Due has come,
	// the earliest first. It is for maintenance.
	Due(ctx context.Context, collection string, limit int) ([]Record, error)
}

// Offset is a place in a log. Offsets of one log count from 1 without gaps, and
// no entry is seen before all those ahead of it.
type Offset int64

// Entry is one entry of a log.
type Entry struct {
	Offset Offset
	// Time is when it was appended, by the store's clock.
	Time time.Time
	Data []byte
}

// Extent says what a log holds.
type Extent struct {
	// First is the offset of the oldest entry that was not trimmed; it equals
	// Next when there is none.
	First Offset
	// Next is the offset that the next entry will get.
	Next Offset
}

// Logs keeps entries in the order in which they were appended.
type Logs interface {
	// Append adds entries, all or none, and returns the offset of the first.
	Append(ctx context.Context, log Key, entries ...[]byte) (Offset, error)
	// Read returns up to limit entries (zero: DefaultPage) beginning with the
	// offset from, or with the oldest when that was trimmed.
	Read(ctx context.Context, log Key, from Offset, limit int) ([]Entry, error)
	// Trim removes the entries before an offset, at most all that there are.
	Trim(ctx context.Context, log Key, before Offset) error
	// Extent returns what the log holds. A log that was never written begins
	// at 1.
	Extent(ctx context.Context, log Key) (Extent, error)
}

// Lease is the right to act alone under a key, for a time.
type Lease struct {
	Key Key
	// Holder names who has it.
	Holder string
	// Token is greater than that of every earlier lease of the key. Batches
	// that name the lease in Holding are refused once a later one exists.
	Token int64
	// Expires is when the lease ends unless it is renewed, by the store's
	// clock.
	Expires time.Time
}

// Leases gives the right to act alone.
type Leases interface {
	// Acquire returns the lease of a key, or ErrLeaseHeld. A holder that
	// acquires what it already holds gets a new token, and the old one is
	// lost.
	Acquire(ctx context.Context, key Key, holder string, ttl time.Duration) (Lease, error)
	// Renew makes the lease last for ttl from now, or returns ErrLeaseLost.
	Renew(ctx context.Context, lease Lease, ttl time.Duration) (Lease, error)
	// Release ends the lease. Releasing a lost lease is no error and changes
	// nothing.
	Release(ctx context.Context, lease Lease) error
}
