package mcpwire

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// Codes of JSON-RPC errors, those of the JSON-RPC specification first and
// those that MCP adds after them.
const (
	CodeParseError     = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternalError  = -32603

	// CodeResourceNotFound is what revisions before 2026-07-28 answer for an
	// unknown resource; later ones use [CodeInvalidParams].
	CodeResourceNotFound = -32002
	// CodeHeaderMismatch says that an HTTP header contradicts the message.
	CodeHeaderMismatch = -32020
	// CodeMissingCapability says that a request needs a capability that the
	// client did not declare.
	CodeMissingCapability = -32021
	// CodeUnsupportedVersion says that the revision asked for is not spoken;
	// the data lists those that are.
	CodeUnsupportedVersion = -32022
	// CodeURLElicitationRequired says that a person must visit an URL first.
	CodeURLElicitationRequired = -32042
	// CodeRequestCancelled answers a request that its sender cancelled.
	CodeRequestCancelled = -32800
)

// Error is a JSON-RPC error. One that a peer sent keeps every byte of it, so
// that it can be relayed whole; make a new one instead of changing its fields.
type Error struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`

	raw json.RawMessage
}

// Raw returns the error object as the peer sent it, which is what is relayed; nil
// for an error that was made here.
func (e *Error) Raw() json.RawMessage { return e.raw }

// Error returns the message and the code.
func (e *Error) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }

// Is reports whether target is an [*Error] of the same code, so that
// errors.Is(err, &Error{Code: CodeMethodNotFound}) asks for a code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && (t.Message == "" || t.Message == e.Message)
}

// Errorf returns an error of the given code whose message is formatted.
func Errorf(code int64, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// NewError returns an error whose data is the JSON of data; nil leaves data
// out, and so does a value that has no JSON.
func NewError(code int64, message string, data any) *Error {
	e := &Error{Code: code, Message: message}
	if data == nil {
		return e
	}
	if b, err := json.Marshal(data); err == nil {
		e.Data = b
	}
	return e
}

// ParseError reads the error member of a response. An error object is kept as it
// is, with the zero value for a code or a message that is missing or cannot be
// read, such as a code that is no 64-bit integer.
func ParseError(raw json.RawMessage) *Error {
	e := &Error{raw: raw}
	it := rawjson.Object(raw)
	for it.Next() {
		switch {
		case it.KeyIs("code"):
			e.Code = errorCode(it.Value())
		case it.KeyIs("message"):
			e.Message, _ = rawjson.Unquote(it.Value())
		case it.KeyIs("data"):
			e.Data = it.Value()
		}
	}
	if it.Err() != nil {
		return &Error{Code: CodeInternalError, Message: "the peer answered with a malformed error object", Data: quoteRaw(raw)}
	}
	return e
}

// errorCode reads an integer in any of its spellings, such as -32000.0.
func errorCode(raw json.RawMessage) int64 {
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<63 {
		return 0
	}
	return int64(f)
}

// appendError writes the error object.
func appendError(dst []byte, e *Error) []byte {
	if e.raw != nil {
		return append(dst, e.raw...)
	}
	b, err := json.Marshal(e)
	if err != nil { // only Data can be refused, when it is not JSON
		b, _ = json.Marshal(&Error{Code: e.Code, Message: e.Message})
	}
	return append(dst, b...)
}

// asError turns what a handler returned into the error that is sent.
func asError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: CodeInternalError, Message: err.Error()}
}

// unsupportedVersion is the answer to a revision that is not spoken.
func unsupportedVersion(requested string) *Error {
	return NewError(CodeUnsupportedVersion,
		fmt.Sprintf("protocol version %q is not supported", requested),
		struct {
			Supported []string `json:"supported"`
			Requested string   `json:"requested"`
		}{Versions(), requested})
}

func quoteRaw(raw []byte) json.RawMessage {
	b, _ := json.Marshal(string(raw))
	return b
}
