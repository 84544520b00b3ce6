package mcpwire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// spooled writes a message to the disk.
func spooled(t testing.TB, msg []byte) *spool {
	t.Helper()
	p := NewScratch(&ScratchOptions{Dir: t.TempDir()}).begin()
	p.write(msg)
	p.end()
	t.Cleanup(p.close)
	if p.fault != nil {
		t.Fatal(p.fault)
	}
	return p
}

// scanned reads a message with bounds that are small enough for a test.
func scanned(msg []byte, heads bool) (*longScanner, error) {
	s := newLongScanner(iotest.OneByteReader(bytes.NewReader(msg)))
	s.part, s.most, s.heads = 8, 1<<20, heads
	return s, s.frame()
}

// valueOf is a part as the ordinary reader finds it.
func valueOf(result []byte, p LongPart) []byte {
	if p.Block < 0 {
		v, _ := rawjson.Get(result, p.Key)
		return v
	}
	for _, list := range []string{"content", "contents"} {
		v, _ := rawjson.Get(result, list)
		i := 0
		for it := rawjson.Array(v); it.Next(); i++ {
			if i != p.Block {
				continue
			}
			if found, ok := rawjson.Get(it.Value(), strings.Split(p.Key, "/")...); ok {
				return found
			}
		}
	}
	return nil
}

const longText = `\"é\ud83d\ude00 a long text \ud800 \n`

func longSeeds() []string {
	return []string{
		`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + longText + `"}],"isError":false}}`,
		`{"result":{"content":[{"type":"text","text":"short"},{"text":"` + longText + `","type":"text"}],"structuredContent":{"a":[1,2,3,4,5,-0.5e+7]}},"id":"a","jsonrpc":"2.0"}`,
		` { "jsonrpc" : "2.0" , "id" : 7 , "result" : { "contents" : [ { "uri" : "x" , "blob" : "AAAAAAAAAAAA" } , 1 ] } } `,
		`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"resource","resource":{"uri":"u","text":"` + longText + `"}},{"type":"image","data":"AAAAAAAAAAAAAAAA"}]}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"content":[{"te\u0078t":"` + longText + `"}],"content":[]}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"content":[{"text":"` + longText + `","text":"other and long"}]}}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"` + longText + `"}}`,
		`{"jsonrpc":"2.0","id":1,"error":null,"result":"` + longText + `"}`,
		`{"jsonrpc":"2.0","id":1,"method":"m","params":{"content":[{"text":"` + longText + `"}]}}`,
		`{"jsonrpc":"2.0","id":1,"id":2,"result":{}}`, `{"jsonrpc":"2.0","id":null,"result":{}}`, `{"jsonrpc":"1.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + longText, `{"jsonrpc":"2.0","id":1,"result":{}} x`, `{"jsonrpc":"2.0","id":1,"result":{"a":01}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"structuredContent":"\u00e9\x"}}`, `{"jsonrpc":"2.0","id":1,"result":{"a":tru}}`, `{"jsonrpc":"2.0","id":1,"result":{"a":[1,]}}`, "",
	}
}

// What the scanner makes of a message is what the ordinary reader makes of it:
// the same messages are refused, and the skeleton with its parts is the result.
func FuzzLongScanner(f *testing.F) {
	for _, seed := range longSeeds() {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		want, wantErr := ScanFrame(msg)
		got, err := scanned(msg, false)
		if err != nil {
			if wantErr == nil {
				t.Fatalf("refused: %v", err)
			}
			return
		}
		if got.otherwise {
			// What is taken for something else is left to the ordinary reader.
			if wantErr == nil && want.Kind == KindResult && isSimple(msg, want) {
				t.Fatal("a plain result was taken for something else")
			}
			return
		}
		if wantErr != nil || want.Kind != KindResult || want.ID != got.id {
			t.Fatalf("taken for a result with the id %s: %+v, %v", got.id, want, wantErr)
		}
		if got.ambiguous {
			return
		}
		compareLong(t, msg, want.Result, got)
		if heads, err := scanned(msg, true); err != nil || !rawjson.Valid(heads.skeleton) {
			t.Fatalf("the short members: %s, %v", heads.skeleton, err)
		}
	})
}

// isSimple reports whether nothing about a result is odd, so that it must not be
// taken for anything else.
func isSimple(msg []byte, f Frame) bool {
	if rawjson.KindOf(f.Result) != rawjson.KindObject || len(f.ID) > 100 {
		return false
	}
	keys := map[string]int{}
	for it := rawjson.Object(msg); it.Next(); {
		keys[it.Key()]++
	}
	return keys["result"] == 1 && keys["error"]+keys["method"]+keys["params"] == 0
}

func compareLong(t *testing.T, msg, want []byte, got *longScanner) {
	t.Helper()
	if whole := msg[got.from:got.to]; !bytes.Equal(whole, want) {
		t.Fatalf("the result is %s, want %s", whole, want)
	}
	if !rawjson.Valid(got.skeleton) {
		t.Fatalf("the skeleton is not JSON: %s", got.skeleton)
	}
	size := len(got.skeleton)
	for _, p := range got.parts {
		raw, left := msg[p.from:p.to], `""`
		if p.Key == "structuredContent" {
			left = "null"
		} else {
			text, err := io.ReadAll(newUnquoter(iotest.OneByteReader(bytes.NewReader(raw[1 : len(raw)-1]))))
			if plain, _ := rawjson.Unquote(raw); err != nil || string(text) != plain {
				t.Fatalf("the text of %s is %q, %v", raw, text, err)
			}
		}
		if v := valueOf(want, p); !bytes.Equal(raw, v) {
			t.Fatalf("%+v is %s, want %s", p, raw, v)
		}
		if v := valueOf(got.skeleton, p); string(v) != left {
			t.Fatalf("in the place of %+v is %s", p, v)
		}
		size += len(raw) - len(left)
	}
	if size != len(want) {
		t.Fatalf("the skeleton %s and the parts have %d bytes, want %d", got.skeleton, size, len(want))
	}
}

func TestLongScannerFindsParts(t *testing.T) {
	got, err := scanned([]byte(longSeeds()[1]), false)
	if err != nil || got.otherwise || got.id != `"a"` {
		t.Fatalf("%+v, %v", got, err)
	}
	want := `{"content":[{"type":"text","text":"short"},{"text":"","type":"text"}],"structuredContent":null}`
	if string(got.skeleton) != want || len(got.parts) != 2 || got.parts[0].Block != 1 || got.parts[0].Key != "text" || got.parts[1].Key != "structuredContent" {
		t.Errorf("%s, %+v", got.skeleton, got.parts)
	}
}

func TestLongResults(t *testing.T) {
	text := strings.Repeat(longText, longPart/4)
	block := `{"type":"text","text":"` + strings.Repeat("b", 1000) + `"}`
	for name, c := range map[string]struct {
		result   string
		parts    int
		skeleton string
	}{
		"one long text": {`{"content":[{"type":"text","text":"` + text + `"}]}`, 1, `{"content":[{"type":"text","text":""}]}`},
		"many short texts": {`{"content":[` + strings.Repeat(block+",", 1200) + block + `],"isError":true,"_meta":{"a":1}}`, 1,
			`{"isError":true,"_meta":{"a":1}}`},
		"one member twice": {`{"content":[],"content":[{"type":"text","text":"` + text + `"}],"x":0}`, 1, `{"content":[],"x":0}`},
		"short":            {`{"content":[]}`, 0, `{"content":[]}`},
	} {
		p := spooled(t, []byte(`{"jsonrpc":"2.0","id":1,"result":`+c.result+`}`))
		r, err := readLong(p)
		if err != nil || string(r.Skeleton) != c.skeleton || len(r.Parts) != c.parts || r.Size != int64(len(c.result)) {
			t.Errorf("%s: %.200s, %+v, %v", name, r.Skeleton, r.Parts, err)
			continue
		}
		if whole, err := io.ReadAll(r.JSON(r.Whole())); err != nil || string(whole) != c.result {
			t.Errorf("%s: the whole result has %d bytes, %v", name, len(whole), err)
		}
	}
	if r, err := readLong(spooled(t, []byte(`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}`))); r != nil || err != nil {
		t.Errorf("an error answer: %+v, %v", r, err)
	}
}

func FuzzUnquoter(f *testing.F) {
	for _, seed := range []string{longText, `\ud83d\ude00`, `\ud83d`, `\ude00\ud83d x`, "é\xff\xe2\x82", `\\\\\"`, `\u00e9\u`, "\xf0\x9f\x98\x80"} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, body []byte, chunk int) {
		quoted := append(append([]byte{'"'}, body...), '"')
		want, ok := rawjson.Unquote(quoted)
		if !ok {
			return
		}
		got, err := io.ReadAll(newUnquoter(&chunked{body, 1 + (chunk&0xff)%17}))
		if err != nil || string(got) != want {
			t.Fatalf("%q: %q, %v, want %q", body, got, err, want)
		}
	})
}

// chunked gives a few bytes at a time.
type chunked struct {
	left []byte
	n    int
}

func (c *chunked) Read(p []byte) (int, error) {
	if len(c.left) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.left[:min(c.n, len(c.left))])
	c.left = c.left[n:]
	return n, nil
}

func TestScratchBounds(t *testing.T) {
	dir := t.TempDir()
	s := NewScratch(&ScratchOptions{Dir: dir, MaxMessageBytes: 100, MaxTotalBytes: 150})
	one, other := s.begin(), s.begin()
	one.write(make([]byte, 90))
	one.write(make([]byte, 20))
	var limit *LimitError
	if !errors.Is(one.fault, ErrTooLarge) || !errors.As(one.fault, &limit) || limit.Limit != 100 {
		t.Errorf("a message that is too long: %v", one.fault)
	}
	other.write(make([]byte, 60))
	if !errors.Is(other.fault, ErrNoRoom) {
		t.Errorf("more than all may have: %v", other.fault)
	}
	one.close()
	one.close()
	other.close()
	third := s.begin()
	third.write(make([]byte, 100))
	third.end()
	if third.fault != nil {
		t.Errorf("after the others are gone: %v", third.fault)
	}
	third.close()
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 || s.used.Load() != 0 {
		t.Errorf("left: %v, %v, %d bytes", left, err, s.used.Load())
	}
	if p := NewScratch(&ScratchOptions{Dir: dir + "/a\x00b"}).begin(); !errors.Is(p.fault, ErrNoRoom) {
		t.Errorf("a folder that cannot be: %v", p.fault)
	}
}

// Lines and events that go to the disk are those that an ordinary reader gives.
func TestSpooledMessages(t *testing.T) {
	long := `{"id":12,"text":"` + strings.Repeat("long ", 40) + `"}`
	s := NewScratch(&ScratchOptions{Dir: t.TempDir()})
	t.Run("lines", func(t *testing.T) {
		r := newLineReader(strings.NewReader("{}\n"+long+"\r\nnoise "+long+"\n"+long), 1<<20)
		r.spill, r.above = s.begin, 100
		for _, want := range []string{"{}", "*" + long, "noise " + long, "*" + long} {
			line, err := r.next()
			if got := messageOf(t, line, err); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		if _, err := r.next(); err != io.EOF {
			t.Error(err)
		}
	})
	t.Run("a line that breaks off", func(t *testing.T) {
		r := newLineReader(strings.NewReader(long[:150]), 1<<20)
		r.spill, r.above = s.begin, 100
		if _, err := r.next(); err != io.EOF {
			t.Error(err)
		}
	})
	t.Run("events", func(t *testing.T) {
		parts := strings.ReplaceAll(long, ",", ",\ndata:")
		stream := "id: 1\ndata: {}\n\nid: 2\ndata: " + long + "\nid: 3\n\ndata: " + parts + "\n\ndata:[" + long + "]\n\ndata: {\ndata\ndata: " + long[1:] + "\r\n\r\ndata: " + long + "\n"
		want := []string{"{}", "*" + long, "*" + strings.ReplaceAll(long, ",", ",\n"), "[" + long + "]", "*{\n\n" + long[1:]}
		for _, in := range []io.Reader{strings.NewReader(stream), iotest.OneByteReader(strings.NewReader(stream))} {
			r := NewEventReader(in, 1000)
			r.spill, r.above = s.begin, 100
			for i, want := range want {
				ev, err := r.Next()
				if ev.spooled != nil {
					err = &errSpooled{ev.spooled}
				}
				if got := messageOf(t, ev.Data, err); got != want || i == 1 && ev.ID != "3" {
					t.Errorf("event %d: got %q, want %q, %+v", i, got, want, ev)
				}
			}
			if _, err := r.Next(); err != io.EOF {
				t.Error(err)
			}
			r.Release()
		}
	})
	if n := s.used.Load(); n != 0 {
		t.Errorf("%d bytes are left", n)
	}
}

// messageOf returns a message, behind a star if it was on the disk.
func messageOf(t *testing.T, msg []byte, err error) string {
	t.Helper()
	var on *errSpooled
	if !errors.As(err, &on) {
		if err != nil {
			t.Fatal(err)
		}
		return string(msg)
	}
	defer on.message.close()
	if on.message.id() != "12" {
		t.Errorf("the id is %q", on.message.id())
	}
	loaded, err := on.message.load(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	return "*" + strings.TrimSpace(string(loaded))
}

func BenchmarkLongScanner(b *testing.B) {
	msg := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"%s"}]}}`, strings.Repeat(`a row of text\n`, 1<<20))
	b.SetBytes(int64(len(msg)))
	for b.Loop() {
		if err := newLongScanner(bytes.NewReader(msg)).frame(); err != nil {
			b.Fatal(err)
		}
	}
}
