package schema

import (
	"errors"
	"fmt"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// Sentinels of this package, to be asked for with errors.Is.
var (
	// ErrInvalid is matched by every [*Error]: the document does not satisfy
	// the schema.
	ErrInvalid = errors.New("does not match the schema")
	// ErrMalformed is matched by the [*DocumentError] for bytes that are not
	// one JSON value in valid UTF-8, or one that is nested too deeply.
	ErrMalformed = errors.New("malformed JSON")
	// ErrDuplicateKey is matched by the [*DocumentError] for an object that
	// names a member twice, at any depth.
	ErrDuplicateKey = errors.New("duplicate object key")
	// ErrCompile is matched by every [*CompileError].
	ErrCompile = errors.New("invalid schema")
)

// A Violation is one place where a document does not satisfy its schema. It
// holds nothing of the document but, in Path and for an unexpected property in
// Expected, property names, each cut to 64 bytes.
type Violation struct {
	// Path is the JSON Pointer (RFC 6901) of the value, "" for the whole
	// document, cut to 256 bytes.
	Path string
	// Keyword is the keyword of the schema that was not satisfied, such as
	// "type" or "required".
	Keyword string
	// Expected says in words what the schema asks for, such as
	// `missing required property "city"`.
	Expected string
}

// MaxViolations is how many violations an [*Error] lists at most.
const MaxViolations = 5

// Error says where and how a document does not satisfy a schema. Its text is
// short and holds no value of the document.
type Error struct {
	// Violations has at least one and at most [MaxViolations] elements, in the
	// order of the document.
	Violations []Violation
}

// Error lists the violations, separated by "; ".
func (e *Error) Error() string {
	var sb strings.Builder
	for i, v := range e.Violations {
		if i > 0 {
			sb.WriteString("; ")
		}
		if v.Path != "" {
			sb.WriteString(v.Path)
			sb.WriteString(": ")
		}
		sb.WriteString(v.Expected)
	}
	return sb.String()
}

// Is reports whether target is [ErrInvalid].
func (e *Error) Is(target error) bool { return target == ErrInvalid }

// A DocumentError says that a document is not JSON that can be checked. It
// matches [ErrMalformed] or [ErrDuplicateKey].
type DocumentError struct {
	// Kind is ErrMalformed or ErrDuplicateKey.
	Kind error
	// Offset is the byte offset of the problem.
	Offset int
	// Path is the JSON Pointer of the object with the duplicate key.
	Path string
	// Reason says more, such as "unexpected end of input".
	Reason string
}

func (e *DocumentError) Error() string {
	return fmt.Sprintf("%v at offset %d: %s", e.Kind, e.Offset, e.Reason)
}

// Unwrap returns Kind.
func (e *DocumentError) Unwrap() error { return e.Kind }

// documentError turns an error of rawjson into one of this package.
func documentError(err error) error {
	var dup *rawjson.DuplicateKeyError
	if errors.As(err, &dup) {
		where := "in the root object"
		if dup.Path != "" {
			where = "in the object at " + dup.Path
		}
		return &DocumentError{Kind: ErrDuplicateKey, Offset: dup.Offset, Path: dup.Path, Reason: where}
	}
	var syntax *rawjson.SyntaxError
	if errors.As(err, &syntax) {
		return &DocumentError{Kind: ErrMalformed, Offset: syntax.Offset, Reason: syntax.Reason}
	}
	return &DocumentError{Kind: ErrMalformed, Reason: err.Error()}
}

// A CompileError says why a schema cannot be used and where.
type CompileError struct {
	// Path is the JSON Pointer of the place in the schema, "" when it concerns
	// the whole of it or when Reason names the place.
	Path string
	// Reason says what is wrong.
	Reason string
	// Err is the cause, if there is one.
	Err error
}

func (e *CompileError) Error() string {
	if e.Path == "" {
		return "invalid schema: " + e.Reason
	}
	return fmt.Sprintf("invalid schema at %s: %s", e.Path, e.Reason)
}

// Is reports whether target is [ErrCompile].
func (e *CompileError) Is(target error) bool { return target == ErrCompile }

// Unwrap returns the cause.
func (e *CompileError) Unwrap() error { return e.Err }
