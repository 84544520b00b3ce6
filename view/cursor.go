package view

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/toolcrib/toolcrib/tools"
)

// ErrCursor is returned for a cursor that no page ended with.
var ErrCursor = errors.New("view: invalid cursor: expected one that the page before returned")

// A cursor is the name that a page ended with, after a checksum that tells a
// cursor from anything else. It needs no protection from forgery: whatever
// name it holds, a page shows only what the caller sees.
func newCursor(last string) string {
	raw := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(last)))
	return base64.RawURLEncoding.EncodeToString(append(raw, last...))
}

// maxCursor bounds a cursor, in bytes: a checksum and a name, in base64.
const maxCursor = 256

// parseCursor returns the name that the page before ended with, "" for the
// start.
func parseCursor(cursor string) (last string, err error) {
	if cursor == "" {
		return "", nil
	}
	if len(cursor) > maxCursor {
		return "", ErrCursor
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(raw) < 4 {
		return "", ErrCursor
	}
	last = string(raw[4:])
	if binary.BigEndian.Uint32(raw) != crc32.ChecksumIEEE(raw[4:]) || tools.CheckName(last) != nil {
		return "", ErrCursor
	}
	return last, nil
}
