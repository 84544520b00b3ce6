package registry

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/tools"
)

// Collections of the store.
const (
	callCollection    = "worker_calls"
	toolsetCollection = "worker_toolsets"
	homeCollection    = "worker_home"
)

// state is how far a recorded call is. It only moves forward, but for a worker
// that gives back what it has not run.
type state string

const (
	stateAccepted state = "accepted" // no worker has it
	stateClaimed  state = "claimed"  // one worker may have run it
	stateDone     state = "done"     // it has its result
)

// record is what the store keeps of a call.
type record struct {
	Version  int       `json:"v"`
	State    state     `json:"state"`
	Toolset  string    `json:"toolset"`
	Tool     string    `json:"tool"`
	Digest   string    `json:"digest"` // of what is called with which arguments; empty where the id is the call's own
	Token    string    `json:"token"`
	Accepted time.Time `json:"accepted"`
	Deadline time.Time `json:"deadline"`
	// Message is what is sent, as long as no worker has the call: one that a worker has
	// is not sent again unless that one gives it back.
	Message *ToolCallMessage `json:"message,omitzero"`
	// Meta is that of the message once a worker has the call.
	Meta *ToolCallMeta `json:"meta,omitzero"`
	// Instance is the worker that claimed it, Try is that of its claim, and Claimed when.
	Instance string    `json:"instance,omitzero"`
	Try      int       `json:"try,omitzero"`
	Claimed  time.Time `json:"claimed,omitzero"`
	// Result is there once the call is done.
	Result   *ToolResultMessage `json:"result,omitzero"`
	Finished time.Time          `json:"finished,omitzero"`
}

const (
	recordVersion = 1
	// lookAfter is when a record that is still open is looked at again by
	// whichever registry gets to it.
	lookAfter = 15 * time.Second
)

// give makes the call the worker's if no worker has it, or the same one by an earlier
// try, and reports whether that was so.
func (r *record) give(by *Claim) (v Verdict, held string, given bool) {
	v, held = r.verdict(by)
	given = v == VerdictRun && (r.State == stateAccepted || r.Try != by.Try)
	if given {
		r.State, r.Instance, r.Try, r.Claimed, r.Message, r.Meta = stateClaimed, by.Instance, by.Try, time.Now(), nil, r.meta()
	}
	return v, held, given
}

// unrun reports whether the record is that of a call with this digest which is over
// and certainly did not run.
func (r *record) unrun(digest string) bool {
	return r.Digest == digest && r.State == stateDone && r.Result.Error != nil && r.Result.Error.NotDelivered && !r.Result.Error.OutcomeUnknown
}

// done gives the call its result.
func (r *record) done(res *ToolResultMessage) {
	r.State, r.Message, r.Meta, r.Result, r.Finished = stateDone, nil, nil, res, time.Now()
}

// meta says whose call it is, as long as it is open and somebody knows.
func (r *record) meta() *ToolCallMeta {
	if r.Message != nil {
		return r.Message.Meta
	}
	return r.Meta
}

// end gives the call a result unless it has one, and reports whether it did.
// foreign says that the result is of a worker that does not have the call.
func (r *record) end(res *ToolResultMessage, by *Receipt) (ended, foreign bool) {
	foreign = r.Token != by.Token || r.State == stateClaimed && r.Instance != by.Instance
	if foreign || r.State == stateDone {
		return false, foreign
	}
	kept := *res
	kept.Receipt = nil
	r.done(&kept)
	return true, false
}

// verdict says what becomes of a claim. A worker that has the call already asks
// again because it did not hear the answer; it makes sure itself that it runs the
// call once.
func (r *record) verdict(by *Claim) (v Verdict, held string) {
	switch {
	case r.Token != by.Token || r.State == stateDone || !time.Now().Before(r.Deadline), r.State == stateClaimed && r.Instance == by.Instance && by.Try < r.Try:
		return VerdictOver, ""
	case r.State == stateAccepted, r.Instance == by.Instance:
		return VerdictRun, ""
	}
	return VerdictHeld, r.Instance
}

// ledger keeps the records of calls.
type ledger struct {
	records   store.Records
	retention time.Duration
	// later lets every record reach the disk some time after it was written.
	later bool
}

// callKey names the record of a call. Calls without a tenant are those of a
// catalog that demands no identity.
func callKey(tenant, id string) store.Key {
	owner := store.Global()
	if tenant != "" {
		owner = store.Tenant(identity.Identity{TenantID: tenant})
	}
	return store.Key{Collection: callCollection, Owner: owner, Name: id}
}

// waits reports whether a record must be on the disk when it was written, in the
// place of one of the state before, or as the first one of its call.
//
// A loss of power takes what is not on the disk. Without its result a call that was
// claimed has an unknown outcome, and is not run again. Without any record it is
// not run either, as no registry knows it. But a record that says that the call was
// accepted would have it run, though it ran, or though somebody was told that it
// would not: so what follows that record waits for the disk in any case.
func (l *ledger) waits(before, next state, first bool) bool {
	switch {
	case before == stateClaimed && next == stateDone:
		return false
	case first, next == stateAccepted:
		return !l.later
	}
	return true
}

// writeOf is what puts a record, under a condition, in the place of one of the
// state before. waits says that it must be on the disk when it was written.
func (l *ledger) writeOf(key store.Key, rec *record, condition store.Revision, before state) (w store.Write, waits bool, err error) {
	value, err := Encode(rec)
	if err != nil {
		return store.Write{}, false, err
	}
	now := time.Now()
	w = store.Write{Key: key, Value: value, If: condition, Expires: rec.Deadline.Add(l.retention)}
	switch {
	case rec.State != stateDone:
		w.Due = now.Add(lookAfter)
	case before == stateClaimed && now.Before(rec.Deadline):
		w.KeepExpires = true // which is later than it has to be
	default:
		w.Expires = now.Add(l.retention)
	}
	return w, l.waits(before, rec.State, condition == store.Absent), nil
}

// write makes one write, which waits for the disk or does not.
func (l *ledger) write(ctx context.Context, w store.Write, waits bool) (store.Revision, error) {
	revisions, err := l.records.Apply(ctx, store.Batch{Writes: []store.Write{w}, Later: !waits})
	if err != nil {
		return 0, err
	}
	return revisions[0], nil
}

// read returns a record, or nil when there is none.
func (l *ledger) read(ctx context.Context, key store.Key) (*record, store.Revision, error) {
	got, err := l.records.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	rec, err := decodeRecord(got.Value)
	return rec, got.Revision, err
}

func decodeRecord(value []byte) (*record, error) {
	var rec record
	if err := json.Unmarshal(value, &rec); err != nil {
		return nil, fmt.Errorf("%w: the record of a call cannot be read", ErrInvalid)
	}
	if rec.Version != recordVersion {
		return nil, fmt.Errorf("%w: the record of a call has version %d, and this program reads %d", ErrInvalid, rec.Version, recordVersion)
	}
	return &rec, nil
}

// mostUnrun bounds how many records of a call that did not run are passed over.
const mostUnrun = 1000

// passUnrun returns the first of the ids of a call, from the nth on, under which it is
// not over as one that certainly did not run, or -1. Who asks for the call passes over
// the same records as others do, and over none under which it runs or has run: so
// each that is passed over is kept for longer than that of a call whose deadline is at
// most latest.
func (l *ledger) passUnrun(ctx context.Context, digest string, n int, latest time.Time, key func(n int) store.Key) int {
	for ; n < mostUnrun; n++ {
		got, err := l.records.Get(ctx, key(n))
		if errors.Is(err, store.ErrNotFound) {
			return n
		}
		if err != nil {
			return -1
		}
		rec, err := decodeRecord(got.Value)
		if err != nil || !rec.unrun(digest) {
			return n
		}
		switch err := l.outlive(ctx, &got, latest); {
		case errors.Is(err, store.ErrConflict):
			n-- // It is another by now.
		case err != nil:
			return -1
		}
	}
	return -1
}

// outlive keeps a record for longer than that of a call whose deadline is at most
// latest. It is written for as long again, so that few who ask have to write it.
func (l *ledger) outlive(ctx context.Context, r *store.Record, latest time.Time) error {
	if r.Expires.After(latest.Add(l.retention)) {
		return nil
	}
	w := store.Write{Key: r.Key, Value: r.Value, If: r.Revision, Expires: latest.Add(2 * l.retention)}
	_, err := l.records.Apply(ctx, store.Batch{Writes: []store.Write{w}})
	return err
}

// callID derives the id of an attempt at a call from its run and the caller's own
// id of it, or from the caller's idempotency key: the same attempt at the same
// call has the same id, whichever process sees it. It goes on with the nth id after
// that, which is the one of the nth attempt after it, when a record says that it did
// not run. A call of no run and without a key has an id of its own, and again is false.
func callID(who *identity.Quadruple, toolset, tool string, in *tools.Call, n int) (id string, again bool) {
	switch {
	case in == nil:
	case in.IdempotencyKey != "":
		return hashed("key", who.TenantID, who.UserID, toolset, tool, in.IdempotencyKey, fmt.Sprint(in.Attempt()+n))[:idBytes], true
	case who.RunID != "":
		return hashed("run", who.TenantID, who.UserID, who.SessionID, who.RunID, in.ID, fmt.Sprint(in.Attempt()+n))[:idBytes], true
	}
	return ownID(), false
}

// ownID returns an id that no other call has. Ids of calls that follow each other are
// in that order, so that a store finds their records side by side.
func ownID() string {
	const digits = "0123456789abcdefghijklmnopqrstuv" // of which text sorts as numbers do
	var at [10]byte
	for i, ms := len(at)-1, time.Now().UnixMilli(); i >= 0; i, ms = i-1, ms>>5 {
		at[i] = digits[ms&31]
	}
	return string(at[:]) + rand.Text()
}

// idBytes is the length of an id that is derived.
const idBytes = 40

// hashed returns the SHA-256, in hex, of texts that cannot run into each other.
func hashed(parts ...string) string {
	h := sha256.New()
	var length [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(p)))
		h.Write(length[:])
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil))
}
