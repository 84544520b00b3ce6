package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/toolcrib/toolcrib/store"
)

// Append implements store.Logs.
func (db *DB) Append(ctx context.Context, log store.Key, entries ...[]byte) (store.Offset, error) {
	if err := checkAppend(log, entries); err != nil {
		return 0, err
	}
	var first int64
	err := db.transaction(ctx, func(ctx context.Context, tx *tx) error {
		var id, next int64
		err := tx.scan(ctx, "insert into logs ("+keyColumns+", oldest, next) values (?, ?, ?, ?, ?, ?, 1, ?) on conflict ("+keyColumns+
			") do update set next = next + ? returning id, next", keyParts(log, 1+len(entries), len(entries)), &id, &next)
		if err != nil {
			return err
		}
		first = next - int64(len(entries))
		now := db.now().UnixMilli()
		for i, data := range entries {
			if err := tx.exec(ctx, "insert into entries (log_id, position, at, data) values (?, ?, ?, ?)", id, first+int64(i), now, orEmpty(data)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return store.Offset(first), nil
}

func checkAppend(log store.Key, entries [][]byte) error {
	if err := log.Check(); err != nil {
		return err
	}
	if len(entries) == 0 {
		return fmt.Errorf("%w: nothing to append", store.ErrInvalid)
	}
	if len(entries) > store.MaxBatch {
		return fmt.Errorf("%w: at most %d entries are appended at once, not %d", store.ErrTooLarge, store.MaxBatch, len(entries))
	}
	for _, data := range entries {
		if err := store.CheckValue(data); err != nil {
			return err
		}
	}
	return nil
}

// Read implements store.Logs.
func (db *DB) Read(ctx context.Context, log store.Key, from store.Offset, limit int) ([]store.Entry, error) {
	if err := log.Check(); err != nil {
		return nil, err
	}
	if db.closed.Load() {
		return nil, store.ErrClosed
	}
	rows, err := db.reads.query(ctx, "select position, at, data from entries where log_id = (select id from logs"+ofKey+") and position >= ? order by position limit ?",
		keyParts(log, int64(from), store.PageSize(limit))...)
	if err != nil {
		return nil, db.fault(err)
	}
	defer rows.Close()
	var list []store.Entry
	for rows.Next() {
		var e store.Entry
		var at int64
		if err := rows.Scan(&e.Offset, &at, &e.Data); err != nil {
			return nil, db.fault(err)
		}
		e.Time = instant(at)
		list = append(list, e)
	}
	return list, db.fault(rows.Err())
}

// Trim implements store.Logs.
func (db *DB) Trim(ctx context.Context, log store.Key, before store.Offset) error {
	if err := log.Check(); err != nil {
		return err
	}
	return db.transaction(ctx, func(ctx context.Context, tx *tx) error {
		var id, oldest int64
		err := tx.scan(ctx, "update logs set oldest = max(oldest, min(next, ?))"+ofKey+" returning id, oldest",
			append([]any{int64(before)}, keyParts(log)...), &id, &oldest)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		err = tx.exec(ctx, "delete from entries where log_id = ? and position < ?", id, oldest)
		return err
	})
}

// Extent implements store.Logs.
func (db *DB) Extent(ctx context.Context, log store.Key) (store.Extent, error) {
	if err := log.Check(); err != nil {
		return store.Extent{}, err
	}
	if db.closed.Load() {
		return store.Extent{}, store.ErrClosed
	}
	e := store.Extent{First: 1, Next: 1}
	err := db.reads.scan(ctx, "select oldest, next from logs"+ofKey, keyParts(log), &e.First, &e.Next)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return e, db.fault(err)
}
