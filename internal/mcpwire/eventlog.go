package mcpwire

import (
	"context"
	"sort"
	"strconv"
	"strings"
	"sync"
)

// An eventLog is the memory of a session's event streams: what waits to be
// written on the stream of the session itself, and what a client that resumes a
// stream may have missed. When it exceeds its size the oldest goes.
//
// Streams are numbered from 1; stream 0 belongs to no request.
type eventLog struct {
	maxSize int

	mu      sync.Mutex
	events  []loggedEvent
	size    int
	seq     int64
	streams int
	open    map[int]bool  // streams that can still get events
	wake    chan struct{} // nil while nobody waits
	written int64         // the last event of stream 0 that was written
	readers map[int]chan struct{}
}

type loggedEvent struct {
	stream int
	seq    int64
	msg    []byte
}

func newEventLog(maxSize int) *eventLog {
	return &eventLog{maxSize: maxSize, open: map[int]bool{0: true}}
}

// next returns a number for an event that has no message.
func (l *eventLog) next() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	return l.seq
}

// openStream returns the number of a new stream.
func (l *eventLog) openStream() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.streams++
	l.open[l.streams] = true
	return l.streams
}

func (l *eventLog) closeStream(stream int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, stream)
	l.wakeAll()
}

// add remembers a message and returns its number. A message that alone exceeds
// the size is remembered only where it has no other way to the client.
func (l *eventLog) add(stream int, msg []byte) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	if stream != 0 && len(msg) > l.maxSize {
		return l.seq
	}
	l.events = append(l.events, loggedEvent{stream, l.seq, msg})
	l.size += len(msg)
	drop := 0
	for l.size > l.maxSize && drop < len(l.events)-1 {
		l.size -= len(l.events[drop].msg)
		drop++
	}
	if drop > 0 {
		l.events = append([]loggedEvent(nil), l.events[drop:]...)
	}
	l.wakeAll()
	return l.seq
}

func (l *eventLog) wakeAll() {
	if l.wake != nil {
		close(l.wake)
		l.wake = nil
	}
}

// after returns what a stream has after the event seq, whether more can come,
// and a channel that is closed when the log changes.
func (l *eventLog) after(stream int, seq int64) (events []loggedEvent, more bool, wake <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := sort.Search(len(l.events), func(i int) bool { return l.events[i].seq > seq })
	for _, e := range l.events[first:] {
		if e.stream == stream {
			events = append(events, e)
		}
	}
	if l.wake == nil {
		l.wake = make(chan struct{})
	}
	return events, l.open[stream], l.wake
}

// wrote keeps how far stream 0 has been written.
func (l *eventLog) wrote(seq int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.written = max(l.written, seq)
}

// eventID names an event: its stream and its number in the session.
func eventID(stream int, seq int64) string {
	return strconv.Itoa(stream) + "-" + strconv.FormatInt(seq, 10)
}

func parseEventID(id string) (stream int, seq int64, ok bool) {
	a, b, found := strings.Cut(id, "-")
	if !found {
		return 0, 0, false
	}
	stream, errA := strconv.Atoi(a)
	seq, errB := strconv.ParseInt(b, 10, 64)
	return stream, seq, errA == nil && errB == nil && stream >= 0 && seq >= 0
}

// standalone is the outlet for what belongs to no request: it is remembered,
// and whoever has the stream open writes it.
type standalone struct{ log *eventLog }

func (s standalone) send(_ context.Context, msg []byte) error {
	s.log.add(0, msg)
	return nil
}
