package adapter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// maxStream bounds what one streamed response may hold, in bytes.
const maxStream = 64 << 20

// Stream puts the events of one streamed response together. It is for one
// goroutine.
type Stream struct {
	d        *Declarations
	asm      assembler
	received int
	calls    int
	closed   bool
}

// An assembler puts the events of one provider together.
type assembler interface {
	// add takes an event and returns the calls that are whole with it.
	add(event []byte) ([]rawCall, error)
	// rest returns the calls that are not whole yet.
	rest() []rawCall
	// response returns what came so far as a response that was not streamed.
	response() json.RawMessage
}

// Stream returns an assembler for one streamed response.
func (d *Declarations) Stream() *Stream { return &Stream{d: d, asm: d.adapter.wire.assembler()} }

// Add takes the data of one event, a JSON object as the provider streams it, and
// returns the calls that have become whole with it. For Bedrock that is the event
// with its name around it, as in {"contentBlockStop":{…}}. The word [DONE] with
// which OpenAI ends a stream is taken and means nothing. The error is about an
// event that is none, or that the provider sends to say that it failed.
func (s *Stream) Add(event json.RawMessage) ([]Call, error) {
	event = bytes.TrimSpace(event)
	if string(event) == "[DONE]" || len(event) == 0 {
		return nil, nil
	}
	if s.received += len(event); s.received > maxStream {
		return nil, fmt.Errorf("adapter: the stream of %s exceeds %d bytes", s.d.adapter.provider, maxStream)
	}
	if err := rawjson.Check(event, rawjson.Options{AllowDuplicates: true}); err != nil {
		return nil, fmt.Errorf("adapter: an event of %s is %w", s.d.adapter.provider, err)
	}
	whole, err := s.asm.add(bytes.Clone(event))
	if err != nil {
		return nil, fmt.Errorf("adapter: the stream of %s: %w", s.d.adapter.provider, err)
	}
	return s.mapped(whole), nil
}

func (s *Stream) mapped(raw []rawCall) []Call {
	var calls []Call
	for _, c := range raw {
		calls = append(calls, s.d.call(s.calls, c))
		s.calls++
	}
	return calls
}

// Close ends the stream and returns the calls that began and did not become
// whole, with an Err that says so.
func (s *Stream) Close() []Call {
	if s.closed {
		return nil
	}
	s.closed = true
	rest := s.asm.rest()
	for i := range rest {
		rest[i].cut = true
	}
	return s.mapped(rest)
}

// Response returns what came so far in the form of a response that was not
// streamed, for Declarations.Reply.
func (s *Stream) Response() json.RawMessage { return s.asm.response() }

// failure returns the error that an event reports, or nil.
func failure(event []byte) error {
	e := get(event, "error")
	if rawjson.KindOf(e) != rawjson.KindObject {
		return nil
	}
	message := text(e, "message")
	if kind := text(e, "type"); kind != "" {
		message = kind + ": " + message
	}
	return errors.New("the provider says: " + clip(message))
}

// number returns an integer below an object, and whether there is one.
func number(obj []byte, path ...string) (int, bool) {
	v := get(obj, path...)
	if rawjson.KindOf(v) != rawjson.KindNumber {
		return 0, false
	}
	var n int
	return n, json.Unmarshal(v, &n) == nil
}

// inputOf returns arguments that are whole and well-formed as they are. Any others
// become a text, which is no arguments, so that nobody takes them for some.
func inputOf(args []byte, whole bool) json.RawMessage {
	if !whole || rawjson.KindOf(args) != rawjson.KindObject || rawjson.Check(args, rawjson.Options{AllowDuplicates: true}) != nil {
		return rawjson.Quote(string(args))
	}
	return args
}

// withElements returns an array with what change makes of its elements; one of
// which nothing changes stays byte for byte.
func withElements(array []byte, change func(element []byte) []byte) []byte {
	out := []byte{'['}
	changed := false
	for i, element := range elements(array) {
		next := change(element)
		changed = changed || !bytes.Equal(next, element)
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, next...)
	}
	if !changed {
		return array
	}
	return append(out, ']')
}

// withInput returns a tool use of a history, where the provider wants an object
// for the arguments whatever they were.
func withInput(use []byte) []byte {
	if rawjson.KindOf(get(use, "input")) == rawjson.KindObject {
		return use
	}
	fixed, err := rawjson.Set(use, "input", []byte(`{}`))
	if err != nil {
		return use
	}
	return fixed
}
