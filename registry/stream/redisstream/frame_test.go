package redisstream

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/toolcrib/toolcrib/registry/stream"
)

func FuzzFrame(f *testing.F) {
	f.Add("", []byte{})
	f.Add("inbox", []byte("\x02ab\x00\x01x{}"))
	f.Add("n", []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, name string, b []byte) {
		if got, err := decodeFrame(string(b)); err == nil {
			again, err := decodeFrame(string(got.encode()))
			if err != nil || again.inbox != got.inbox || again.number != got.number || again.message.Name != got.message.Name {
				t.Errorf("%q became %+v, then %+v, %v", b, got, again, err)
			}
		}
		want := frame{inbox: name, number: "7", message: stream.Message{Name: name, Payload: b}}
		got, err := decodeFrame(string(want.encode()))
		if err != nil || got.inbox != name || got.number != "7" || got.message.Name != name || !bytes.Equal(got.message.Payload, b) {
			t.Errorf("%+v became %+v, %v", want, got, err)
		}
	})
}

func TestKeys(t *testing.T) {
	for _, tt := range []struct{ name, want string }{
		{"toolset:weather:requests", "pulse:stream:toolset:weather:requests"},
		{"größe-1_a.b", "pulse:stream:größe-1_a.b"},
		{"a {b}*?[c]", "pulse:stream:a%20%7Bb%7D%2A%3F%5Bc%5D"},
		{"50%", "pulse:stream:50%25"},
	} {
		if got := keysOf(tt.name); got.stream != tt.want || got.state != "{"+tt.want+"}:state" || got.later != "{"+tt.want+"}:later" {
			t.Errorf("keysOf(%q) = %+v", tt.name, got)
		}
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("a", "a%20")
	f.Add("{x}", "%7Bx%7D")
	f.Fuzz(func(t *testing.T, one, other string) {
		if one != other && escape(one) == escape(other) && stream.CheckName("stream", one) == nil && stream.CheckName("stream", other) == nil {
			t.Errorf("%q and %q have the same key", one, other)
		}
	})
}

// Whether a command may be sent again depends on what became of it.
func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want verdict
	}{
		{nil, answered},
		{redis.Nil, answered},
		{refused("OOM command not allowed when used memory > 'maxmemory'."), answered},
		{refused("WRONGPASS invalid username-password pair"), answered},
		{refused("LOADING Redis is loading the dataset in memory"), unsent},
		{refused("READONLY You can't write against a read only replica."), unsent},
		{refused("NOSCRIPT No matching script."), unloaded},
		{&dialError{io.EOF}, unsent},
		{io.EOF, broken},
		{io.ErrUnexpectedEOF, broken},
	} {
		if got := judge(tt.err); got != tt.want {
			t.Errorf("judge(%v) = %v, want %v", tt.err, got, tt.want)
		}
	}
	if err := unavailable(io.EOF); !errors.Is(err, stream.ErrUnavailable) || !errors.Is(err, io.EOF) {
		t.Errorf("unavailable = %v", err)
	}
}

// refused is an answer of Redis that is an error.
type refused string

func (r refused) Error() string { return string(r) }
func (refused) RedisError()     {}
