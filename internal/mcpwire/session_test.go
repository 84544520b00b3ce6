package mcpwire

import (
	"encoding/json"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestUsageExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		expired := make(chan time.Time, 1)
		start := time.Now()
		var u usage
		u.start(time.Minute, func() { expired <- time.Now() })
		u.begin()
		time.Sleep(time.Hour) // in use
		u.begin()
		u.end()
		time.Sleep(time.Hour) // still
		if _, idle := u.idleSince(); idle {
			t.Error("idle while in use")
		}
		u.end()
		if got := (<-expired).Sub(start); got != 2*time.Hour+time.Minute {
			t.Errorf("expired after %v", got)
		}
		u.stop()
		u.begin()
		u.end()
	})
}

func TestEventLogForgetsTheOldest(t *testing.T) {
	l := newEventLog(100)
	msg := make([]byte, 30)
	for range 10 {
		l.add(0, msg)
	}
	events, open, wake := l.after(0, 0)
	if len(events) != 3 || events[0].seq != 8 || !open {
		t.Fatalf("%d events, open %v", len(events), open)
	}
	stream := l.openStream()
	l.add(stream, make([]byte, 200)) // alone too large: not kept
	if events, _, _ := l.after(stream, 0); len(events) != 0 {
		t.Errorf("%d events of a stream that fits nothing", len(events))
	}
	l.add(0, make([]byte, 200)) // has no other way to the client: kept
	<-wake
	if events, _, _ := l.after(0, 10); len(events) != 1 {
		t.Errorf("%d events after the large one", len(events))
	}
	l.closeStream(stream)
	if _, open, _ := l.after(stream, 0); open {
		t.Error("a closed stream is open")
	}
}

func TestMailboxDropsTheOldest(t *testing.T) {
	var dropped atomic.Int64
	m := newMailbox(&dropped)
	var got []string
	for i := range maxMail + 5 {
		m.put(notification{strconv.Itoa(i), nil, func(method string, _ json.RawMessage) { got = append(got, method) }})
	}
	m.drain()
	if dropped.Load() != 5 || len(got) != maxMail || got[0] != "5" {
		t.Errorf("%d dropped, %d delivered, first %s", dropped.Load(), len(got), got[0])
	}
}
