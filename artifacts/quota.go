package artifacts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/store"
)

// Usage is what is kept at once, including what is being stored.
type Usage struct {
	Bytes int64 `json:"bytes"`
	Count int64 `json:"count"`
}

// account is one usage and its record.
type account struct {
	Usage
	key      store.Key
	revision store.Revision
	limit    Quota
	whose    string
}

// usages are the accounts that one artifact counts in: of its tenant, and of the
// user who stored it.
type usages []account

// Usage returns what the caller's tenant and user keep. The second is zero for a
// caller without a user.
func (s *Store) Usage(ctx context.Context) (tenant, user Usage, err error) {
	id, err := s.caller(ctx)
	if err != nil {
		return Usage{}, Usage{}, err
	}
	all, err := s.usages(ctx, id)
	if err != nil {
		return Usage{}, Usage{}, err
	}
	if len(all) > 1 {
		user = all[1].Usage
	}
	return all[0].Usage, user, nil
}

// usages returns the accounts of a payer as they are.
func (s *Store) usages(ctx context.Context, payer identity.Identity) (usages, error) {
	all := usages{{key: usageKey(store.Tenant(payer)), limit: s.opts.Tenant, whose: "tenant"}}
	if payer.UserID != "" {
		all = append(all, account{key: usageKey(store.User(payer)), limit: s.opts.User, whose: "user"})
	}
	for i := range all {
		if err := s.load(ctx, &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func usageKey(o store.Owner) store.Key {
	return store.Key{Collection: usageCollection, Owner: o, Name: usageName}
}

func (s *Store) load(ctx context.Context, a *account) error {
	r, err := s.records.Get(ctx, a.key)
	if errors.Is(err, store.ErrNotFound) {
		a.revision = store.Absent
		return nil
	}
	if err != nil {
		return err
	}
	a.revision = r.Revision
	if err := json.Unmarshal(r.Value, &a.Usage); err != nil {
		return fmt.Errorf("artifacts: the usage of a %s cannot be read: %w", a.whose, err)
	}
	return nil
}

// take adds between need and wanted bytes and so many artifacts to each account,
// as far as the quotas allow, and returns how many bytes that were.
func (u usages) take(need, wanted, artifacts int64) (int64, error) {
	for _, a := range u {
		if a.limit.Count >= 0 && a.Count+artifacts > a.limit.Count {
			return 0, refusal(ErrQuota, "the %s already keeps %d artifacts, and may keep %d: remove some", a.whose, a.Count, a.limit.Count)
		}
		if a.limit.Bytes < 0 {
			continue
		}
		if wanted = min(wanted, a.limit.Bytes-a.Bytes); wanted < need {
			return 0, refusal(ErrQuota, "the %s already keeps %d bytes of artifacts, and may keep %d: remove some", a.whose, a.Bytes, a.limit.Bytes)
		}
	}
	u.give(-wanted, -artifacts)
	return wanted, nil
}

// give takes bytes and artifacts out of each account.
func (u usages) give(bytes, artifacts int64) {
	for i := range u {
		u[i].Bytes = max(u[i].Bytes-bytes, 0)
		u[i].Count = max(u[i].Count-artifacts, 0)
	}
}

func (u usages) writes() []store.Write {
	var list []store.Write
	for _, a := range u {
		value, _ := json.Marshal(a.Usage) // numbers always encode
		list = append(list, store.Write{Key: a.key, Value: value, If: a.revision})
	}
	return list
}

// account changes the accounts of a payer and the record of an artifact in one
// step. change is called with the accounts as they are, possibly several times,
// and returns the write of the record. A conflict of the record itself, rather
// than of the accounts, ends the attempts.
func (s *Store) account(ctx context.Context, payer identity.Identity, change func(have usages) (store.Write, error)) (store.Revision, error) {
	lock := &s.locks[maphash.String(s.seed, payer.TenantID)%lockStripes]
	lock.Lock()
	defer lock.Unlock()
	var revision store.Revision
	err := store.Retry(ctx, func() error {
		have, err := s.usages(ctx, payer)
		if err != nil {
			return err
		}
		w, err := change(have)
		if err != nil {
			return err
		}
		revisions, err := s.records.Apply(ctx, store.Batch{Writes: append(have.writes(), w)})
		if err == nil {
			revision = revisions[len(revisions)-1]
			return nil
		}
		if errors.Is(err, store.ErrConflict) && s.overtaken(ctx, w) {
			return errOvertaken
		}
		return err
	})
	return revision, err
}

// errOvertaken says that the record of an artifact was written by another.
var errOvertaken = errors.New("artifacts: another changed the artifact")

// overtaken reports whether the condition of a write does not hold any more.
func (s *Store) overtaken(ctx context.Context, w store.Write) bool {
	r, err := s.records.Get(ctx, w.Key)
	if errors.Is(err, store.ErrNotFound) {
		return w.If != store.Absent
	}
	return err == nil && r.Revision != w.If
}
