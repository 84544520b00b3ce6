package mcpwire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// ID is the identifier of a request as it stands in the message, such as 7 or
// "a": raw JSON, so that an answer repeats it byte for byte. The empty ID is
// that of a message which has none.
type ID string

// key is what two spellings of one identifier have in common.
func (id ID) key() ID {
	if len(id) < 2 || id[0] != '"' || !bytes.ContainsRune([]byte(id), '\\') {
		return id
	}
	s, ok := rawjson.Unquote([]byte(id))
	if !ok {
		return id
	}
	return ID(rawjson.AppendQuoted(nil, s))
}

// Kind says what a message is.
type Kind uint8

const (
	// KindRequest has a method and an id and wants an answer.
	KindRequest Kind = iota + 1
	// KindNotification has a method and no id.
	KindNotification
	// KindResult answers a request.
	KindResult
	// KindError answers a request with an error.
	KindError
)

// Frame is one JSON-RPC message whose parts are slices of its bytes.
type Frame struct {
	Kind   Kind
	ID     ID
	Method string
	Params json.RawMessage // nil when absent
	Result json.RawMessage // of KindResult
	Error  json.RawMessage // of KindError: the error object

	nullID bool
}

// ScanFrame reads one message. The bytes are checked to be JSON, and members
// that it does not know are left alone. Errors are [*Error] values ready to be
// sent: [CodeParseError] for what is not JSON, [CodeInvalidRequest] for JSON
// that is no message. Where the id could still be read, the frame has it.
func ScanFrame(data []byte) (Frame, error) {
	var f Frame
	if rawjson.KindOf(data) != rawjson.KindObject {
		return f, notAMessage(data)
	}
	version := false
	var seen seenMembers
	it := rawjson.Object(data)
	for it.Next() {
		if err := seen.once(&it, &f); err != nil {
			return f, err
		}
		if err := f.member(&it, &version); err != nil {
			return f, err
		}
	}
	if err := it.Err(); err != nil {
		return f, Errorf(CodeParseError, "parse error: %v", err)
	}
	if end := rawjson.SkipSpace(data, it.End()); end != len(data) {
		return f, Errorf(CodeParseError, "parse error: more after the message at offset %d", end)
	}
	if !version {
		return f, Errorf(CodeInvalidRequest, `invalid request: "jsonrpc" must be "2.0"`)
	}
	return f, f.classify()
}

// scanIncoming is ScanFrame for what a client sends. The id null is neither
// that of a request nor left out, as it is from a notification.
func scanIncoming(data []byte) (Frame, error) {
	f, err := ScanFrame(data)
	if err == nil && f.nullID && f.Method != "" {
		err = Errorf(CodeInvalidRequest, `invalid request: "id" must not be null; a notification has none`)
	}
	return f, err
}

// seenMembers are those of the members that decide what a request does and
// that stood in the message already: two readers could each take another.
type seenMembers struct{ id, method, params bool }

func (s *seenMembers) once(it *rawjson.Iter, f *Frame) error {
	var before *bool
	switch {
	case it.KeyIs("id"):
		before = &s.id
	case it.KeyIs("method"):
		before = &s.method
	case it.KeyIs("params"):
		before = &s.params
	default:
		return nil
	}
	if !*before {
		*before = true
		return nil
	}
	if before == &s.id {
		f.ID = ""
	}
	return Errorf(CodeInvalidRequest, "invalid request: the member %q is there twice", it.Key())
}

func notAMessage(data []byte) error {
	if err := rawjson.Check(data, rawjson.Options{AllowDuplicates: true, AllowInvalidUTF8: true}); err != nil {
		return Errorf(CodeParseError, "parse error: %v", err)
	}
	if rawjson.KindOf(data) == rawjson.KindArray {
		return Errorf(CodeInvalidRequest, "invalid request: batches exist in revision %s only", Version20250326)
	}
	return Errorf(CodeInvalidRequest, "invalid request: a message is a JSON object")
}

func (f *Frame) member(it *rawjson.Iter, version *bool) error {
	switch {
	case it.KeyIs("id"):
		return f.setID(it.Value())
	case it.KeyIs("method"):
		method, ok := rawjson.Unquote(it.Value())
		if !ok {
			return Errorf(CodeInvalidRequest, `invalid request: "method" must be a string`)
		}
		f.Method = intern(method)
	case it.KeyIs("params"):
		f.Params = it.Value()
		if string(f.Params) == "null" {
			f.Params = nil
		}
	case it.KeyIs("result"):
		f.Result = it.Value()
	case it.KeyIs("error"):
		f.Error = it.Value()
	case it.KeyIs("jsonrpc"):
		*version = string(it.Value()) == `"2.0"`
	}
	return nil
}

func (f *Frame) setID(v []byte) error {
	switch rawjson.KindOf(v) {
	case rawjson.KindString, rawjson.KindNumber:
		f.ID = ID(v)
	case rawjson.KindNull: // the id of an answer to a request that could not be read
		f.nullID = true
	default:
		return Errorf(CodeInvalidRequest, `invalid request: "id" must be a string or a number`)
	}
	return nil
}

func (f *Frame) classify() error {
	switch {
	case f.Method != "" && f.ID != "":
		f.Kind = KindRequest
	case f.Method != "":
		f.Kind = KindNotification
	case f.Error != nil && string(f.Error) != "null":
		f.Kind = KindError
	case f.Result != nil && f.ID != "":
		f.Kind = KindResult
	default:
		return Errorf(CodeInvalidRequest, `invalid request: a message has a "method", a "result" or an "error"`)
	}
	if k := rawjson.KindOf(f.Params); f.Params != nil && k != rawjson.KindObject && k != rawjson.KindArray {
		return Errorf(CodeInvalidRequest, `invalid request: "params" must be an object`)
	}
	return nil
}

// SplitBatch returns the messages of data: its elements when it is an array,
// else data itself. An empty array is refused, as JSON-RPC demands.
func SplitBatch(data []byte) (messages []json.RawMessage, batch bool, err error) {
	if rawjson.KindOf(data) != rawjson.KindArray {
		return []json.RawMessage{data}, false, nil
	}
	it := rawjson.Array(data)
	for it.Next() {
		messages = append(messages, it.Value())
	}
	if err := it.Err(); err != nil {
		return nil, true, Errorf(CodeParseError, "parse error: %v", err)
	}
	if len(messages) == 0 {
		return nil, true, Errorf(CodeInvalidRequest, "invalid request: empty batch")
	}
	return messages, true, nil
}

// AppendRequest appends a request, or a notification when id is empty.
func AppendRequest(dst []byte, id ID, method string, params json.RawMessage) []byte {
	dst = append(dst, `{"jsonrpc":"2.0",`...)
	if id != "" {
		dst = append(dst, `"id":`...)
		dst = append(dst, id...)
		dst = append(dst, ',')
	}
	dst = append(dst, `"method":`...)
	dst = rawjson.AppendQuoted(dst, method)
	if params != nil {
		dst = append(dst, `,"params":`...)
		dst = append(dst, params...)
	}
	return append(dst, '}')
}

// AppendResult appends the answer to a request; a nil result is {}.
func AppendResult(dst []byte, id ID, result json.RawMessage) []byte {
	dst = appendAnswer(dst, id)
	dst = append(dst, `"result":`...)
	if result == nil {
		dst = append(dst, "{}"...)
	} else {
		dst = append(dst, result...)
	}
	return append(dst, '}')
}

// AppendErrorAnswer appends the error answer to a request; the empty id, of a
// request that could not be read, is written as null.
func AppendErrorAnswer(dst []byte, id ID, e *Error) []byte {
	dst = appendAnswer(dst, id)
	dst = append(dst, `"error":`...)
	dst = appendError(dst, e)
	return append(dst, '}')
}

func appendAnswer(dst []byte, id ID) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	if id == "" {
		dst = append(dst, "null"...)
	} else {
		dst = append(dst, id...)
	}
	return append(dst, ',')
}

// An answer is the answer to a request, in the parts that it is written in.
type answer struct {
	head   []byte // up to the result, or the whole of an error
	result json.RawMessage
}

func newAnswer(id ID, result json.RawMessage, err error) *answer {
	if err != nil {
		return &answer{head: AppendErrorAnswer(nil, id, asError(err))}
	}
	if result == nil {
		result = json.RawMessage("{}")
	}
	head := appendAnswer(make([]byte, 0, len(id)+40), id)
	return &answer{head: append(head, `"result":`...), result: result}
}

var closingBrace = []byte{'}'}

// parts returns the pieces of the message.
func (a *answer) parts() [][]byte {
	if a.result == nil {
		return [][]byte{a.head}
	}
	return [][]byte{a.head, a.result, closingBrace}
}

func (a *answer) size() int { return len(a.head) + len(a.result) + 1 }

// bytes returns the message in one piece.
func (a *answer) bytes() []byte {
	return bytes.Join(a.parts(), nil)
}

// oneLine returns msg without line breaks, for transports whose messages end
// at one. JSON allows them between tokens only, where a space serves as well.
func oneLine(msg []byte) []byte {
	if bytes.IndexByte(msg, '\n') < 0 && bytes.IndexByte(msg, '\r') < 0 {
		return msg
	}
	out := make([]byte, len(msg))
	for i, c := range msg {
		if c == '\n' || c == '\r' {
			c = ' '
		}
		out[i] = c
	}
	return out
}

// checkRaw refuses params and results that a caller handed in and that would
// corrupt the stream.
func checkRaw(what string, v json.RawMessage) error {
	if v == nil || rawjson.Valid(v) {
		return nil
	}
	return fmt.Errorf("mcpwire: %s is not JSON", what)
}

var errNotObject = errors.New("mcpwire: params must be a JSON object")

// intern spares the allocation of the method names that most messages carry.
func intern(method string) string {
	switch method {
	case "tools/call":
		return "tools/call"
	case "tools/list":
		return "tools/list"
	}
	return method
}
