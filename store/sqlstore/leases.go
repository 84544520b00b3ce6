package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/toolcrib/toolcrib/store"
)

// Acquire implements store.Leases.
func (db *DB) Acquire(ctx context.Context, key store.Key, holder string, ttl time.Duration) (store.Lease, error) {
	if err := checkLeaseArgs(key, holder, ttl); err != nil {
		return store.Lease{}, err
	}
	lease := store.Lease{Key: key, Holder: holder}
	err := db.transaction(ctx, func(ctx context.Context, tx *tx) error {
		now := db.now()
		var has []byte
		err := tx.scan(ctx, "select holder from leases"+ofKey+" and expires > ?", keyParts(key, now.UnixMilli()), &has)
		switch {
		case err == nil && string(has) != holder:
			return store.ErrLeaseHeld
		case err != nil && !errors.Is(err, sql.ErrNoRows):
			return err
		}
		if lease.Token, err = count(ctx, tx, "token", 1); err != nil {
			return err
		}
		lease.Expires = instant(millis(now.Add(ttl)))
		err = tx.exec(ctx, "insert into leases ("+keyColumns+", holder, token, expires) values (?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict ("+keyColumns+
			") do update set holder = excluded.holder, token = excluded.token, expires = excluded.expires",
			keyParts(key, []byte(holder), lease.Token, millis(lease.Expires))...)
		return err
	})
	if err != nil {
		return store.Lease{}, err
	}
	return lease, nil
}

func checkLeaseArgs(key store.Key, holder string, ttl time.Duration) error {
	if err := key.Check(); err != nil {
		return err
	}
	if holder == "" || len(holder) > store.MaxPartBytes {
		return fmt.Errorf("%w: a holder's name has 1 to %d bytes, not %d", store.ErrInvalid, store.MaxPartBytes, len(holder))
	}
	if ttl < time.Millisecond {
		return fmt.Errorf("%w: a lease lasts a millisecond at least, not %v", store.ErrInvalid, ttl)
	}
	return nil
}

// Renew implements store.Leases.
func (db *DB) Renew(ctx context.Context, lease store.Lease, ttl time.Duration) (store.Lease, error) {
	if err := checkLeaseArgs(lease.Key, lease.Holder, ttl); err != nil {
		return store.Lease{}, err
	}
	err := db.transaction(ctx, func(ctx context.Context, tx *tx) error {
		if err := db.checkLease(ctx, tx, lease); err != nil {
			return err
		}
		lease.Expires = instant(millis(db.now().Add(ttl)))
		err := tx.exec(ctx, "update leases set expires = ?"+ofKey, append([]any{millis(lease.Expires)}, keyParts(lease.Key)...)...)
		return err
	})
	if err != nil {
		return store.Lease{}, err
	}
	return lease, nil
}

// Release implements store.Leases.
func (db *DB) Release(ctx context.Context, lease store.Lease) error {
	if err := lease.Key.Check(); err != nil {
		return err
	}
	return db.transaction(ctx, func(ctx context.Context, tx *tx) error {
		err := tx.exec(ctx, "delete from leases"+ofKey+" and token = ?", keyParts(lease.Key, lease.Token)...)
		return err
	})
}

// checkLease returns ErrLeaseLost unless the lease is held.
func (db *DB) checkLease(ctx context.Context, tx *tx, lease store.Lease) error {
	var one int
	err := tx.scan(ctx, "select 1 from leases"+ofKey+" and token = ? and expires > ?",
		keyParts(lease.Key, lease.Token, db.now().UnixMilli()), &one)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%w: %s", store.ErrLeaseLost, lease.Key.Collection)
	}
	return err
}
