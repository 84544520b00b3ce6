package mcpwire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// eventsIn returns the events of a stream, as far as it goes; spill may be nil.
func eventsIn(t *testing.T, in io.Reader, spill func() *spool) (list []Event, err error) {
	t.Helper()
	r := NewEventReader(in, 1<<20)
	defer r.Release()
	r.spill, r.above = spill, 20
	for {
		ev, err := r.Next()
		if err != nil {
			return list, err
		}
		if ev.spooled != nil {
			if ev.Data, err = ev.spooled.load(1 << 20); err != nil {
				t.Fatal(err)
			}
			ev.spooled.close()
			ev.spooled = nil
		}
		list = append(list, ev)
	}
}

// An event is the same, whether its data came through memory or the disk.
func FuzzSpooledEvents(f *testing.F) {
	long := `{"id":1,"result":"` + strings.Repeat("x", 40) + `"}`
	for _, seed := range []string{"data: " + long + "\n\n", "id: 4\r\ndata:" + long + "\r\nretry: 5\r\n\r\n", "data\ndata: {\ndata: " + long + "\n\ndata: " + long,
		": c\n\ndata:  " + long + "\rdata: x\r\r", "data: [" + long + "]\n\n", "\xef\xbb\xbfdata: " + long + "\n\n", "event: endpoint\ndata: " + long + "\nid: \x00\n\n"} {
		f.Add([]byte(seed))
	}
	s := NewScratch(&ScratchOptions{Dir: f.TempDir()})
	f.Fuzz(func(t *testing.T, stream []byte) {
		want, wantErr := eventsIn(t, bytes.NewReader(stream), nil)
		for _, in := range []io.Reader{bytes.NewReader(stream), iotest.OneByteReader(bytes.NewReader(stream))} {
			got, err := eventsIn(t, in, s.begin)
			if !errors.Is(err, wantErr) || len(got) != len(want) {
				t.Fatalf("%d events and %v, want %d and %v", len(got), err, len(want), wantErr)
			}
			for i := range got {
				a, b := got[i], want[i]
				if a.ID != b.ID || a.Name != b.Name || a.Retry != b.Retry || !bytes.Equal(a.Data, b.Data) {
					t.Fatalf("event %d: %+v, want %+v", i, a, b)
				}
			}
		}
		if n := s.Used(); n != 0 {
			t.Fatalf("%d bytes are left", n)
		}
	})
}

// A line is the same too.
func FuzzSpooledLines(f *testing.F) {
	for _, seed := range []string{`{"id":1,"result":{"a":"bcdefghijklmnop"}}` + "\n{}\n", "noise that is long enough\n{\"a\":1}", " \t{\"a\":\"a line that breaks o", "{\"a\":\"b\\\"c\\\\\"}\r\n\r\n[1,2,3,4,5,6,7,8,9,10,11]\n"} {
		f.Add([]byte(seed))
	}
	s := NewScratch(&ScratchOptions{Dir: f.TempDir()})
	f.Fuzz(func(t *testing.T, stream []byte) {
		plain := newLineReader(bytes.NewReader(stream), 1<<20)
		r := newLineReader(bytes.NewReader(stream), 1<<20)
		r.spill, r.above = s.begin, 20
		for {
			want, wantErr := plain.next()
			got, err := r.next()
			var on *errSpooled
			if errors.As(err, &on) {
				if got, err = on.message.load(1 << 20); err != nil {
					t.Fatal(err)
				}
				on.message.close()
			}
			if err != nil && wantErr == nil && !bytes.HasSuffix(stream, []byte("\n")) {
				return // the last line breaks off
			}
			if !errors.Is(err, wantErr) || !bytes.Equal(bytes.TrimSpace(got), want) {
				t.Fatalf("%q, %v, want %q, %v", got, err, want, wantErr)
			}
			if wantErr != nil {
				return
			}
		}
	})
}
