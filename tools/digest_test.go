package tools

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// TestDigest checks the digest of a definition by another way to write it.
func TestDigest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flag := rapid.SampledFrom([]Flag{Unset, No, Yes})
		schema := json.RawMessage(`{"type":"object"}`)
		tool := Tool{
			Name: rapid.String().Draw(t, "name"), Title: rapid.String().Draw(t, "title"), SafetyNotes: rapid.String().Draw(t, "notes"),
			Description: rapid.SampledFrom([]string{"", "described", "elsewhere"}).Draw(t, "description"),
			Definition:  json.RawMessage(rapid.SampledFrom([]string{"", `{}`, `{"description":"described","inputSchema":{"type":"object"}}`}).Draw(t, "definition")),
			ArgsSchema:  rapid.SampledFrom([]json.RawMessage{nil, schema, json.RawMessage(`{}`)}).Draw(t, "in"),
			OutSchema:   rapid.SampledFrom([]json.RawMessage{nil, schema}).Draw(t, "out"),
			Safety: Safety{ReadOnly: flag.Draw(t, "r"), Destructive: flag.Draw(t, "d"), Idempotent: flag.Draw(t, "i"), OpenWorld: flag.Draw(t, "o"),
				Filesystem: flag.Draw(t, "f"), Process: flag.Draw(t, "p"), Spend: flag.Draw(t, "s"), NeedsConfirmation: flag.Draw(t, "n"),
				WorkspaceRoot: rapid.String().Draw(t, "root"), Redaction: rapid.String().Draw(t, "redaction")},
			Kind: rapid.SampledFrom([]Kind{KindTool, KindPrompt}).Draw(t, "kind"),
		}
		if got, want := definitionDigest(&tool), writtenDigest(&tool); got != want {
			t.Fatalf("%+v: got %s, want %s", tool, got, want)
		}
	})
}

// writtenDigest hashes part by part, with what is known of effects as
// encoding/json writes it.
func writtenDigest(t *Tool) string {
	h := sha256.New()
	number := func(n int) { h.Write(binary.LittleEndian.AppendUint64(nil, uint64(n))) }
	text := func(b []byte) { number(len(b)); h.Write(b) }
	within := func(part []byte) {
		at := bytes.Index(t.Definition, part)
		if len(part) == 0 {
			at = -1
		}
		if number(at); at < 0 {
			text(part)
		} else {
			number(len(part))
		}
	}
	safety, _ := json.Marshal(t.Safety)
	text([]byte(t.Name))
	text([]byte(t.Title))
	text(t.Definition)
	within([]byte(t.Description))
	within(t.ArgsSchema)
	within(t.OutSchema)
	text([]byte(t.SideEffects))
	text(safety)
	text([]byte(t.SafetyNotes))
	text([]byte(t.Kind))
	return fmt.Sprintf("%x", h.Sum(nil))
}
