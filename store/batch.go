package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Check returns ErrInvalid or ErrTooLarge when the batch cannot be applied.
func (b Batch) Check() error {
	if n := len(b.Writes) + len(b.Checks) + len(b.Holding); n > MaxBatch {
		return fmt.Errorf("%w: a batch has at most %d parts, not %d", ErrTooLarge, MaxBatch, n)
	}
	var seen map[Key]bool // nil for a single key, which is not there twice
	if len(b.Writes)+len(b.Checks) > 1 {
		seen = make(map[Key]bool, len(b.Writes)+len(b.Checks))
	}
	for _, w := range b.Writes {
		if err := CheckValue(w.Value); err != nil {
			return err
		}
		if err := checkCondition(w.Key, w.If, seen); err != nil {
			return err
		}
		if w.KeepExpires && (w.If <= Any || w.Delete) {
			return fmt.Errorf("%w: only a write that puts a value in the place of a revision keeps its expiry", ErrInvalid)
		}
	}
	for _, c := range b.Checks {
		if err := checkCondition(c.Key, c.If, seen); err != nil {
			return err
		}
	}
	for _, l := range b.Holding {
		if err := l.Key.Check(); err != nil {
			return err
		}
	}
	return nil
}

func checkCondition(key Key, condition Revision, seen map[Key]bool) error {
	if err := key.Check(); err != nil {
		return err
	}
	if condition < Absent {
		return fmt.Errorf("%w: %d is no revision", ErrInvalid, condition)
	}
	if seen[key] {
		return fmt.Errorf("%w: a key occurs twice in a batch", ErrInvalid)
	}
	if seen != nil {
		seen[key] = true
	}
	return nil
}

// CheckValue returns ErrTooLarge for a value above MaxValueBytes.
func CheckValue(value []byte) error {
	if len(value) > MaxValueBytes {
		return fmt.Errorf("%w: a value has at most %d bytes, not %d", ErrTooLarge, MaxValueBytes, len(value))
	}
	return nil
}

// Put writes one record that never expires.
func Put(ctx context.Context, r Records, key Key, value []byte, condition Revision) (Revision, error) {
	revisions, err := r.Apply(ctx, Batch{Writes: []Write{{Key: key, Value: value, If: condition}}})
	if err != nil {
		return 0, err
	}
	return revisions[0], nil
}

// Delete removes one record.
func Delete(ctx context.Context, r Records, key Key, condition Revision) error {
	_, err := r.Apply(ctx, Batch{Writes: []Write{{Key: key, Delete: true, If: condition}}})
	return err
}

const (
	updateTries = 100
	updatePause = 2 * time.Millisecond
)

// Update changes one record by compare-and-set until no other writer comes in
// between. change is given the live record, or a record of Revision Absent, and
// returns the write to make; its Key and If are set here. It may be called
// several times. An error of change ends the update.
func Update(ctx context.Context, r Records, key Key, change func(old Record) (Write, error)) (Revision, error) {
	var revision Revision
	err := Retry(ctx, func() error {
		old, err := r.Get(ctx, key)
		if errors.Is(err, ErrNotFound) {
			old = Record{Key: key, Revision: Absent}
		} else if err != nil {
			return err
		}
		w, err := change(old)
		if err != nil {
			return err
		}
		w.Key, w.If = key, old.Revision
		revisions, err := r.Apply(ctx, Batch{Writes: []Write{w}})
		if err == nil {
			revision = revisions[0]
		}
		return err
	})
	return revision, err
}

// Retry calls attempt until it returns something else than ErrConflict, with a
// short random pause between, at most a hundred times.
func Retry(ctx context.Context, attempt func() error) error {
	var err error
	for n := range updateTries {
		if err = attempt(); !errors.Is(err, ErrConflict) {
			return err
		}
		timer := time.NewTimer(rand.N(updatePause * time.Duration(min(n+1, 10))))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
	return err
}
