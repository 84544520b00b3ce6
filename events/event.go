// Package events says what happened: typed events on an in-process bus whose
// slow subscribers never hold up whoever publishes.
package events

import (
	"time"

	"github.com/toolcrib/toolcrib/identity"
)

// EventType names a kind of event, in dotted lower case such as "tool.invoked".
type EventType string

// Payload is the typed body of an event. A type becomes a payload by embedding
// SafeSealed, and thereby states that it holds no secrets, no argument bytes
// and no result bytes.
type Payload interface{ safePayload() }

// SafeSealed is embedded by every payload type.
type SafeSealed struct{}

func (SafeSealed) safePayload() {}

// Event is one thing that happened.
type Event struct {
	// Seq is the event's place in the order in which its bus accepted events,
	// starting at 1. The bus sets it.
	Seq uint64
	// Type names the kind of event and thereby the type of Payload.
	Type EventType
	// Time is when it happened; the bus fills it in when it is zero.
	Time time.Time
	// Identity is the caller on whose behalf it happened.
	Identity identity.Quadruple
	// Tool is the canonical name of the tool concerned, or empty.
	Tool string
	// CallID identifies the call concerned, or is empty.
	CallID string
	// Payload is never changed after the event was published.
	Payload Payload
}

// EventTypeMissed tells a subscriber how many events it was too slow for. It
// takes the place of the events that it counts.
const EventTypeMissed EventType = "events.missed"

// MissedPayload is the payload of EventTypeMissed.
type MissedPayload struct {
	SafeSealed
	// Count is how many matching events were dropped since the last one that
	// was delivered.
	Count uint64 `json:"count"`
}

// Filter selects events. An empty field matches everything.
type Filter struct {
	Types []EventType
	// Tools lists canonical tool names.
	Tools []string
	// TenantID, UserID and SessionID match the event's identity.
	TenantID, UserID, SessionID string
}

// Match reports whether e is selected.
func (f *Filter) Match(e *Event) bool {
	return matchAny(f.Types, e.Type) && matchAny(f.Tools, e.Tool) &&
		matchOne(f.TenantID, e.Identity.TenantID) &&
		matchOne(f.UserID, e.Identity.UserID) &&
		matchOne(f.SessionID, e.Identity.SessionID)
}

func matchOne(want, got string) bool { return want == "" || want == got }

func matchAny[T comparable](want []T, got T) bool {
	if len(want) == 0 {
		return true
	}
	for _, w := range want {
		if w == got {
			return true
		}
	}
	return false
}
