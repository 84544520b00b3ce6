package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/store"
)

const (
	keyColumns = "collection, tenant, scope, user_id, session, name"
	ofKey      = " where collection = ? and tenant = ? and scope = ? and user_id = ? and session = ? and name = ?"
	// The plus keeps the parameter from being compared with the condition of an
	// index, for which SQLite would prepare the statement anew each time.
	isLive     = " and (expires = 0 or +expires > ?)"
	allColumns = keyColumns + ", value, revision, expires, due"
)

// ownerParts are the columns of an owner. Text that a caller chose is kept as
// bytes, which sort bytewise and may be anything.
func ownerParts(o store.Owner) []any { return appendOwner(nil, o) }

func appendOwner(args []any, o store.Owner) []any {
	id := o.Identity()
	return append(args, []byte(id.TenantID), int64(o.Scope()), []byte(id.UserID), []byte(id.SessionID))
}

// keyParts are the columns of a key, and what else a statement takes.
func keyParts(k store.Key, more ...any) []any { return appendKey(nil, k, more...) }

// appendKey appends the columns of a key to what a statement takes before them.
func appendKey(args []any, k store.Key, more ...any) []any {
	args = slices.Grow(args, 6+len(more))
	args = append(appendOwner(append(args, k.Collection), k.Owner), []byte(k.Name))
	return append(args, more...)
}

// Get implements store.Records.
func (db *DB) Get(ctx context.Context, key store.Key) (store.Record, error) {
	if err := key.Check(); err != nil {
		return store.Record{}, err
	}
	if db.closed.Load() {
		return store.Record{}, store.ErrClosed
	}
	r := store.Record{Key: key}
	var expires, due int64
	err := db.reads.scan(ctx, "select value, revision, expires, due from records"+ofKey+isLive, keyParts(key, db.now().UnixMilli()),
		&r.Value, &r.Revision, &expires, &due)
	if errors.Is(err, sql.ErrNoRows) {
		return store.Record{}, store.ErrNotFound
	}
	r.Expires, r.Due = instant(expires), instant(due)
	return r, db.fault(err)
}

// Apply implements store.Records.
func (db *DB) Apply(ctx context.Context, b store.Batch) ([]store.Revision, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	var revisions []store.Revision
	err := db.perform(ctx, &job{revisions: len(b.Writes), later: b.Later, work: func(ctx context.Context, tx *tx) error {
		if err := db.checkBatch(ctx, tx, b); err != nil {
			return err
		}
		var err error
		revisions, err = db.writeAll(ctx, tx, b.Writes)
		return err
	}})
	if err != nil {
		return nil, err
	}
	return revisions, nil
}

// checkBatch checks what a batch demands beside the conditions of its writes,
// which the writes check themselves.
func (db *DB) checkBatch(ctx context.Context, tx *tx, b store.Batch) error {
	for _, l := range b.Holding {
		if err := db.checkLease(ctx, tx, l); err != nil {
			return err
		}
	}
	for _, c := range b.Checks {
		if err := db.checkRevision(ctx, tx, c.Key, c.If); err != nil {
			return err
		}
	}
	return nil
}

// checkRevision returns ErrConflict unless the condition holds.
func (db *DB) checkRevision(ctx context.Context, tx *tx, key store.Key, condition store.Revision) error {
	if condition == store.Any {
		return nil
	}
	have := store.Absent
	err := tx.scan(ctx, "select revision from records"+ofKey+isLive, keyParts(key, db.now().UnixMilli()), &have)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if have != condition {
		return conflict(key)
	}
	return nil
}

func conflict(key store.Key) error {
	return fmt.Errorf("%w: a record of %s was changed by another", store.ErrConflict, key.Collection)
}

// The statements that write a record, each under its condition.
const (
	upsert = "insert into records (" + allColumns + ") values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (" + keyColumns + ") do update set " +
		"value = excluded.value, revision = excluded.revision, expires = excluded.expires, due = excluded.due"
	insertAbsent = upsert + " where expires > 0 and +expires <= ?"
	ofRevision   = ofKey + " and revision = ?" + isLive
	updateThis   = "update records set value = ?, revision = ?, expires = ?, due = ?" + ofRevision
	deleteThis   = "delete from records" + ofRevision
	updateRest   = "update records set value = ?, revision = ?, due = ?" + ofRevision
)

func (db *DB) writeAll(ctx context.Context, tx *tx, writes []store.Write) ([]store.Revision, error) {
	if len(writes) == 0 {
		return nil, nil
	}
	revisions := make([]store.Revision, len(writes))
	for i := range writes {
		tx.revision++
		written, err := db.writeOne(ctx, tx, &writes[i], tx.revision)
		if err != nil {
			return nil, err
		}
		if !written {
			return nil, conflict(writes[i].Key)
		}
		if !writes[i].Delete {
			revisions[i] = store.Revision(tx.revision)
		}
	}
	return revisions, nil
}

// writeOne makes one write, and reports false when its condition does not hold.
func (db *DB) writeOne(ctx context.Context, tx *tx, w *store.Write, revision int64) (bool, error) {
	if w.Delete && w.If > 0 {
		return tx.change(ctx, deleteThis, keyParts(w.Key, int64(w.If), db.now().UnixMilli())...)
	}
	if w.Delete {
		if err := db.checkRevision(ctx, tx, w.Key, w.If); err != nil {
			return false, err
		}
		return true, tx.exec(ctx, "delete from records"+ofKey, keyParts(w.Key)...)
	}
	value, now := orEmpty(w.Value), db.now().UnixMilli()
	switch w.If {
	case store.Any:
		return tx.change(ctx, upsert, keyParts(w.Key, value, revision, millis(w.Expires), millis(w.Due))...)
	case store.Absent:
		return tx.change(ctx, insertAbsent, keyParts(w.Key, value, revision, millis(w.Expires), millis(w.Due), now)...)
	}
	args := append(make([]any, 0, 12), value, revision)
	if w.KeepExpires { // so that the index by expiry is not written either
		return tx.change(ctx, updateRest, appendKey(append(args, millis(w.Due)), w.Key, int64(w.If), now)...)
	}
	return tx.change(ctx, updateThis, appendKey(append(args, millis(w.Expires), millis(w.Due)), w.Key, int64(w.If), now)...)
}

// count takes the next n numbers of a counter and returns the last of them.
func count(ctx context.Context, tx *tx, counter string, n int64) (int64, error) {
	var last int64
	err := tx.scan(ctx, "update counters set value = value + ? where name = ? returning value", []any{n, counter}, &last)
	return last, err
}

// orEmpty keeps an absent value from becoming a null.
func orEmpty(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// List implements store.Records.
func (db *DB) List(ctx context.Context, r store.Range) (store.Page, error) {
	if err := errors.Join(store.CheckCollection(r.Collection), r.Owner.Check()); err != nil {
		return store.Page{}, err
	}
	query := "select " + allColumns + " from records where collection = ? and tenant = ? and scope = ? and user_id = ? and session = ?"
	args := append([]any{r.Collection}, ownerParts(r.Owner)...)
	if r.After != "" {
		query, args = query+" and name > ?", append(args, []byte(r.After))
	}
	query, args = query+" and name >= ?", append(args, []byte(r.Prefix))
	if end := prefixEnd(r.Prefix); end != "" {
		query, args = query+" and name < ?", append(args, []byte(end))
	}
	query, args = query+isLive, append(args, db.now().UnixMilli())
	return db.page(ctx, query+" order by name limit ?", args, store.PageSize(r.Limit))
}

// prefixEnd returns the least text above all that begin with prefix, or nothing
// when there is none.
func prefixEnd(prefix string) string {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			return prefix[:i] + string([]byte{prefix[i] + 1})
		}
	}
	return ""
}

// Sweep implements store.Records.
func (db *DB) Sweep(ctx context.Context, s store.Sweep) (store.Page, error) {
	if err := store.CheckCollection(s.Collection); err != nil {
		return store.Page{}, err
	}
	query, args := "select "+allColumns+" from records where collection = ?", []any{s.Collection}
	if s.Tenant != "" {
		query, args = query+" and tenant = ?", append(args, []byte(s.Tenant))
	}
	if s.After != (store.Key{}) {
		query += " and (tenant, scope, user_id, session, name) > (?, ?, ?, ?, ?)"
		args = append(append(args, ownerParts(s.After.Owner)...), []byte(s.After.Name))
	}
	query, args = query+isLive, append(args, db.now().UnixMilli())
	return db.page(ctx, query+" order by tenant, scope, user_id, session, name limit ?", args, store.PageSize(s.Limit))
}

// Due implements store.Records.
func (db *DB) Due(ctx context.Context, collection string, limit int) ([]store.Record, error) {
	if err := store.CheckCollection(collection); err != nil {
		return nil, err
	}
	now := db.now().UnixMilli()
	page, err := db.page(ctx, "select "+allColumns+" from records where collection = ? and due > 0 and due <= ?"+isLive+" order by due limit ?",
		[]any{collection, now, now}, store.PageSize(limit))
	return page.Records, err
}

// page runs a query whose last parameter is its limit, and asks for one record
// more than wanted, to tell whether there are more.
func (db *DB) page(ctx context.Context, query string, args []any, limit int) (store.Page, error) {
	if db.closed.Load() {
		return store.Page{}, store.ErrClosed
	}
	rows, err := db.reads.query(ctx, query, append(args, limit+1)...)
	if err != nil {
		return store.Page{}, db.fault(err)
	}
	defer rows.Close()
	var page store.Page
	for rows.Next() {
		if len(page.Records) == limit {
			page.More = true
			break
		}
		r, err := scan(rows)
		if err != nil {
			return store.Page{}, db.fault(err)
		}
		page.Records = append(page.Records, r)
	}
	if err := rows.Err(); err != nil {
		return store.Page{}, db.fault(err)
	}
	return page, nil
}

func scan(rows *sql.Rows) (store.Record, error) {
	var r store.Record
	var tenant, user, session, name []byte
	var scope int
	var expires, due int64
	err := rows.Scan(&r.Key.Collection, &tenant, &scope, &user, &session, &name, &r.Value, &r.Revision, &expires, &due)
	r.Key.Owner = owner(store.Scope(scope), identity.Identity{TenantID: string(tenant), UserID: string(user), SessionID: string(session)})
	r.Key.Name, r.Expires, r.Due = string(name), instant(expires), instant(due)
	return r, err
}

func owner(s store.Scope, id identity.Identity) store.Owner {
	switch s {
	case store.ScopeTenant:
		return store.Tenant(id)
	case store.ScopeUser:
		return store.User(id)
	case store.ScopeSession:
		return store.Session(id)
	}
	return store.Global()
}
