package api

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/toolcrib/toolcrib/internal/nearest"
	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// field is one member that a request may have, and how to take its value.
type field struct {
	name string
	take func(at string, raw []byte) error
}

// decodeObject takes the members of a JSON object apart. A member that is not
// in fields, or is there twice, is refused with its place; null counts as
// absent.
func decodeObject(at string, raw []byte, fields []field) error {
	if rawjson.KindOf(raw) != rawjson.KindObject {
		return wrongKind(at, "an object", raw)
	}
	seen := make(map[string]bool, len(fields))
	it := rawjson.Object(raw)
	for it.Next() {
		key := it.Key()
		if seen[key] {
			return newError(CodeInvalidRequest, fmt.Sprintf("%s: the member is there twice", join(at, key)))
		}
		seen[key] = true
		if err := takeField(at, key, it.Value(), fields); err != nil {
			return err
		}
	}
	if err := it.Err(); err != nil {
		return newError(CodeInvalidRequest, place(at)+err.Error())
	}
	if rest := rawjson.Trim(raw[it.End():]); len(rest) > 0 {
		return newError(CodeInvalidRequest, fmt.Sprintf("%sunexpected data after the object, at offset %d", place(at), it.End()))
	}
	return nil
}

func takeField(at, key string, value []byte, fields []field) error {
	for _, f := range fields {
		if f.name != key {
			continue
		}
		if rawjson.KindOf(value) == rawjson.KindNull {
			return nil
		}
		return f.take(join(at, key), value)
	}
	return unknownMember(join(at, shorten(key)), key, fields)
}

func unknownMember(at, key string, fields []field) error {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return newError(CodeInvalidRequest, unknown(at+": unknown member", key, names))
}

// unknown is the message about a word that is none of known, with the one that
// was most likely meant.
func unknown(what, word string, known []string) string {
	if near, ok := nearest.Word(word, known); ok {
		what += fmt.Sprintf(", did you mean %q?", near)
	} else {
		what += "."
	}
	return what + " Expected: " + strings.Join(known, ", ")
}

// wrongKind says what stands in the place of what was expected, by its kind
// and never by its value.
func wrongKind(at, expected string, raw []byte) error {
	kind := rawjson.KindOf(raw)
	if kind == rawjson.KindInvalid || !rawjson.Valid(raw) {
		return newError(CodeInvalidRequest, place(at)+"malformed JSON, expected "+expected)
	}
	return newError(CodeInvalidRequest, fmt.Sprintf("%sexpected %s, found %s", place(at), expected, kind))
}

func takeString(dst *string) func(string, []byte) error {
	return func(at string, raw []byte) error {
		s, ok := rawjson.Unquote(raw)
		if !ok {
			return wrongKind(at, "a string", raw)
		}
		*dst = s
		return nil
	}
}

func takeStrings(dst *[]string) func(string, []byte) error {
	return func(at string, raw []byte) error {
		if rawjson.KindOf(raw) != rawjson.KindArray {
			return wrongKind(at, "an array of strings", raw)
		}
		it := rawjson.Array(raw)
		for it.Next() {
			s, ok := rawjson.Unquote(it.Value())
			if !ok {
				return wrongKind(fmt.Sprintf("%s[%d]", at, len(*dst)), "a string", it.Value())
			}
			*dst = append(*dst, s)
		}
		return it.Err()
	}
}

// takeCount takes an integer between 1 and most.
func takeCount(dst *int, most int) func(string, []byte) error {
	return func(at string, raw []byte) error {
		if rawjson.KindOf(raw) != rawjson.KindNumber {
			return wrongKind(at, "an integer", raw)
		}
		n, err := strconv.Atoi(string(raw))
		if err != nil || n < 1 || n > most {
			return newError(CodeInvalidRequest, fmt.Sprintf("%s: expected an integer from 1 to %d", at, most))
		}
		*dst = n
		return nil
	}
}

// takeSize takes an integer from 0 on.
func takeSize(dst *int64) func(string, []byte) error {
	return func(at string, raw []byte) error {
		if rawjson.KindOf(raw) != rawjson.KindNumber {
			return wrongKind(at, "an integer", raw)
		}
		n, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil || n < 0 {
			return newError(CodeInvalidRequest, at+": expected an integer from 0 on")
		}
		*dst = n
		return nil
	}
}

func takeBool(dst *bool) func(string, []byte) error {
	return func(at string, raw []byte) error {
		if rawjson.KindOf(raw) != rawjson.KindBool {
			return wrongKind(at, "true or false", raw)
		}
		*dst = raw[0] == 't'
		return nil
	}
}

// takeRaw keeps a value's bytes as they are.
func takeRaw(dst *[]byte) func(string, []byte) error {
	return func(_ string, raw []byte) error {
		*dst = raw
		return nil
	}
}

// takeObject keeps the bytes of an object as they are.
func takeObject(dst *[]byte) func(string, []byte) error {
	return func(at string, raw []byte) error {
		if rawjson.KindOf(raw) != rawjson.KindObject {
			return wrongKind(at, "an object", raw)
		}
		*dst = raw
		return nil
	}
}

func join(at, key string) string {
	if at == "" {
		return shorten(key)
	}
	return at + "." + shorten(key)
}

// place returns the beginning of a message about at.
func place(at string) string {
	if at == "" {
		return ""
	}
	return at + ": "
}

// shorten bounds what a message repeats of what a caller sent.
func shorten(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
