package api

import (
	"encoding/json"
	"errors"
	"testing"
)

// A request that is taken is one that encoding/json takes too, and means the
// same.
func FuzzDecodeCall(f *testing.F) {
	for _, seed := range []string{
		`{"name":"a","arguments":{"n":9007199254740993}}`, `{"name":"\u0061","meta":{}}`, `{"nam":"a"}`,
		`{"name":7}`, `{"name":"a","name":"b"}`, `[]`, `{} {}`, `{"name":null,"arguments":null}`, "", `{"arguments":[1,2`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := decodeCall(raw)
		if err != nil {
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Fatalf("an error of another type: %T", err)
			}
			return
		}
		var want struct {
			Name           string          `json:"name"`
			Arguments      json.RawMessage `json:"arguments"`
			IdempotencyKey string          `json:"idempotency_key"`
			Meta           json.RawMessage `json:"meta"`
		}
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatalf("%q was taken, but %v", raw, err)
		}
		if want.Name != got.Name || want.IdempotencyKey != got.IdempotencyKey {
			t.Errorf("%q: got %+v, want %+v", raw, got, want)
		}
		if args := string(want.Arguments); args != "null" && args != string(got.Arguments) {
			t.Errorf("%q: the arguments became %q", raw, got.Arguments)
		}
	})
}

func FuzzDecodeList(f *testing.F) {
	f.Add([]byte(`{"filter":{"tags":["a"],"search":"x"},"page":1,"page_size":200}`))
	f.Add([]byte(`{"filter":{"tags":[1]},"page":1e3}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if _, err := decodeList(raw); err != nil {
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Fatalf("%q: an error of another type: %T %v", raw, err, err)
			}
		}
	})
}
