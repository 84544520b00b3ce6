package mcpwire

import (
	"errors"
	"io"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func TestEventReader(t *testing.T) {
	const stream = "\xef\xbb\xbf: comment\n\ndata: one\n\n" +
		"event: message\r\nid: 7\r\ndata:two\r\ndata:  lines\r\n\r\n" +
		"id: p\rretry: 250\rdata\r\r" +
		"unknown: x\n\nretry: soon\ndata: {\"a\":\ndata: 1}\n\n" +
		"data: cut off"
	want := []Event{
		{Data: []byte("one")},
		{Name: "message", ID: "7", Data: []byte("two\n lines")},
		{ID: "p", Retry: 250 * time.Millisecond, HasRetry: true, Data: []byte{}},
		{Data: []byte("{\"a\":\n1}")},
	}
	for name, r := range map[string]io.Reader{
		"whole": strings.NewReader(stream), "bytewise": iotest.OneByteReader(strings.NewReader(stream)),
	} {
		events := NewEventReader(r, 1000)
		for i, w := range want {
			got, err := events.Next()
			if err != nil || got.ID != w.ID || got.Name != w.Name || string(got.Data) != string(w.Data) || got.Retry != w.Retry || got.HasRetry != w.HasRetry {
				t.Errorf("%s: event %d is %+v, %v", name, i, got, err)
			}
		}
		if got, err := events.Next(); err != io.EOF {
			t.Errorf("%s: after the end %+v, %v", name, got, err)
		}
		events.Release()
	}
}

func TestEventReaderLimit(t *testing.T) {
	for _, stream := range []string{"data: " + strings.Repeat("x", 2000) + "\n\n", strings.Repeat("data: 0123456789\n", 200) + "\n"} {
		r := NewEventReader(strings.NewReader(stream), 1000)
		if _, err := r.Next(); !errors.Is(err, ErrTooLarge) {
			t.Errorf("got %v", err)
		}
		r.Release()
	}
}

// An event keeps its data when the reader goes on.
func TestEventDataIsKept(t *testing.T) {
	r := NewEventReader(strings.NewReader("data: first\n\ndata: other\n\n"), 1000)
	defer r.Release()
	a, _ := r.Next()
	b, _ := r.Next()
	if string(a.Data) != "first" || string(b.Data) != "other" {
		t.Errorf("%q %q", a.Data, b.Data)
	}
}

func FuzzEventReader(f *testing.F) {
	f.Add("data: x\n\n")
	f.Add("data: {\"id\":1,\"result\":\"" + strings.Repeat("x", 64) + "\"}\n\ndata: x\n\n")
	f.Add("id: 1\r\nretry: 5\rdata: a\ndata: b\r\n\r\n")
	f.Fuzz(func(t *testing.T, stream string) {
		read := func(r io.Reader) (out []string, last error) {
			events := NewEventReader(r, 64)
			defer events.Release()
			for {
				ev, err := events.Next()
				if errors.Is(err, ErrTooLarge) {
					if _, err = events.skipEvent(); err == nil {
						out = append(out, "too large")
						continue
					}
				}
				if err != nil {
					return out, err
				}
				out = append(out, ev.ID+"|"+ev.Name+"|"+string(ev.Data)+"|"+ev.Retry.String())
			}
		}
		whole, errA := read(strings.NewReader(stream))
		bytewise, errB := read(iotest.OneByteReader(strings.NewReader(stream)))
		if strings.Join(whole, "\x00") != strings.Join(bytewise, "\x00") || !errors.Is(errA, errB) {
			t.Fatalf("%q %v and %q %v", whole, errA, bytewise, errB)
		}
	})
}

func TestLineReader(t *testing.T) {
	long := strings.Repeat("z", 100_000)
	r := newLineReader(strings.NewReader("one\r\n\n  \ntwo\n"+long+"\nlast"), 1<<20)
	for _, want := range []string{"one", "two", long, "last"} {
		got, err := r.next()
		if err != nil || string(got) != want {
			t.Fatalf("got %.20q, %v", got, err)
		}
	}
	if _, err := r.next(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

func TestOverlongLineKeepsItsID(t *testing.T) {
	pad := strings.Repeat("x", 100_000)
	tests := []struct {
		line, id string
		method   bool
	}{
		{`{"id":5,"result":"` + pad + `"}`, "5", false},
		{`{"result":{"id":9,"s":"\"id\":8,` + pad + `"},"id" : "a\"b" }`, `"a\"b"`, false},
		{`{"jsonrpc":"2.0","method":"m","id":3,"params":["` + pad + `"]}`, "3", true},
		{`[{"id":1,"result":"` + pad + `"}]`, "", false},
		{pad, "", false},
	}
	for _, tt := range tests {
		_, err := newLineReader(strings.NewReader(tt.line+"\n"), 1000).next()
		var overlong *errOverlong
		if !errors.As(err, &overlong) || string(overlong.id) != tt.id || overlong.method != tt.method {
			t.Errorf("%.30s: got %+v", tt.line, err)
		}
	}
}

// What has arrived is not copied again and again while more of it comes.
func TestLongMessagesAreNotCopiedWhileTheyGrow(t *testing.T) {
	const size = 32 << 20
	long := strings.Repeat("x", size)
	event := func(r io.Reader) ([]byte, error) {
		events := NewEventReader(r, 2*size)
		defer events.Release()
		ev, err := events.Next()
		return ev.Data, err
	}
	line := func(r io.Reader) ([]byte, error) { return newLineReader(r, size).next() }
	body := func(announced int64) func(io.Reader) ([]byte, error) {
		return func(r io.Reader) ([]byte, error) { return readSized(r, announced, size) }
	}
	for name, c := range map[string]struct {
		text string
		read func(io.Reader) ([]byte, error)
	}{
		"event":               {"data: " + long + "\n\n", event},
		"event of many lines": {strings.Repeat("data: "+long[:1023]+"\n", size/1024) + "\n", event},
		"line":                {long + "\n", line},
		"unsized body":        {long, body(-1)},
		"sized body":          {long, body(size)},
	} {
		in := strings.NewReader(c.text)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := c.read(in)
		runtime.ReadMemStats(&after)
		if err != nil || len(got) < size-1 || len(got) > size+1 {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 5*size/2 {
			t.Errorf("%s: %d MiB were allocated for %d", name, allocated>>20, size>>20)
		}
	}
}

// Comments that keep a stream alive do not add up to an event beyond the limit.
func TestCommentsDoNotAddUp(t *testing.T) {
	r := NewEventReader(strings.NewReader(strings.Repeat(": ping\n\n", 500)+"data: x\n\n"), 1000)
	defer r.Release()
	if ev, err := r.Next(); err != nil || string(ev.Data) != "x" {
		t.Errorf("%+v, %v", ev, err)
	}
}

func TestSkippedEvents(t *testing.T) {
	for _, end := range []string{"\n", "\r\n", "\r"} {
		long := strings.Repeat("x", 9000)
		stream := strings.Join([]string{`data: {"id":7,"result":"` + long + `"}`, "", "data: {", `data: "id": 8, "r":`, `data: "` + long + `"}`, "", "data: next", "", ""}, end)
		for name, in := range map[string]io.Reader{"whole": strings.NewReader(stream), "bytewise": iotest.OneByteReader(strings.NewReader(stream))} {
			r := NewEventReader(in, 1000)
			for _, id := range []ID{"7", "8"} {
				if _, err := r.Next(); !errors.Is(err, ErrTooLarge) {
					t.Fatalf("%s: %v", name, err)
				}
				if got, err := r.skipEvent(); err != nil || got.id != id || got.method {
					t.Errorf("%s: skipped %+v, %v; want %s", name, got, err, id)
				}
			}
			if ev, err := r.Next(); err != nil || string(ev.Data) != "next" {
				t.Errorf("%s: then %q, %v", name, ev.Data, err)
			}
			r.Release()
		}
	}
}

func TestSameOrigin(t *testing.T) {
	for _, tc := range []struct{ base, ref, want string }{
		{"https://h/sse?a=1", "/m?s=1#f", "https://h/m?s=1"},
		{"https://h/a/sse", "m", "https://h/a/m"},
		{"https://h/sse", " https://H:443/m ", "https://H:443/m"},
		{"http://h:80/sse", "http://h/m", "http://h/m"},
		{"http://h/sse?s=1", "?s=2", "http://h/sse?s=2"},
		{"https://h/sse", "http://h/m", ""},
		{"https://h/sse", "https://h:8443/m", ""},
		{"https://h/sse", "https://h.example/m", ""},
		{"https://h/sse", "https://h@evil/m", ""},
		{"https://h/sse", "javascript:alert(1)", ""},
	} {
		base, err := url.Parse(tc.base)
		if err != nil {
			t.Fatal(err)
		}
		got, err := sameOrigin(base, tc.ref)
		if (err != nil) != (tc.want == "") || err == nil && got.String() != tc.want {
			t.Errorf("%s from %s: %v, %v", tc.ref, tc.base, got, err)
		}
	}
}
