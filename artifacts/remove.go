package artifacts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gocloud.dev/gcerrors"

	"github.com/toolcrib/toolcrib/store"
)

// Delete removes an artifact of the caller's. What a tenant shares is removed by
// the user who stored it alone; others get ErrDenied.
func (s *Store) Delete(ctx context.Context, ref string) error {
	id, err := s.caller(ctx)
	if err != nil {
		return err
	}
	rec, err := s.find(ctx, id, ref)
	if err != nil {
		return err
	}
	if rec.Info.User != id.UserID {
		return refusal(ErrDenied, "the artifact is shared, and only the user who stored it may remove it")
	}
	return s.discard(ctx, rec.key, rec.revision)
}

// discard takes an artifact away in three steps, each of which can be repeated:
// nobody sees it and it takes no quota; its content goes; its record goes. An
// artifact of another revision than the one given stays, unless that is Any.
func (s *Store) discard(ctx context.Context, key store.Key, revision store.Revision) error {
	found, err := s.records.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if revision != store.Any && found.Revision != revision {
		return nil // whoever changed it sees to it
	}
	rec, err := decode(found)
	if err != nil {
		return err
	}
	if err := s.hide(ctx, rec); err != nil {
		if errors.Is(err, errOvertaken) {
			return nil
		}
		return err
	}
	if err := s.deleteContent(ctx, blobKey(key), rec.Partial); err != nil {
		return err
	}
	if err := store.Delete(ctx, s.records, key, rec.revision); err != nil && !errors.Is(err, store.ErrConflict) {
		return err
	}
	return nil
}

// hide makes an artifact one that is being removed, which is tried again later
// when this process does not come to its end.
func (s *Store) hide(ctx context.Context, rec *record) error {
	next := *rec
	next.State, next.Taken, next.Partial = removing, 0, rec.Partial || rec.State == pending
	w := next.write(s.opts.Now().Add(patience))
	if rec.State == removing {
		revisions, err := s.records.Apply(ctx, store.Batch{Writes: []store.Write{w}})
		if errors.Is(err, store.ErrConflict) {
			return errOvertaken
		}
		if err == nil {
			next.revision = revisions[0]
			*rec = next
		}
		return err
	}
	revision, err := s.account(ctx, rec.payer(), func(have usages) (store.Write, error) {
		have.give(rec.Taken, 1)
		return w, nil
	})
	if err == nil {
		next.revision = revision
		*rec = next
	}
	return err
}

func (s *Store) deleteContent(ctx context.Context, name string, partial bool) error {
	bucket, err := s.bucket()
	if err != nil {
		return err
	}
	names := []string{name}
	if partial {
		more, err := s.leftovers(ctx, name)
		if err != nil {
			return err
		}
		names = append(names, more...)
	}
	for _, n := range names {
		if err := bucket.Delete(ctx, n); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
			return fmt.Errorf("artifacts: %w", err)
		}
	}
	return nil
}

// Collect removes artifacts that have expired, and what uploads and removals
// have left that never came to their end. It returns how many artifacts it
// removed. Several processes may do so at once.
func (s *Store) Collect(ctx context.Context) (removed int, err error) {
	for {
		due, err := s.records.Due(ctx, collection, 0)
		if err != nil || len(due) == 0 {
			return removed, err
		}
		n, err := s.collect(ctx, due)
		removed += n
		if err != nil || n == 0 {
			return removed, err
		}
	}
}

// collect removes those of the due records that it can, and returns the errors
// of the others.
func (s *Store) collect(ctx context.Context, due []store.Record) (removed int, err error) {
	var faults []error
	for _, d := range due {
		if err := s.discard(ctx, d.Key, d.Revision); err != nil {
			faults = append(faults, err)
			continue
		}
		removed++
	}
	return removed, errors.Join(faults...)
}

// Run collects at once and then at every interval, until ctx ends; it returns
// then. Faults go to the logger.
func (s *Store) Run(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if removed, err := s.Collect(ctx); err != nil && ctx.Err() == nil {
			s.opts.Logger.WarnContext(ctx, "artifacts that should go could not all be removed", "removed", removed, "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
