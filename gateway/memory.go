package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/view"
)

// foundIn is the collection of what callers have found: one record for each
// session, and for each toolset in which it works, a list of names in JSON, the
// oldest first. That of no toolset is foundTools, and foundTools/NAME that of one.
const (
	foundIn    = "discovery.found"
	foundTools = "tools"
)

// foundFor is how long a session's finds are kept after the last one.
const foundFor = 30 * 24 * time.Hour

// keptEnough is how old a record may be that a find leaves as it is.
const keptEnough = 24 * time.Hour

// storedMemory keeps what callers have found in a store, so that it survives the
// end of this process and is the same in all that share the store.
type storedMemory struct {
	records store.Records
	name    string // of the records
}

var _ view.Memory = storedMemory{}

func (m storedMemory) key(ctx context.Context) store.Key {
	caller, _ := identity.From(ctx)
	return store.Key{Collection: foundIn, Owner: store.Session(caller), Name: m.name}
}

// Found implements view.Memory.
func (m storedMemory) Found(ctx context.Context) ([]string, error) {
	record, err := m.records.Get(ctx, m.key(ctx))
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names, err := foundNames(record)
	slices.Sort(names)
	return names, err
}

// Add implements view.Memory.
func (m storedMemory) Add(ctx context.Context, names ...string) error {
	if len(names) == 0 || m.keeps(ctx, names) {
		return nil
	}
	_, err := store.Update(ctx, m.records, m.key(ctx), func(old store.Record) (store.Write, error) {
		kept, err := foundNames(old)
		if err != nil {
			return store.Write{}, err
		}
		value, err := json.Marshal(view.Remember(kept, view.DefaultMaxFound, names...))
		return store.Write{Value: value, Expires: time.Now().Add(foundFor)}, err
	})
	return err
}

// keeps reports whether all names are kept already, and for long enough: most of
// what a session shows again needs no write, which waits for the disk.
func (m storedMemory) keeps(ctx context.Context, names []string) bool {
	record, err := m.records.Get(ctx, m.key(ctx))
	if err != nil || time.Until(record.Expires) < foundFor-keptEnough {
		return false
	}
	kept, err := foundNames(record)
	return err == nil && !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(kept, name) })
}

func foundNames(r store.Record) (names []string, err error) {
	if len(r.Value) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(r.Value, &names); err != nil {
		return nil, fmt.Errorf("gateway: the record of found tools cannot be read: %w", err)
	}
	return names, nil
}
