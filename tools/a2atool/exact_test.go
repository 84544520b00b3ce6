package a2atool

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// through reads a document as the driver does: marked, decoded by encoding/json
// into any, and encoded again.
func through(doc string, chunked bool) (string, error) {
	var src io.Reader = strings.NewReader(doc)
	if chunked {
		src = iotest.OneByteReader(src)
	}
	marked, err := io.ReadAll(newExactReader(src))
	if err != nil {
		return "", err
	}
	var v any
	if err := json.Unmarshal(marked, &v); err != nil {
		return "", err
	}
	out, err := exactly(v)
	return string(out), err
}

func TestNumbersStayExact(t *testing.T) {
	for _, doc := range []string{
		`{"a":9007199254740993,"b":[-12345678901234567890,1],"c":"9007199254740993","d":{"e":3.14159265358979323846}}`,
		`[123456789012345678901234567890e-10,0,1.5,true,false,null,"<&>"]`,
		`9007199254740993`,
		`"a \" 9007199254740993 \\"`,
	} {
		for _, chunked := range []bool{false, true} {
			if got, err := through(doc, chunked); err != nil || got != doc {
				t.Errorf("%s became %s (%v)", doc, got, err)
			}
		}
	}
}

// A line of an event stream begins outside of strings, and ids are no numbers.
func TestEventStreamPassesThrough(t *testing.T) {
	const stream = ": it's \"odd\nid: 01a21fd9-82de-7a9c-85b4-aa98519a06c2\ndata: {\"n\":12345678901234567}\n\n"
	out, err := io.ReadAll(newExactReader(strings.NewReader(stream)))
	want := strings.Replace(stream, "12345678901234567", `"`+exactMark+`12345678901234567"`, 1)
	if err != nil || string(out) != want {
		t.Errorf("got %q %v", out, err)
	}
}

func FuzzExact(f *testing.F) {
	f.Add(`{"a":9007199254740993}`)
	f.Add(`[1e5,-0.0,"\\",{"":"\u0000"}]`)
	f.Fuzz(func(t *testing.T, doc string) {
		if !rawjson.Valid([]byte(doc)) || strings.Contains(doc, exactMark) || strings.Contains(doc, `\u`) {
			t.Skip()
		}
		var want any
		if json.Unmarshal([]byte(doc), &want) != nil {
			t.Skip()
		}
		got, err := through(doc, true)
		if err != nil {
			t.Fatalf("%s: %v", doc, err)
		}
		var back any
		if err := json.Unmarshal([]byte(got), &back); err != nil {
			t.Fatalf("%s became %s: %v", doc, got, err)
		}
		a, _ := json.Marshal(want)
		b, _ := json.Marshal(back)
		if string(a) != string(b) {
			t.Errorf("%s became %s", doc, got)
		}
	})
}
