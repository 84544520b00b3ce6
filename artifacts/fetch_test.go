package artifacts_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/toolcrib/toolcrib/artifacts"
)

func (f *fixture) fetch(t testing.TB, args artifacts.FetchArgs) artifacts.FetchResult {
	t.Helper()
	res, err := f.Fetch(ada(t), args)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestFetch(t *testing.T) {
	f := newFixture(t, artifacts.Options{})
	info := f.put(t, ada(t), "0123456789", artifacts.Meta{MIME: "text/plain"})
	for _, c := range []struct {
		offset int64
		limit  int
		want   artifacts.FetchResult
	}{
		{0, 0, artifacts.FetchResult{Content: "0123456789"}},
		{0, 4, artifacts.FetchResult{Content: "0123", Truncated: true, NextOffset: 4}},
		{4, 4, artifacts.FetchResult{Content: "4567", Offset: 4, Truncated: true, NextOffset: 8}},
		{8, 4, artifacts.FetchResult{Content: "89", Offset: 8}},
		{0, 10, artifacts.FetchResult{Content: "0123456789"}},
		{10, 4, artifacts.FetchResult{Offset: 10}},
	} {
		got := f.fetch(t, artifacts.FetchArgs{Ref: info.Ref, Offset: c.offset, MaxBytes: c.limit})
		c.want.Ref, c.want.MIME, c.want.SizeBytes = info.Ref, "text/plain", 10
		if got != c.want {
			t.Errorf("%d, %d: %+v\nwant %+v", c.offset, c.limit, got, c.want)
		}
	}
}

func TestFetchIsBounded(t *testing.T) {
	f := newFixture(t, artifacts.Options{})
	info := f.put(t, ada(t), strings.Repeat("x", 3<<20), artifacts.Meta{})
	for limit, want := range map[int]int{0: 64 << 10, 1: 1, 1 << 20: 1 << 20, 1<<20 + 1: 1 << 20, 1 << 40: 1 << 20} {
		if got := f.fetch(t, artifacts.FetchArgs{Ref: info.Ref, MaxBytes: limit}); len(got.Content) != want || !got.Truncated {
			t.Errorf("max_bytes %d: %d bytes, truncated %v", limit, len(got.Content), got.Truncated)
		}
	}
}

func TestFetchRefuses(t *testing.T) {
	f := newFixture(t, artifacts.Options{})
	text := f.put(t, ada(t), "a\nb\n", artifacts.Meta{})
	binary := f.put(t, ada(t), "a\x00b", artifacts.Meta{})
	for _, c := range []struct {
		args artifacts.FetchArgs
		want string
	}{
		{artifacts.FetchArgs{Ref: "art-nothing"}, "no such artifact"},
		{artifacts.FetchArgs{Ref: text.Ref, Offset: 5}, "outside"},
		{artifacts.FetchArgs{Ref: text.Ref, Offset: -1}, "not negative"},
		{artifacts.FetchArgs{Ref: text.Ref, MaxBytes: -1}, "not negative"},
		{artifacts.FetchArgs{Ref: text.Ref, Offset: 1, Query: "."}, "one way"},
		{artifacts.FetchArgs{Ref: text.Ref, Search: "a", Query: "."}, "one way"},
		{artifacts.FetchArgs{Ref: text.Ref, FromLine: 3, ToLine: 2}, "to_line"},
		{artifacts.FetchArgs{Ref: text.Ref, Search: strings.Repeat("a", 1001)}, "at most"},
		{artifacts.FetchArgs{Ref: text.Ref, Query: "."}, "not JSON"},
		{artifacts.FetchArgs{Ref: binary.Ref, Search: "b"}, "not text"},
		{artifacts.FetchArgs{Ref: binary.Ref, FromLine: 1}, "not text"},
	} {
		if got := f.fetch(t, c.args); !strings.Contains(got.Error, c.want) || got.Content != "" {
			t.Errorf("%+v: %+v, want an error with %q", c.args, got, c.want)
		}
	}
}

// However text is taken in parts, no rune is cut, nothing is lost, and nothing
// comes twice.
func TestFetchCutsNoRune(t *testing.T) {
	f := newFixture(t, artifacts.Options{})
	rapid.Check(t, func(rt *rapid.T) {
		content := rapid.StringOfN(rapid.RuneFrom([]rune("aé日𝄞\n")), 0, 60, -1).Draw(rt, "content")
		limit := rapid.IntRange(4, 20).Draw(rt, "limit")
		info := f.put(t, ada(t), content, artifacts.Meta{MIME: "text/plain"})
		got := ""
		for args := (artifacts.FetchArgs{Ref: info.Ref, MaxBytes: limit}); ; {
			part := f.fetch(t, args)
			if part.Encoding != "" || !utf8.ValidString(part.Content) || len(part.Content) > limit || int(part.Offset) != len(got) {
				rt.Fatalf("%+v after %q", part, got)
			}
			if got += part.Content; !part.Truncated {
				break
			}
			args.Offset = part.NextOffset
		}
		if got != content {
			rt.Fatalf("got %q, want %q", got, content)
		}
	})
}

func TestFetchBinary(t *testing.T) {
	f := newFixture(t, artifacts.Options{})
	rapid.Check(t, func(rt *rapid.T) {
		content := append([]byte{0}, rapid.SliceOfN(rapid.Byte(), 0, 80).Draw(rt, "content")...)
		content = append(content, 0xff, 0)
		limit := rapid.IntRange(1, 40).Draw(rt, "limit")
		info := f.put(t, ada(t), string(content), artifacts.Meta{})
		var got []byte
		for args := (artifacts.FetchArgs{Ref: info.Ref, MaxBytes: limit}); ; {
			part := f.fetch(t, args)
			raw := []byte(part.Content)
			if part.Encoding == "base64" {
				var err error
				if raw, err = base64.StdEncoding.DecodeString(part.Content); err != nil {
					rt.Fatal(err)
				}
			}
			if len(part.Content) > max(limit, 8) || int(part.Offset) != len(got) {
				rt.Fatalf("%+v after %d bytes", part, len(got))
			}
			if got = append(got, raw...); !part.Truncated {
				break
			}
			args.Offset = part.NextOffset
		}
		if string(got) != string(content) {
			rt.Fatalf("got %q, want %q", got, content)
		}
	})
}

// An offset inside of a rune goes on with the next one.
func TestFetchInsideOfARune(t *testing.T) {
	f := newFixture(t, artifacts.Options{})
	info := f.put(t, ada(t), "a日b", artifacts.Meta{MIME: "text/plain"})
	for offset, want := range []string{"a日b", "日b", "b", "b", "b", ""} {
		if got := f.fetch(t, artifacts.FetchArgs{Ref: info.Ref, Offset: int64(offset)}); got.Content != want || got.Encoding != "" {
			t.Errorf("offset %d: %+v, want %q", offset, got, want)
		}
	}
}

func TestFetchLines(t *testing.T) {
	f := newFixture(t, artifacts.Options{})
	info := f.put(t, ada(t), "one\ntwo\r\n\nfour\nfive", artifacts.Meta{})
	for _, c := range []struct {
		from, to int64
		limit    int
		want     artifacts.FetchResult
	}{
		{1, 2, 0, artifacts.FetchResult{Content: "one\ntwo\r"}},
		{2, 0, 0, artifacts.FetchResult{Content: "two\r\n\nfour\nfive", Offset: 4}},
		{0, 1, 0, artifacts.FetchResult{Content: "one"}},
		{5, 9, 0, artifacts.FetchResult{Content: "five", Offset: 15}},
		{6, 9, 0, artifacts.FetchResult{}},
		{1, 0, 10, artifacts.FetchResult{Content: "one\ntwo\r\n", Truncated: true, NextLine: 4, NextOffset: 10}},
		{1, 0, 2, artifacts.FetchResult{Content: "on", Truncated: true, NextOffset: 2}},
	} {
		got := f.fetch(t, artifacts.FetchArgs{Ref: info.Ref, FromLine: c.from, ToLine: c.to, MaxBytes: c.limit})
		c.want.Ref, c.want.MIME, c.want.SizeBytes = info.Ref, info.MIME, info.SizeBytes
		if got != c.want {
			t.Errorf("%d-%d, %d: %+v\nwant %+v", c.from, c.to, c.limit, got, c.want)
		}
	}
	long := f.put(t, ada(t), strings.Repeat("日", 100_000)+"\nend", artifacts.Meta{})
	if got := f.fetch(t, artifacts.FetchArgs{Ref: long.Ref, FromLine: 2}); got.Content != "end" {
		t.Errorf("behind a long line: %+v", got)
	}
	part := f.fetch(t, artifacts.FetchArgs{Ref: long.Ref, FromLine: 1, MaxBytes: 100_000})
	if !part.Truncated || !utf8.ValidString(part.Content) || int(part.NextOffset) != len(part.Content) || len(part.Content) < 99_990 {
		t.Errorf("of a long line: %d bytes, %v, next %d", len(part.Content), part.Truncated, part.NextOffset)
	}
}

func TestFetchSearch(t *testing.T) {
	f := newFixture(t, artifacts.Options{})
	var text strings.Builder
	for i := 1; i <= 20; i++ {
		fmt.Fprintf(&text, "line %d\n", i)
	}
	info := f.put(t, ada(t), text.String(), artifacts.Meta{})
	for _, c := range []struct {
		args artifacts.FetchArgs
		want artifacts.FetchResult
	}{
		{artifacts.FetchArgs{Search: "LINE 7"}, artifacts.FetchResult{}},
		{artifacts.FetchArgs{Search: "line 7"}, artifacts.FetchResult{Content: "7:line 7", Matches: 1}},
		{artifacts.FetchArgs{Search: "e 1?2$"}, artifacts.FetchResult{Content: "2:line 2\n12:line 12", Matches: 2}},
		{artifacts.FetchArgs{Search: "e 1?2$", Context: 1}, artifacts.FetchResult{Content: "1-line 1\n2:line 2\n3-line 3\n--\n11-line 11\n12:line 12\n13-line 13", Matches: 2}},
		{artifacts.FetchArgs{Search: "line [12]$", Context: 1}, artifacts.FetchResult{Content: "1:line 1\n2:line 2\n3-line 3", Matches: 2}},
		{artifacts.FetchArgs{Search: "line 1$", FromLine: 2}, artifacts.FetchResult{}},
		{artifacts.FetchArgs{Search: "line", FromLine: 19}, artifacts.FetchResult{Content: "19:line 19\n20:line 20", Matches: 2}},
		{artifacts.FetchArgs{Search: "line", FromLine: 3, ToLine: 4}, artifacts.FetchResult{Content: "3:line 3\n4:line 4", Matches: 2}},
		{artifacts.FetchArgs{Search: "line", MaxBytes: 20}, artifacts.FetchResult{Content: "1:line 1\n2:line 2", Matches: 2, Truncated: true, NextLine: 3}},
		{artifacts.FetchArgs{Search: "line (7"}, artifacts.FetchResult{}},
	} {
		c.args.Ref = info.Ref
		c.want.Ref, c.want.MIME, c.want.SizeBytes = info.Ref, info.MIME, info.SizeBytes
		if got := f.fetch(t, c.args); got != c.want {
			t.Errorf("%+v: %+v\nwant %+v", c.args, got, c.want)
		}
	}
	windows := f.put(t, ada(t), "one\r\ntwo\r\n", artifacts.Meta{})
	if got := f.fetch(t, artifacts.FetchArgs{Ref: windows.Ref, Search: "o$"}); got.Content != "2:two" {
		t.Errorf("lines that end as on Windows: %+v", got)
	}
	foreign := f.put(t, ada(t), "STRASSE\nstraße\nÉté Time\n", artifacts.Meta{})
	for search, want := range map[string]string{"stra": "1:STRASSE\n2:straße", "straße": "2:straße", "été": "3:Été Time", "Stra": "", "TIME": "", "Time": "3:Été Time", "time": "3:Été Time"} {
		if got := f.fetch(t, artifacts.FetchArgs{Ref: foreign.Ref, Search: search}); got.Content != want {
			t.Errorf("%s: %q, want %q", search, got.Content, want)
		}
	}
	code := f.put(t, ada(t), "a(b\nA(B\n", artifacts.Meta{})
	if got := f.fetch(t, artifacts.FetchArgs{Ref: code.Ref, Search: "a(b"}); got.Content != "1:a(b\n2:A(B" {
		t.Errorf("what is no expression: %+v", got)
	}
}

// One line of many megabytes is searched like any other, and shown in part.
func TestFetchSearchInALongLine(t *testing.T) {
	f := newFixture(t, artifacts.Options{})
	pad := strings.Repeat("日x", 500_000)
	info := f.put(t, ada(t), "short\n"+pad+"needle"+pad+"\nlast needle", artifacts.Meta{})
	got := f.fetch(t, artifacts.FetchArgs{Ref: info.Ref, Search: "needle"})
	if got.Matches != 2 || len(got.Content) > 1000 || !strings.Contains(got.Content, "2:(at byte ") || !strings.Contains(got.Content, "needle") ||
		!strings.HasSuffix(got.Content, "\n3:last needle") || !utf8.ValidString(got.Content) {
		t.Errorf("%+v", got)
	}
	var at int64
	if _, err := fmt.Sscanf(got.Content, "2:(at byte %d)", &at); err != nil {
		t.Fatal(err)
	}
	if part := f.fetch(t, artifacts.FetchArgs{Ref: info.Ref, Offset: at, MaxBytes: 300}); !strings.Contains(part.Content, "needle") {
		t.Errorf("offset %d: %q", at, part.Content)
	}
}
