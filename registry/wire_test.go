package registry

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/toolcrib/toolcrib/tools"
)

// messages are some of each kind that has a quick way.
func messages() []any {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.FixedZone("", 3600))
	call := &ToolCallMessage{Type: TypeCall, ToolUseID: "a\"b\\c\n\u2028é", Tool: "t", Payload: json.RawMessage(`{"a":[1,2.50,"x"]}`),
		Meta: &ToolCallMeta{RunID: "r", SessionID: "s", TurnID: "u", ToolCallID: "c", ParentToolCallID: "p", TenantID: "t", UserID: "v",
			IdempotencyKey: "k", Attempt: 3, Caller: json.RawMessage(`{"x":null}`)},
		TraceParent: "1", TraceState: "2", Baggage: "3", ReplyTo: "4", Deadline: at, Contract: "5",
		Route: &Route{Inbox: "i", Shared: "s", Token: "t", Claim: true, Confirm: true},
		Asks:  &Asks{Sampling: true, ElicitForm: true, ElicitURL: true, Roots: true, Declared: json.RawMessage(`{"elicitation":{}}`), Client: "c"}}
	result := ToolResultMessage{ToolUseID: "a", ResultJSON: json.RawMessage(`"x"`), IsError: true, Meta: json.RawMessage(`{}`),
		Wire: json.RawMessage(`{"content":[]}`), WireKind: "w", Receipt: &Receipt{Instance: "i", Token: "t", TenantID: "n", Notes: 7}}
	failure := ToolResultMessage{ToolUseID: "a", Error: &ToolError{Code: "c", Message: "m"}}
	rich := ToolResultMessage{ToolUseID: "a", Content: []tools.Content{tools.TextContent("x")}, Bounds: &Bounds{Returned: 1}}
	return []any{call, &ToolCallMessage{}, &ToolCallMessage{Type: TypePing, PingID: "p", Meta: &ToolCallMeta{}, Route: &Route{}},
		&ToolCallMessage{ToolUseID: "\xff"}, &ToolCallMessage{Payload: json.RawMessage(`{"a":1,"a":2}`)}, &ToolCallMessage{Payload: json.RawMessage(`{`)},
		result, failure, rich, ToolResultMessage{}, ToolResultMessage{ResultJSON: json.RawMessage(``)}, ToolResultMessage{Receipt: &Receipt{}},
		Claim{ToolUseID: "a", Toolset: "b", Instance: "c", Token: "d", TenantID: "e", Try: 3, Release: true}, Claim{},
		&record{Version: 1, State: stateClaimed, Toolset: "a", Tool: "b", Digest: "c", Token: "d", Accepted: at, Deadline: at, Message: call, Instance: "e", Try: 3, Claimed: at},
		&record{State: stateDone, Result: &result, Finished: at}, &record{State: stateDone, Result: &failure}, &record{}}
}

// What is encoded the quick way says the same as what reflection encodes, and what
// reflection refuses is refused.
func TestQuickEncoding(t *testing.T) {
	for i, m := range messages() {
		if _, quick := quickEncode(m); !quick && i < 3 {
			t.Errorf("%+v is left to reflection; does it have fields that are not written?", m)
		}
		want, fault := jsonv2.Marshal(m)
		got, err := Encode(m)
		if (err == nil) != (fault == nil) {
			t.Errorf("%+v: %v, want %v", m, err, fault)
			continue
		}
		if err != nil {
			continue
		}
		var a, b any
		if json.Unmarshal(want, &a) != nil || json.Unmarshal(got, &b) != nil {
			t.Errorf("%+v: %s, %s", m, want, got)
		}
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("%+v: %s", m, diff)
		}
	}
}

// agree decodes a document both ways, which must give the same where there is a
// quick one.
func agree[T any](t *testing.T, doc []byte) {
	t.Helper()
	var quick, slow T
	if !quickDecode(doc, &quick) {
		return
	}
	if err := jsonv2.Unmarshal(doc, &slow); err != nil {
		t.Fatalf("%q is decoded as %+v, and not by reflection: %v", doc, quick, err)
	}
	if diff := cmp.Diff(slow, quick); diff != "" {
		t.Fatalf("%q: %s", doc, diff)
	}
}

func FuzzQuickDecoding(f *testing.F) {
	for _, m := range messages() {
		if doc, err := jsonv2.Marshal(m); err == nil {
			f.Add(doc)
		}
	}
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		doc, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(doc)
	}
	for _, doc := range []string{`{"type":null}`, `{"meta":null,"route":null}`, `{"payload":null}`, `{"attempt":1.0}`, `{"typ\u0065":"call"}`,
		`{"deadline":"2026-01-02T3:04:05Z"}`, `{"deadline":null}`, ` {"type" : "call" } `, `{"meta":{"attempt":01}}`, `{"release":1}`, `{"release":`, `{"payload":`, `{"deadline":`,
		`{"tool_use_id":"\ud800"}`, `{"meta":{"attempt":+1}}`, `{"meta":{"attempt":99999999999999999999}}`, strings.Repeat(`{"meta":`, 1100)} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		agree[ToolCallMessage](t, doc)
		agree[ToolResultMessage](t, doc)
		agree[Claim](t, doc)
	})
}

func BenchmarkMessages(b *testing.B) {
	m := messages()[0].(*ToolCallMessage)
	m.ToolUseID, m.Payload = "KXZ2W6N3ZQ3KXZ2W6N3ZQ3KXZ2", json.RawMessage(`{"text":"`+strings.Repeat("x", 1000)+`"}`)
	doc, err := Encode(m)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			if _, err := Encode(m); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			if _, err := DecodeCall(doc); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("reflection", func(b *testing.B) {
		for b.Loop() {
			var out ToolCallMessage
			if err := jsonv2.Unmarshal(doc, &out); err != nil {
				b.Fatal(err)
			}
			if _, err := jsonv2.Marshal(m); err != nil {
				b.Fatal(err)
			}
		}
	})
}
