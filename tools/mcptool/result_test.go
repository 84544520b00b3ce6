package mcptool

import (
	"encoding/json"
	"testing"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
)

func TestNullIsStructuredWhereAnyTypeIs(t *testing.T) {
	t.Parallel()
	r, err := resultOf(json.RawMessage(`{"structuredContent":null}`), mcpwire.EraStateless, false)
	if raw, ok := r.Value.(json.RawMessage); err != nil || !ok || string(raw) != "null" {
		t.Errorf("Value = %#v, %v", r.Value, err)
	}
}

// Whatever arrives, the views hold what encoding/json finds.
func FuzzResult(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"a"},{"type":"x"}],"isError":true,"_meta":{"a":1}}`))
	f.Add([]byte(`{"structuredContent":[1e400],"content":{},"content":[]}`))
	f.Add([]byte(`{"content":[{"text":"\ud800","type":"text"}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		r, err := resultOf(raw, mcpwire.EraStateful, false)
		if err != nil {
			return
		}
		if string(r.Wire) != string(raw) {
			t.Fatal("Wire changed")
		}
		var members map[string]json.RawMessage
		var blocks []json.RawMessage
		if json.Unmarshal(raw, &members) != nil || json.Unmarshal(members["content"], &blocks) != nil {
			blocks = nil
		}
		if len(blocks) != len(r.Content) {
			t.Fatalf("%d blocks, want %d", len(r.Content), len(blocks))
		}
		for i, c := range r.Content {
			if string(c.JSON) != string(blocks[i]) {
				t.Errorf("block %s, want %s", c.JSON, blocks[i])
			}
		}
		if r.Structured != nil && !json.Valid(r.Structured) {
			t.Errorf("structured: %s", r.Structured)
		}
	})
}
