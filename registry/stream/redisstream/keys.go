package redisstream

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	// streamPrefix begins the key of every stream, as Pulse names them.
	streamPrefix = "pulse:stream:"

	// nameField and payloadField are the fields of an entry, and noteField one of those
	// that have a note.
	nameField    = "n"
	payloadField = "p"
	noteField    = "note"
)

// keys are those of one stream. Redis Cluster keeps them in one place, because the braces hold what the key of the
// stream itself is placed by.
type keys struct {
	stream string // the stream
	state  string // a hash: the bound of the stream, the ms that its events live, the lease of its sink
	later  string // a sorted set: entries that were given back, by the time in ms from which they may be delivered
}

func keysOf(stream string) keys {
	key := streamPrefix + escape(stream)
	return keys{stream: key, state: "{" + key + "}:state", later: "{" + key + "}:later"}
}

// escape maps a name to one without what has a meaning in keys and patterns of Redis. Colons, letters, digits and most
// of what names are made of stay as they are.
func escape(name string) string {
	if !strings.ContainsFunc(name, mustEscape) {
		return name
	}
	var b strings.Builder
	for _, r := range name {
		if mustEscape(r) {
			fmt.Fprintf(&b, "%%%02X", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func mustEscape(r rune) bool {
	return r <= ' ' || r == 0x7f || strings.ContainsRune(`%{}*?[]\^`, r)
}

// channels are the names of what is published, apart for each database of a server, since Redis has them in common.
type channels struct{ prefix string }

func channelsOf(db int) channels { return channels{prefix: fmt.Sprintf("toolcrib:%d:", db)} }

func (c channels) subject(name string) string { return c.prefix + "bus:" + escape(name) }

// inbox is where a client is answered. The name may be empty.
func (c channels) inbox(name, client string) string {
	if name != "" {
		client = escape(name) + ":" + client
	}
	return c.prefix + "inbox:" + client
}

func (c channels) isInbox(channel string) bool { return strings.HasPrefix(channel, c.prefix+"inbox:") }

// wake is where the workers of a stream tell each other that an event was given back.
func (c channels) wake(stream string) string { return c.prefix + "wake:" + escape(stream) }

// responder is the channel of one of those who respond to a subject; its id has idLength bytes.
func (c channels) responder(subject, id string) string {
	return c.prefix + "respond:" + id + ":" + escape(subject)
}

// responders is the pattern of all who respond to a subject.
func (c channels) responders(subject string) string {
	return c.responder(subject, strings.Repeat("?", idLength))
}

// added reads from an entry's ID, such as 1526919030474-55, when Redis took the entry.
func added(id string) time.Time {
	ms, _, _ := strings.Cut(id, "-")
	n, err := strconv.ParseInt(ms, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(n)
}
