package gateway

import (
	"context"
	"fmt"
	"sync"

	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/store/sqlstore"
)

// passing are the records of a gateway without a data folder: in memory, in a
// database that is opened when the first is asked for, which for most programs is
// never.
type passing struct {
	opened chan struct{} // closed then
	db     func() (*sqlstore.DB, error)
}

func newPassing() *passing {
	p := &passing{opened: make(chan struct{})}
	p.db = sync.OnceValues(func() (*sqlstore.DB, error) {
		defer close(p.opened)
		db, err := sqlstore.OpenMemory(context.Background(), nil)
		if err != nil {
			return nil, fmt.Errorf("gateway: the store cannot be opened: %w", err)
		}
		return db, nil
	})
	return p
}

// Close ends the use of the database, if there is one.
func (p *passing) Close() error {
	select {
	case <-p.opened:
	default:
		return nil
	}
	db, err := p.db()
	if err != nil {
		return nil // who asked was told
	}
	return db.Close()
}

// Get implements store.Records.
func (p *passing) Get(ctx context.Context, key store.Key) (store.Record, error) {
	db, err := p.db()
	if err != nil {
		return store.Record{}, err
	}
	return db.Get(ctx, key)
}

// Apply implements store.Records.
func (p *passing) Apply(ctx context.Context, b store.Batch) ([]store.Revision, error) {
	db, err := p.db()
	if err != nil {
		return nil, err
	}
	return db.Apply(ctx, b)
}

// List implements store.Records.
func (p *passing) List(ctx context.Context, r store.Range) (store.Page, error) {
	db, err := p.db()
	if err != nil {
		return store.Page{}, err
	}
	return db.List(ctx, r)
}

// Sweep implements store.Records.
func (p *passing) Sweep(ctx context.Context, s store.Sweep) (store.Page, error) {
	db, err := p.db()
	if err != nil {
		return store.Page{}, err
	}
	return db.Sweep(ctx, s)
}

// Due implements store.Records.
func (p *passing) Due(ctx context.Context, collection string, limit int) ([]store.Record, error) {
	db, err := p.db()
	if err != nil {
		return nil, err
	}
	return db.Due(ctx, collection, limit)
}
