package stream

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	// ErrFull is returned by [Stream.Add] when the stream holds as many
	// events or bytes as it may. The event was not added. Room comes as
	// workers acknowledge.
	ErrFull = errors.New("stream: full")

	// ErrNoRoom is an ErrFull of the backend as a whole: its disk, its memory or
	// the bound of all its streams. Acknowledgements alone may not help.
	ErrNoRoom = fmt.Errorf("%w: the server has no room", ErrFull)

	// ErrTooLarge is returned for a payload over [Client.MaxPayload]. It was
	// not sent.
	ErrTooLarge = errors.New("stream: payload too large")

	// ErrUnavailable is returned when the backend cannot be reached, or broke
	// before it answered. Whether it acted is not known.
	ErrUnavailable = errors.New("stream: backend unavailable")

	// ErrNoResponder is returned by [Bus.Request] when nobody responds to
	// the subject.
	ErrNoResponder = errors.New("stream: nobody responds")

	// ErrConflict is returned by [Stream.Sink] for a second name or another
	// lease than the sink has.
	ErrConflict = errors.New("stream: conflicts with what is there")

	// ErrSettled is returned by the methods of a [Lease] that was settled.
	ErrSettled = errors.New("stream: already settled")

	// ErrLost is returned by [Lease.Extend] when the lease had ended.
	ErrLost = errors.New("stream: lease lost")

	// ErrClosed is returned once the sink drains or was closed, or the
	// client was closed.
	ErrClosed = errors.New("stream: closed")

	// ErrForbidden is returned for what the backend does not permit this
	// client's user. It was not done. The text names the subject or the key,
	// and what to permit.
	ErrForbidden = errors.New("stream: not permitted")

	// ErrInvalid is returned for names and options that are against the
	// rules. The text names what is wrong.
	ErrInvalid = errors.New("stream: invalid")
)

// MaxNameBytes is the length of the longest name of a stream, sink, event or
// subject.
const MaxNameBytes = 200

// MaxNoteBytes is the length of the longest note beside an event.
const MaxNoteBytes = 2048

// CheckNote returns ErrInvalid for a note that is not a line of UTF-8 of up to
// MaxNoteBytes, without control characters and without space at its ends.
func CheckNote(note string) error {
	switch {
	case len(note) > MaxNoteBytes:
		return fmt.Errorf("%w: the note has %d bytes, and at most %d are allowed", ErrInvalid, len(note), MaxNoteBytes)
	case !utf8.ValidString(note) || strings.ContainsFunc(note, unicode.IsControl):
		return fmt.Errorf("%w: the note is no line of UTF-8 without control characters", ErrInvalid)
	case strings.TrimSpace(note) != note:
		return fmt.Errorf("%w: the note begins or ends with space", ErrInvalid)
	}
	return nil
}

// CheckName returns ErrInvalid for a name that no backend takes. What names
// says in the error what kind of name it is, as "stream".
func CheckName(what, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: the name of the %s is empty", ErrInvalid, what)
	case len(name) > MaxNameBytes:
		return fmt.Errorf("%w: the name of the %s has %d bytes, and at most %d are allowed", ErrInvalid, what, len(name), MaxNameBytes)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: the name of the %s is not UTF-8", ErrInvalid, what)
	}
	return nil
}
