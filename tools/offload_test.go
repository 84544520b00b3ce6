package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/tools"
)

// shelf is a sink that keeps what it is given in memory.
type shelf struct {
	about   []tools.Offload
	content []string
}

func (s *shelf) Offload(_ context.Context, about tools.Offload, r io.Reader) (tools.ArtifactRef, error) {
	b, err := io.ReadAll(r)
	s.about, s.content = append(s.about, about), append(s.content, string(b))
	return tools.ArtifactRef{Ref: "art-1", MIME: about.MIME, SizeBytes: int64(len(b))}, err
}

func offloading(name string) tools.ToolDescriptor {
	return tools.ToolDescriptor{Tool: tools.Tool{Name: name, OutSchema: json.RawMessage(`{"type":"object"}`)},
		Invoke: func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
			call := tools.CallFrom(ctx)
			if !call.Offloads() {
				return tools.ToolResult{Structured: json.RawMessage(`{"whole":true}`)}, nil
			}
			ref, err := call.Offload(ctx, tools.Offload{MIME: "text/plain"}, strings.NewReader("large"))
			return tools.ToolResult{Artifacts: []tools.ArtifactRef{ref}}, err
		}}
}

func TestOffload(t *testing.T) {
	cat := tools.NewCatalog()
	nested := tools.ToolDescriptor{Tool: tools.Tool{Name: "nested"}, Invoke: func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
		return tools.Invoke(ctx, cat, "plain", nil)
	}}
	redacted := offloading("redacted")
	redacted.Tool.Safety.Redaction = "names"
	for _, d := range []tools.ToolDescriptor{offloading("plain"), redacted, nested} {
		if err := cat.Register(d); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		tool    string
		sink    bool
		offload bool
	}{{"plain", true, true}, {"plain", false, false}, {"redacted", true, false}, {"nested", true, false}} {
		var kept shelf
		ctx := t.Context()
		if c.sink {
			ctx = tools.WithEntrance(ctx, tools.Entrance{CallID: "c7", Sink: &kept})
		}
		res, err := tools.Invoke(ctx, cat, c.tool, nil)
		if err != nil {
			t.Errorf("%s: %v", c.tool, err)
			continue
		}
		if !c.offload {
			if string(res.Structured) != `{"whole":true}` || len(kept.content) != 0 {
				t.Errorf("%s: %+v, kept %q", c.tool, res, kept.content)
			}
			continue
		}
		if len(res.Artifacts) != 1 || res.Structured != nil || kept.content[0] != "large" || kept.about[0] != (tools.Offload{MIME: "text/plain", Tool: "plain", CallID: "c7"}) {
			t.Errorf("%s: %+v, kept %q as %+v", c.tool, res, kept.content, kept.about)
		}
	}
}

func TestOffloadWithoutCall(t *testing.T) {
	var c *tools.Call
	if _, err := c.Offload(t.Context(), tools.Offload{}, strings.NewReader("x")); !errors.Is(err, tools.ErrNoSink) || c.Offloads() || c.Sink() != nil {
		t.Errorf("a nil call: %v", err)
	}
}
