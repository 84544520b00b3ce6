package redisstream

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/toolcrib/toolcrib/registry/stream"
)

var (
	_ stream.Browser   = (*queue)(nil)
	_ stream.Annotator = (*queue)(nil)
)

// Browse implements [stream.Browser].
func (q *queue) Browse(ctx context.Context, after string, limit int) ([]stream.Kept, error) {
	if err := q.client.isClosed(); err != nil {
		return nil, err
	}
	from := "-"
	if after != "" {
		if !isEntryID(after) {
			return nil, fmt.Errorf("%w: %.40q is the ID of no event", stream.ErrInvalid, after)
		}
		from = "(" + after
	}
	if limit < 1 {
		return nil, nil // COUNT 0 is without end
	}
	value, err := q.send(ctx, &command{args: []any{"XRANGE", q.keys.stream, from, "+", "COUNT", limit}, waits: true, again: true})
	if err != nil {
		return nil, err
	}
	entries, _ := value.([]any)
	list := make([]stream.Kept, 0, len(entries))
	for _, item := range entries {
		entry, _ := item.([]any)
		if len(entry) < 2 {
			continue
		}
		id, _ := entry[0].(string)
		name, payload, note := fieldsOf(entry[1])
		if stream.CheckNote(note) != nil {
			note = ""
		}
		list = append(list, stream.Kept{ID: id, Name: name, Payload: []byte(payload), Added: added(id), Note: note})
	}
	return list, nil
}

// isEntryID reports whether a text is an entry's ID, such as 1526919030474-55.
func isEntryID(text string) bool {
	ms, seq, _ := strings.Cut(text, "-")
	for _, number := range []string{ms, seq} {
		if _, err := strconv.ParseUint(number, 10, 64); err != nil {
			return false
		}
	}
	return true
}

// fieldsOf returns the name and the payload of an entry, and the note beside it.
func fieldsOf(value any) (name, payload, note string) {
	fields := texts(value)
	for i := 0; i+1 < len(fields); i += 2 {
		switch fields[i] {
		case nameField:
			name = fields[i+1]
		case payloadField:
			payload = fields[i+1]
		case noteField:
			note = fields[i+1]
		}
	}
	return name, payload, note
}
