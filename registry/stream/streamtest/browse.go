package streamtest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/registry/stream"
)

// browser is a stream whose events can be looked at, as dead letters must be.
func browser(t *testing.T, s stream.Stream) stream.Browser {
	t.Helper()
	b, ok := s.(stream.Browser)
	if !ok {
		t.Fatal("the events of this backend cannot be looked at")
	}
	return b
}

// testBrowse looks at events that stay where they are.
func testBrowse(t *testing.T, f *fixture) {
	s := f.open(t, f.client, nil)
	b := browser(t, s)
	if list, err := b.Browse(within(t, wait), "", 10); err != nil || len(list) != 0 {
		t.Errorf("in an empty stream there are %+v, %v", list, err)
	}
	before := time.Now()
	if _, err := s.Add(within(t, wait), "any:name *>", []byte{0, 255}); err != nil {
		t.Fatal(err)
	}
	add(t, s, 1, 5)
	all, err := b.Browse(within(t, wait), "", 10)
	if err != nil || len(all) != 5 {
		t.Fatalf("there are %+v, %v", all, err)
	}
	if e := all[0]; e.Name != "any:name *>" || string(e.Payload) != "\x00\xff" || e.Added.Sub(before).Abs() > time.Minute {
		t.Errorf("the first is %+v", e)
	}
	var ids []string
	for after, more := "", true; more; {
		page, err := b.Browse(within(t, wait), after, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page {
			ids, after = append(ids, e.ID), e.ID
		}
		more = len(page) == 2
	}
	for i, e := range all {
		if i >= len(ids) || ids[i] != e.ID || i > 0 && string(e.Payload) != fmt.Sprint(i) {
			t.Errorf("event %d is %+v; the pages have %q", i, e, ids)
		}
	}
	if _, err := b.Browse(within(t, wait), "no id", 2); !errors.Is(err, stream.ErrInvalid) {
		t.Errorf("after no id: %v", err)
	}
	k := sink(t, s, nil)
	for range all {
		e := receive(t, k)
		if e.Deliveries != 1 {
			t.Errorf("%s was delivered %d times", e.ID, e.Deliveries)
		}
		if list, err := b.Browse(within(t, wait), "", 1); err != nil || len(list) != 1 || list[0].ID != e.ID {
			t.Errorf("while it is held the first is %+v, %v", list, err)
		}
		ack(t, e)
		eventually(t, func() (bool, string) {
			list, err := b.Browse(within(t, wait), "", 1)
			return err == nil && (len(list) == 0 || list[0].ID != e.ID), fmt.Sprintf("after its end the first is %+v, %v", list, err)
		})
	}
	empty(t, s)
}

// testBrowseShort looks at the events of one of several short-lived streams.
func testBrowseShort(t *testing.T, f *fixture) {
	var last stream.Stream
	for _, end := range []string{"1", "2"} {
		s, err := f.client.Stream(within(t, wait), f.name+end, &stream.Options{TTL: wait})
		if err != nil {
			t.Fatal(err)
		}
		add(t, s, 0, 2)
		last = s
	}
	b := browser(t, last)
	if list, err := b.Browse(within(t, wait), "", 10); err != nil || len(list) != 2 || string(list[1].Payload) != "1" {
		t.Errorf("there are %+v, %v", list, err)
	}
}

// testNote keeps notes beside events, whose payloads stay as they are.
func testNote(t *testing.T, f *fixture) {
	s := f.open(t, f.client, nil)
	a, ok := s.(stream.Annotator)
	if !ok {
		t.Fatal("the streams of this backend take no notes")
	}
	notes := []string{`{"why":"it says \"no\": ä, 100%"}`, "", strings.Repeat("n", stream.MaxNoteBytes)}
	for _, note := range notes {
		if _, err := a.AddNoted(within(t, wait), "call", []byte{0, '\n', 255}, note); err != nil {
			t.Fatal(err)
		}
	}
	list, err := browser(t, s).Browse(within(t, wait), "", 10)
	if err != nil || len(list) != len(notes) {
		t.Fatalf("there are %+v, %v", list, err)
	}
	for i, e := range list {
		if e.Note != notes[i] || e.Name != "call" || string(e.Payload) != "\x00\n\xff" {
			t.Errorf("event %d is %+v, want the note %.40q", i, e, notes[i])
		}
	}
	for _, note := range []string{"two\nlines", " space", "escape\x1b", "\xff", strings.Repeat("n", stream.MaxNoteBytes+1)} {
		if _, err := a.AddNoted(within(t, wait), "call", nil, note); !errors.Is(err, stream.ErrInvalid) {
			t.Errorf("with the note %.20q: %v", note, err)
		}
	}
	k := sink(t, s, nil)
	for range list {
		e := receive(t, k)
		if string(e.Payload) != "\x00\n\xff" {
			t.Errorf("a worker gets %q", e.Payload)
		}
		ack(t, e)
	}
	large := make([]byte, f.client.MaxPayload())
	if _, err := a.AddNoted(within(t, wait), "call", large, notes[len(notes)-1]); err != nil {
		t.Errorf("with the largest payload: %v", err)
	}
	short, err := f.client.Stream(within(t, wait), f.name+"short", &stream.Options{TTL: wait})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := short.(stream.Annotator).AddNoted(within(t, wait), "call", nil, "note"); err != nil {
		t.Fatal(err)
	}
	if list, err := browser(t, short).Browse(within(t, wait), "", 10); err != nil || len(list) != 1 || list[0].Note != "note" {
		t.Errorf("in a short-lived stream there are %+v, %v", list, err)
	}
}
