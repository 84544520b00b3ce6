package registry

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/store"
)

// What registries that share a store have in common.
const (
	// homeName names the store. Registries of one namespace may have stores of
	// their own, and only those that share one can settle each other's calls.
	homeName = "id"
	// homeSecret is what they know each other by.
	homeSecret = "secret"
)

// findHome returns a text that is the store's own, and makes it when it is not there.
func (l *ledger) findHome(ctx context.Context, what string) (string, error) {
	key := store.Key{Collection: homeCollection, Owner: store.Global(), Name: what}
	for {
		rec, err := l.records.Get(ctx, key)
		if err == nil {
			return string(rec.Value), nil
		}
		if !errors.Is(err, store.ErrNotFound) {
			return "", fmt.Errorf("registry: the %s of the store cannot be read: %w", what, err)
		}
		text := rand.Text()
		_, err = store.Put(ctx, l.records, key, []byte(text), store.Absent)
		switch {
		case err == nil:
			return text, nil
		case !errors.Is(err, store.ErrConflict): // Another process was faster.
			return "", fmt.Errorf("registry: the store can be given no %s: %w", what, err)
		}
	}
}

// ErrNamespaceTaken: a registry with another store has the namespace. It knows
// nothing of the calls and toolsets of this one.
var ErrNamespaceTaken = errors.New("registry: the namespace is another store's")

// homeTime bounds how long a registry that begins waits for one that is there to
// say which store it has.
const homeTime = 2 * time.Second

// MessageHome asks the registries of a namespace for the name of their store, and
// answers with it.
const MessageHome = "home"

// settleIn names the store, and returns ErrNamespaceTaken when registries with
// another one are in the namespace.
func (r *Registry) settleIn(ctx context.Context) error {
	home, err := r.ledger.findHome(ctx, homeName)
	if err != nil {
		return err
	}
	r.home = home
	if r.secret, err = r.ledger.findHome(ctx, homeSecret); err != nil {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, homeTime)
	defer cancel()
	answer, err := r.client.Request(asking, r.homeSubject(), stream.Message{Name: MessageHome})
	if errors.Is(err, stream.ErrForbidden) {
		return fmt.Errorf("registry: ask other gateways for their store: %w", err)
	}
	if err == nil && answer.Name == MessageHome && string(answer.Payload) != home {
		return fmt.Errorf("%w: %q; gateways of one namespace share a store (data_dir), and others need a namespace of their own (workers.namespace)", ErrNamespaceTaken, r.opts.Namespace)
	}
	return nil // Nobody is there, or nobody who can say.
}

func (r *Registry) homeSubject() string { return shared(r.opts.Namespace, "home") }

func (r *Registry) homeRequest(context.Context, stream.Message) stream.Message {
	return stream.Message{Name: MessageHome, Payload: []byte(r.home)}
}

// settleSubject is where workers ask any registry of this one's store about a call
// whose own process does not respond.
func (r *Registry) settleSubject() string { return shared(r.opts.Namespace, "settle:"+r.home) }

// resultsStream is where workers leave results that no registry took at once.
func (r *Registry) resultsStream() string { return shared(r.opts.Namespace, "results:"+r.home) }

func (r *Registry) openResults(ctx context.Context) error {
	s, err := r.client.Stream(ctx, r.resultsStream(), nil)
	if err != nil {
		return fmt.Errorf("registry: open the stream of results: %w", err)
	}
	sink, err := s.Sink(ctx, "registry", nil)
	if err != nil {
		return fmt.Errorf("registry: open the sink of results: %w", err)
	}
	r.results = sink
	if r.opts.Ephemeral {
		r.dropResults = func(ctx context.Context) error { return ignoreClosed(s.Destroy(ctx)) }
	}
	return nil
}

// ignoreClosed lets a client that was closed first be no fault.
func ignoreClosed(err error) error {
	if errors.Is(err, stream.ErrClosed) || errors.Is(err, stream.ErrUnavailable) {
		return nil
	}
	return err
}
