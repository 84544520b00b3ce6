package rawjson

import (
	"errors"
	"fmt"
)

// ErrSyntax is what every [SyntaxError] matches with errors.Is.
var ErrSyntax = errors.New("malformed JSON")

// ErrDuplicateKey is what every [DuplicateKeyError] matches with errors.Is.
var ErrDuplicateKey = errors.New("duplicate object key")

// ErrNotObject is returned by [Set] and [Delete] for a value that is no object.
var ErrNotObject = errors.New("not a JSON object")

// A SyntaxError says where a document stops being JSON. It never quotes the
// document.
type SyntaxError struct {
	// Offset is the byte offset at which the problem was seen.
	Offset int
	// Reason is what is wrong, such as "unexpected end of input".
	Reason string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("malformed JSON at offset %d: %s", e.Offset, e.Reason)
}

// Is reports whether target is [ErrSyntax].
func (e *SyntaxError) Is(target error) bool { return target == ErrSyntax }

// A DuplicateKeyError says that an object names a member twice. Keys are
// compared after their escapes are resolved.
type DuplicateKeyError struct {
	// Offset is the byte offset of the second key's opening quote.
	Offset int
	// Path is the JSON Pointer of the object that holds both, "" for the root.
	// Keys and the whole are bounded; a long one ends in an ellipsis.
	Path string
}

func (e *DuplicateKeyError) Error() string {
	return fmt.Sprintf("duplicate object key at offset %d in object %q", e.Offset, e.Path)
}

// Is reports whether target is [ErrDuplicateKey].
func (e *DuplicateKeyError) Is(target error) bool { return target == ErrDuplicateKey }

// A Fault is why a scan stopped. The zero value means that it did not.
type Fault uint8

// The faults of a scan.
const (
	FaultNone Fault = iota
	FaultEnd
	FaultValue
	FaultString
	FaultEscape
	FaultNumber
	FaultLiteral
	FaultColon
	FaultKey
	FaultSeparator
	FaultDepth
	FaultTrailing
	FaultUTF8
	FaultSize
	FaultDuplicate
)

// String describes the fault for a [SyntaxError].
func (f Fault) String() string {
	switch f {
	case FaultEnd:
		return "unexpected end of input"
	case FaultValue:
		return "expected a value"
	case FaultString:
		return "control character in a string"
	case FaultEscape:
		return "invalid escape in a string"
	case FaultNumber:
		return "invalid number"
	case FaultLiteral:
		return "expected true, false or null"
	case FaultColon:
		return "expected ':' after an object key"
	case FaultKey:
		return "expected a string as object key"
	case FaultSeparator:
		return "expected ',' or the closing bracket"
	case FaultDepth:
		return "nested too deeply"
	case FaultTrailing:
		return "unexpected data after the value"
	case FaultUTF8:
		return "invalid UTF-8"
	case FaultSize:
		return "document too large"
	case FaultDuplicate:
		return "duplicate object key"
	}
	return "no fault"
}
