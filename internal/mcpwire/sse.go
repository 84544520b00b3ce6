package mcpwire

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"sync"
	"time"
)

// Event is one server-sent event.
type Event struct {
	ID   string
	Name string // "" is "message"
	Data []byte
	// Retry is the reconnection delay that the event asks for, if HasRetry.
	Retry    time.Duration
	HasRetry bool

	spooled *spool // the data, where it was too long for memory
}

// EventReader reads server-sent events as the WHATWG standard defines them:
// lines end in LF, CR or CRLF, a byte order mark is skipped, comments and
// unknown fields are ignored. It is for one goroutine.
type EventReader struct {
	br     *bufio.Reader
	max    int64
	skipLF bool
	begun  bool
	line   []byte // the memory of short lines
	data   chunks // of the event being read
	lines  int    // of data, of the event being read
	long   chunks // the beginning of a line beyond the limit

	// spill, where not nil, says where the data of an event goes that has more
	// than above bytes; nil leaves it in memory.
	spill   func() *spool
	above   int64
	spooled *spool // the data of the event being read
}

var eventBuffers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 8<<10) }}

// NewEventReader returns a reader of the events of r, each of which may have
// up to max bytes. Release it when done.
func NewEventReader(r io.Reader, max int64) *EventReader {
	br := eventBuffers.Get().(*bufio.Reader)
	br.Reset(r)
	return &EventReader{br: br, max: max}
}

// Release gives the memory of the reader back. It must not be used any more.
func (r *EventReader) Release() {
	r.br.Reset(nil)
	eventBuffers.Put(r.br)
	r.br = nil
	r.unspool()
}

// Next returns the next event that has an id, a retry or data. The data is the
// caller's to keep. The error is io.EOF at the end of the stream (an event that
// no blank line ended is dropped, as the standard says), [ErrTooLarge], or that
// of the source.
func (r *EventReader) Next() (Event, error) {
	var ev Event
	size, some := int64(0), false
	r.lines = 0
	for {
		line, err := r.readLine(r.max - size)
		if err == errSpooledLine {
			some = true
			continue
		}
		if err != nil {
			return Event{}, err
		}
		if len(line) == 0 {
			if some {
				return r.finish(ev), nil
			}
			size = 0 // a comment that keeps the stream alive is no part of an event
			continue
		}
		size += int64(len(line))
		if r.field(&ev, line) {
			some = true
		}
	}
}

// finish puts the data of an event together.
func (r *EventReader) finish(ev Event) Event {
	if r.spooled != nil {
		r.spooled.end()
		ev.Data, ev.spooled, r.spooled = nil, r.spooled, nil
		return ev
	}
	if ev.Data != nil && r.data.size > 0 {
		ev.Data = r.data.take()
	}
	return ev
}

// field takes in one line and reports whether it said something.
func (r *EventReader) field(ev *Event, line []byte) bool {
	name, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(name) {
	case "data":
		r.dataLine(ev, value)
	case "event":
		ev.Name = string(value)
	case "id":
		if bytes.IndexByte(value, 0) >= 0 {
			return false
		}
		ev.ID = string(value)
	case "retry":
		ms, err := strconv.ParseUint(string(value), 10, 31)
		if err != nil {
			return false
		}
		ev.Retry, ev.HasRetry = time.Duration(ms)*time.Millisecond, true
	default:
		return false
	}
	return true
}

// dataLine takes in one line of data, and keeps the memory of a first one, which
// as a rule is the only one.
func (r *EventReader) dataLine(ev *Event, value []byte) {
	if r.spooled != nil {
		r.spoolLine(value)
		return
	}
	r.lines++
	if ev.Data == nil {
		ev.Data = []byte{}
		r.data.keep(value)
		r.line = nil
		return
	}
	r.data.write([]byte{'\n'})
	r.data.write(value)
}

// readLine returns the next line without its end; it is valid until the next
// call, unless data kept it.
func (r *EventReader) readLine(max int64) ([]byte, error) {
	var long chunks // of a line that is not read in one piece
	for {
		chunk, err := r.buffered()
		if err != nil {
			return nil, err
		}
		end := lineEnd(chunk)
		take := upTo(chunk, end)
		if r.spills(&long, chunk[:take]) {
			return nil, r.spoolRest(&long, chunk, end)
		}
		if int64(long.size+take) > max {
			r.long = long
			return nil, ErrTooLarge
		}
		if end < 0 {
			long.write(chunk[:take])
			r.discard(take)
			continue
		}
		r.skipLF = chunk[end] == '\r'
		if long.size > 0 {
			long.write(chunk[:take])
			r.line = long.take()
		} else {
			r.line = append(r.line[:0], chunk[:take]...)
		}
		r.discard(end + 1)
		return r.line, nil
	}
}

// lineEnd returns where the first line of b ends, or -1.
func lineEnd(b []byte) int {
	end := bytes.IndexByte(b, '\n')
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 && (end < 0 || cr < end) {
		end = cr
	}
	return end
}

// skipEvent reads past the event for which Next returned [ErrTooLarge], and
// says which message it held.
func (r *EventReader) skipEvent() (*errOverlong, error) {
	var f idFinder
	if r.spooled != nil {
		f = r.spooled.finder
		r.unspool()
	}
	f.feed(r.data.take())
	f.feed(r.long.take()) // the name of the field is outside of any object
	for {
		blank, err := r.skipLine(&f)
		if err != nil {
			return nil, err
		}
		if blank {
			return &errOverlong{id: ID(f.found), identified: f.identified, method: f.method}, nil
		}
	}
}

// skipLine feeds the rest of a line to f and reports whether there was none.
func (r *EventReader) skipLine(f *idFinder) (blank bool, err error) {
	for blank = true; ; blank = false {
		chunk, err := r.buffered()
		if err != nil {
			return false, err
		}
		end := lineEnd(chunk)
		take := upTo(chunk, end)
		text := chunk[:take]
		if blank {
			text = bytes.TrimPrefix(text, []byte("data:"))
		}
		f.feed(text)
		if end >= 0 {
			r.skipLF = chunk[end] == '\r'
			r.discard(end + 1)
			return blank && end == 0, nil
		}
		r.discard(take)
	}
}

// buffered waits for at least one byte and returns what has been read ahead.
func (r *EventReader) buffered() ([]byte, error) {
	if !r.begun {
		r.begun = true
		if mark, _ := r.br.Peek(3); string(mark) == "\xef\xbb\xbf" {
			r.discard(3)
		}
	}
	for {
		if _, err := r.br.Peek(1); err != nil {
			return nil, err
		}
		chunk, _ := r.br.Peek(r.br.Buffered())
		if !r.skipLF || chunk[0] != '\n' {
			r.skipLF = false
			return chunk, nil
		}
		r.skipLF = false
		r.discard(1)
	}
}

func (r *EventReader) discard(n int) {
	_, _ = r.br.Discard(n) // n bytes are buffered
}

// appendEvent appends a message event; an empty id is left out.
func appendEvent(dst []byte, id string, msg []byte) []byte {
	dst = append(appendEventHead(dst, id), oneLine(msg)...)
	return append(dst, eventTail...)
}

var eventTail = []byte("\n\n")

// appendEventHead appends a message event up to its data.
func appendEventHead(dst []byte, id string) []byte {
	dst = append(dst, "event: message\n"...)
	if id != "" {
		dst = append(dst, "id: "...)
		dst = append(dst, id...)
		dst = append(dst, '\n')
	}
	return append(dst, "data: "...)
}

// appendPriming appends an event without a message, which gives the client an
// id to resume from and, if retry is positive, a delay before it does so.
func appendPriming(dst []byte, id string, retry time.Duration) []byte {
	dst = append(dst, "id: "...)
	dst = append(dst, id...)
	if retry > 0 {
		dst = append(dst, "\nretry: "...)
		dst = strconv.AppendInt(dst, retry.Milliseconds(), 10)
	}
	return append(dst, "\ndata: \n\n"...)
}
