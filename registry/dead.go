package registry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/store"
)

// MaxDeadLetters bounds a page of dead letters.
const MaxDeadLetters = 200

// DeadLetter is a message that the workers of a toolset could not serve, without the
// arguments of the call that it may have been.
type DeadLetter struct {
	Toolset string `json:"toolset"`
	// ID names it on the stream of the toolset's dead letters, DeadStream.
	ID string `json:"id"`
	// Kept is when it came there.
	Kept time.Time `json:"kept"`
	// Reason says to a person why it was not served: what the worker said that gave it
	// up, or else what the message shows.
	Reason string `json:"reason"`
	// Deliveries is how many times it was given to workers, and Instance the worker
	// that gave it up. They are 0 and empty where no worker said so.
	Deliveries int    `json:"deliveries,omitempty"`
	Instance   string `json:"instance,omitempty"`
	// Bytes is the size of the message.
	Bytes int `json:"bytes"`
	// ToolUseID and what follows are the message's own, where it could be read.
	ToolUseID  string `json:"tool_use_id,omitempty"`
	Tool       string `json:"tool,omitempty"`
	TenantID   string `json:"tenant_id,omitempty"`
	UserID     string `json:"user_id,omitempty"`
	SessionID  string `json:"session_id,omitempty"`
	RunID      string `json:"run_id,omitempty"`
	TurnID     string `json:"turn_id,omitempty"`
	ToolCallID string `json:"tool_call_id,omitempty"`
}

// DeadNote is what a worker keeps beside a message that it gives up. Whoever may add
// to a toolset's stream of dead letters can write one.
type DeadNote struct {
	// Reason says to a person why.
	Reason string `json:"reason"`
	// Deliveries is how many times the message was given to workers.
	Deliveries int `json:"deliveries,omitzero"`
	// Instance is the worker.
	Instance string `json:"instance,omitzero"`
}

// maxDeadReason bounds the reason of a dead letter, in bytes.
const maxDeadReason = 512

// KeepDead adds a message that no worker could serve to the stream of a toolset's dead
// letters, as it is, with a note beside it where the backend takes notes. A reason is cut after
// 512 bytes.
func KeepDead(ctx context.Context, client stream.Client, toolset, name string, payload []byte, note DeadNote) error {
	s, err := client.Stream(ctx, DeadStream(toolset), nil) // its bound is the gateway's to set
	if err != nil {
		return err
	}
	text, err := note.encode()
	if a, ok := s.(stream.Annotator); ok && err == nil && stream.CheckNote(text) == nil {
		_, err = a.AddNoted(ctx, name, payload, text)
		return err
	}
	_, err = s.Add(ctx, name, payload)
	return err
}

func (n DeadNote) encode() (string, error) {
	n.Reason, n.Instance = line(n.Reason, maxDeadReason), line(n.Instance, MaxIDBytes)
	text, err := Encode(n)
	return string(text), err
}

// decodeDeadNote reads a note, and cuts what somebody else than a worker may have
// written at any length. ok is false where there is none.
func decodeDeadNote(text string) (n DeadNote, ok bool) {
	if text == "" || decode([]byte(text), &n) != nil {
		return DeadNote{}, false
	}
	n.Reason, n.Instance, n.Deliveries = line(n.Reason, maxDeadReason), line(n.Instance, MaxIDBytes), max(n.Deliveries, 0)
	return n, n.Reason != ""
}

// line makes a text a line of at most so many bytes, without control characters.
func line(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most-len("…")], "") + "…"
	}
	return strings.TrimSpace(text)
}

// DeadLetterPage is a part of the dead letters.
type DeadLetterPage struct {
	Letters []DeadLetter `json:"dead_letters"`
	// Next, when it is not empty, is what to give as After for the letters that follow.
	Next string `json:"next,omitempty"`
}

// DeadLetterQuery says which dead letters are wanted.
type DeadLetterQuery struct {
	// Toolset is the one whose letters are wanted, also one that was forgotten. Empty
	// means all toolsets of now.
	Toolset string
	// After is the Next of the page before, or empty.
	After string
	// Limit is how many letters the page has at most. 0, and more than that, mean
	// MaxDeadLetters.
	Limit int
}

// DeadLetters returns the messages that workers could not serve and that are kept:
// by toolset, the oldest of each first. They stay where they are. It is for
// administrators, as it shows calls of all tenants. It returns an error that wraps
// store.ErrNotFound for a toolset that is not known and has none.
func (r *Registry) DeadLetters(ctx context.Context, q DeadLetterQuery) (DeadLetterPage, error) {
	page := DeadLetterPage{Letters: []DeadLetter{}}
	names, err := r.withDead(q.Toolset)
	if err != nil {
		return page, err
	}
	limit := q.Limit
	if limit <= 0 || limit > MaxDeadLetters {
		limit = MaxDeadLetters
	}
	at, after, continued := strings.Cut(q.After, "/")
	if q.After != "" && (!continued || CheckToolset(at) != nil) {
		return page, fmt.Errorf("%w: %.80q is not where a page of dead letters ended", ErrInvalid, q.After)
	}
	for _, name := range names {
		from := ""
		if name < at {
			continue
		} else if name == at {
			from = after
		}
		list, err := r.browseDead(ctx, name, from, limit+1-len(page.Letters))
		if err != nil {
			return page, err
		}
		if page.Letters = append(page.Letters, list...); len(page.Letters) > limit {
			last := page.Letters[limit-1]
			page.Letters, page.Next = page.Letters[:limit], last.Toolset+"/"+last.ID
			return page, nil
		}
	}
	if q.Toolset != "" && q.After == "" && len(page.Letters) == 0 && !r.knows(q.Toolset) {
		return page, fmt.Errorf("registry: there is no toolset %q: %w", q.Toolset, store.ErrNotFound)
	}
	return page, nil
}

// withDead names the toolsets whose dead letters are wanted, sorted.
func (r *Registry) withDead(only string) ([]string, error) {
	if only != "" {
		return []string{only}, CheckToolset(only)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.toolsets)), nil
}

func (r *Registry) knows(toolset string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.toolsets[toolset] != nil
}

// browseDead reads from a toolset's stream of dead letters.
func (r *Registry) browseDead(ctx context.Context, toolset, after string, limit int) ([]DeadLetter, error) {
	s, err := r.client.Stream(ctx, DeadStream(toolset), nil) // one that is not there is not made
	if err != nil {
		return nil, err
	}
	b, ok := s.(stream.Browser)
	if !ok {
		return nil, fmt.Errorf("registry: the backend's streams cannot be looked at: %w", errors.ErrUnsupported)
	}
	kept, err := b.Browse(ctx, after, limit)
	if err != nil {
		return nil, fmt.Errorf("registry: the dead letters of toolset %q cannot be read: %w", toolset, err)
	}
	list := make([]DeadLetter, 0, len(kept))
	for i := range kept {
		list = append(list, deadLetter(toolset, &kept[i]))
	}
	return list, nil
}

// deadLetter describes a message that was not served.
func deadLetter(toolset string, e *stream.Kept) DeadLetter {
	d := DeadLetter{Toolset: toolset, ID: e.ID, Kept: e.Added, Bytes: len(e.Payload),
		Reason: "workers took it again and again and none answered it, or its answer could not be delivered"}
	m, err := DecodeCall(e.Payload)
	if err != nil {
		d.Reason = "it cannot be served: " + strings.TrimPrefix(err.Error(), ErrInvalid.Error()+": ")
	}
	if n, ok := decodeDeadNote(e.Note); ok {
		d.Reason, d.Deliveries, d.Instance = n.Reason, n.Deliveries, n.Instance
	}
	d.ToolUseID, d.Tool = brief(m.ToolUseID), brief(m.Tool)
	if m.Meta != nil {
		d.TenantID, d.UserID, d.SessionID = brief(m.Meta.TenantID), brief(m.Meta.UserID), brief(m.Meta.SessionID)
		d.RunID, d.TurnID, d.ToolCallID = brief(m.Meta.RunID), brief(m.Meta.TurnID), brief(m.Meta.ToolCallID)
	}
	return d
}

// brief cuts what a message that is wrong may have at any length.
func brief(text string) string {
	if len(text) > MaxIDBytes {
		return strings.ToValidUTF8(text[:MaxIDBytes], "") + "…"
	}
	return text
}
