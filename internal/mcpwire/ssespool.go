package mcpwire

import (
	"bytes"
	"errors"
)

// errSpooledLine says that a line of data went to the spool of its event.
var errSpooledLine = errors.New("mcpwire: the line is on the disk")

var dataField = []byte("data:")

// spills reports whether the line that begins with long and goes on with part
// belongs to the spool of the event, and opens that.
func (r *EventReader) spills(long *chunks, part []byte) bool {
	if r.spooled == nil && (r.spill == nil || int64(r.data.size+long.size+len(part)) <= r.above) {
		return false
	}
	line := part
	switch {
	case len(long.full) > 0:
		line = long.full[0]
	case len(long.last) > 0:
		line = long.last
	}
	value, ok := bytes.CutPrefix(line, dataField)
	if !ok {
		return false // of another field, or not enough of it yet
	}
	if r.spooled != nil {
		return true
	}
	if r.lines > 0 {
		value = r.data.last
		if len(r.data.full) > 0 {
			value = r.data.full[0]
		}
	}
	if !startsObject(value) {
		return false
	}
	r.spooled = r.spill()
	return r.spooled != nil
}

// spoolRest writes a line of data to the spool of the event, after what there is
// of its data in memory. The line begins with long and goes on with chunk, which
// is what has been read ahead; end is where it ends there, or -1.
func (r *EventReader) spoolRest(long *chunks, chunk []byte, end int) error {
	if r.data.size > 0 {
		r.spooled.write(r.data.take())
	}
	take := upTo(chunk, end)
	long.write(chunk[:take])
	value := bytes.TrimPrefix(long.take(), dataField)
	r.spoolLine(bytes.TrimPrefix(value, []byte{' '}))
	for end < 0 {
		r.discard(take)
		var err error
		if chunk, err = r.buffered(); err != nil {
			return err
		}
		end = lineEnd(chunk)
		take = upTo(chunk, end)
		r.spooled.write(chunk[:take])
	}
	r.skipLF = chunk[end] == '\r'
	r.discard(end + 1)
	return errSpooledLine
}

// upTo is how much of what has been read ahead belongs to a line.
func upTo(chunk []byte, end int) int {
	if end < 0 {
		return len(chunk)
	}
	return end
}

// spoolLine begins a line of data in the spool of the event.
func (r *EventReader) spoolLine(value []byte) {
	if r.lines > 0 {
		r.spooled.write([]byte{'\n'})
	}
	r.lines++
	r.spooled.write(value)
}

// unspool drops the spool of an event that does not come to its end.
func (r *EventReader) unspool() {
	r.spooled.close()
	r.spooled = nil
}
