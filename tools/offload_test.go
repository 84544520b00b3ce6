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

	retracted []string
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

// Retract implements tools.Retractor.
func (s *shelf) Retract(_ context.Context, ref string) error {
	s.retracted = append(s.retracted, ref)
	return nil
}

// What a call has kept aside is taken back when it fails in the end.
func TestCallsThatFailKeepNothing(t *testing.T) {
	no := &tools.Error{Class: tools.ErrClassPermanent, Message: "no"}
	keep := func(ctx context.Context) (*tools.Call, tools.ArtifactRef) {
		call := tools.CallFrom(ctx)
		ref, err := call.Offload(ctx, tools.Offload{}, strings.NewReader("large"))
		if err != nil {
			t.Error(err)
		}
		return call, ref
	}
	var late *tools.Call
	for name, c := range map[string]struct {
		invoke tools.Invoker
		want   string
	}{
		"with an output that is refused": {func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
			_, ref := keep(ctx)
			return tools.ToolResult{Structured: json.RawMessage(`[]`), Artifacts: []tools.ArtifactRef{ref}}, nil
		}, "art-1"},
		"with an error": {func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
			late, _ = keep(ctx)
			return tools.ToolResult{}, no
		}, "art-1"},
		"after the tool took it back": {func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
			call, ref := keep(ctx)
			return tools.ToolResult{}, errors.Join(no, call.Retract(ctx, ref))
		}, "art-1"},
		"not at all": {func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
			_, ref := keep(ctx)
			return tools.ToolResult{Artifacts: []tools.ArtifactRef{ref}}, nil
		}, ""},
	} {
		cat := tools.NewCatalog()
		if err := cat.Register(tools.ToolDescriptor{Tool: tools.Tool{Name: "t", OutSchema: json.RawMessage(`{"type":"object"}`)}, Invoke: c.invoke}); err != nil {
			t.Fatal(err)
		}
		var kept shelf
		_, err := tools.Invoke(tools.WithEntrance(t.Context(), tools.Entrance{Sink: &kept}), cat, "t", nil)
		if got := strings.Join(kept.retracted, " "); got != c.want || (err == nil) != (c.want == "") {
			t.Errorf("%s: taken back were %q, %v", name, got, err)
		}
		if name == "with an error" {
			if _, err := late.Offload(t.Context(), tools.Offload{}, strings.NewReader("late")); err == nil || len(kept.retracted) != 2 {
				t.Errorf("a tool that goes on: %q, %v", kept.retracted, err)
			}
		}
	}
}

// veil is a redactor that changes nothing.
type veil struct{}

func (veil) Redact(context.Context, *tools.Tool, *tools.ToolResult) error { return nil }

// Nothing of a call that began under a redactor is kept aside, nor is it after
// somebody asked for the whole.
func TestNothingIsKeptAsideOfWhatIsRedacted(t *testing.T) {
	var cat tools.LiveCatalog
	plain := offloading("plain")
	unveiled := plain.Invoke
	plain.Invoke = func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
		cat.SwapStages(tools.Stages{}) // too late for this call
		return unveiled(ctx, args)
	}
	whole := func(next tools.Invoker) tools.Invoker {
		return func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
			tools.CallFrom(ctx).KeepWhole()
			return next(ctx, args)
		}
	}
	for name, opts := range map[string][]tools.CatalogOption{
		"a redactor": {tools.WithStages(tools.Stages{Redactor: veil{}})},
		"middleware": {tools.WithMiddleware(whole)},
	} {
		cat = tools.NewCatalog(opts...).(tools.LiveCatalog)
		if err := cat.Register(plain); err != nil {
			t.Fatal(err)
		}
		var kept shelf
		ctx := tools.WithEntrance(t.Context(), tools.Entrance{Sink: &kept})
		res, err := tools.Invoke(ctx, cat, "plain", nil)
		if err != nil || string(res.Structured) != `{"whole":true}` || len(kept.content) != 0 {
			t.Errorf("%s: %+v, %v, kept %q", name, res, err, kept.content)
		}
	}
}
