package events

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Errors of the registry and of Publish.
var (
	// ErrUnknownType says that an event's type was never registered.
	ErrUnknownType = errors.New("events: unknown event type")
	// ErrWrongPayload says that an event's payload is not of the type that was
	// registered for its event type.
	ErrWrongPayload = errors.New("events: wrong payload type")
	// ErrDuplicateType says that an event type was registered twice with
	// different payload types.
	ErrDuplicateType = errors.New("events: event type registered twice")
)

// Definition binds an event type to its payload type.
type Definition struct {
	Type    EventType
	payload reflect.Type
}

// Define returns the definition of an event type whose payload is a P.
func Define[P Payload](t EventType) Definition {
	return Definition{Type: t, payload: reflect.TypeFor[P]()}
}

// Registry knows the payload type of every event type. It is immutable and
// safe for concurrent use.
type Registry struct {
	types map[EventType]reflect.Type
	// byLength has the definitions in places of the length of their types. Few
	// types have one length, so that an event is checked without a hash of it.
	byLength [][]Definition
}

// NewRegistry returns a registry of the given definitions and of
// EventTypeMissed. The same definition may be given more than once.
func NewRegistry(defs ...Definition) (*Registry, error) {
	r := &Registry{types: map[EventType]reflect.Type{EventTypeMissed: reflect.TypeFor[MissedPayload]()}}
	for _, d := range defs {
		if d.Type == "" || d.payload == nil {
			return nil, fmt.Errorf("%w: a definition needs a type name and a payload; use Define", ErrUnknownType)
		}
		if have, ok := r.types[d.Type]; ok && have != d.payload {
			return nil, fmt.Errorf("%w: %q is %v and %v", ErrDuplicateType, d.Type, have, d.payload)
		}
		r.types[d.Type] = d.payload
	}
	for _, t := range r.Types() {
		for len(r.byLength) <= len(t) {
			r.byLength = append(r.byLength, nil)
		}
		r.byLength[len(t)] = append(r.byLength[len(t)], Definition{t, r.types[t]})
	}
	return r, nil
}

// payloadOf returns the payload type of an event type.
func (r *Registry) payloadOf(t EventType) (reflect.Type, bool) {
	if len(t) >= len(r.byLength) {
		return nil, false
	}
	for i := range r.byLength[len(t)] {
		if d := &r.byLength[len(t)][i]; d.Type == t {
			return d.payload, true
		}
	}
	return nil, false
}

// Types lists the registered event types, sorted.
func (r *Registry) Types() []EventType { return slices.Sorted(maps.Keys(r.types)) }

// Check returns ErrUnknownType or ErrWrongPayload when e does not fit the
// registry.
func (r *Registry) Check(e *Event) error {
	want, ok := r.payloadOf(e.Type)
	if !ok {
		return fmt.Errorf("%w: %q", ErrUnknownType, e.Type)
	}
	if got := reflect.TypeOf(e.Payload); got != want {
		return fmt.Errorf("%w: %q carries %v, not %v", ErrWrongPayload, e.Type, want, got)
	}
	return nil
}
