package artifacts_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/toolcrib/toolcrib/artifacts"
	"github.com/toolcrib/toolcrib/tools"
)

var reader = &tools.Tool{Name: "reader"}

func (f *fixture) bound(t testing.TB, bounds *artifacts.Bounds, res tools.ToolResult) tools.ToolResult {
	t.Helper()
	out, err := f.Bounder(bounds).Bound(ada(t), reader, res)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// kept returns the content of the only artifact of a result.
func (f *fixture) kept(t testing.TB, res tools.ToolResult) (tools.ArtifactRef, string) {
	t.Helper()
	if len(res.Artifacts) != 1 {
		t.Fatalf("%d artifacts, want one: %+v", len(res.Artifacts), res.Artifacts)
	}
	content, err := f.read(ada(t), res.Artifacts[0].Ref, artifacts.Section{})
	if err != nil {
		t.Fatal(err)
	}
	return res.Artifacts[0], content
}

func text(parts ...string) tools.ToolResult {
	var res tools.ToolResult
	for _, p := range parts {
		res.Content = append(res.Content, tools.TextContent(p))
	}
	return res
}

func TestBoundLeavesWhatIsSmall(t *testing.T) {
	f := newFixture(t, artifacts.Options{})
	for _, res := range []tools.ToolResult{
		{}, text("x"), text(strings.Repeat("x", artifacts.DefaultThreshold)), {Value: map[string]any{"a": 1.0}}, {Structured: json.RawMessage(`{"a":1}`), Wire: json.RawMessage(`{}`)},
		{Content: []tools.Content{tools.ImageContent(make([]byte, 20_000), "image/png")}, IsError: true, CallID: "c"},
	} {
		if diff := cmp.Diff(res, f.bound(t, nil, res)); diff != "" {
			t.Errorf("a small result changed: %s", diff)
		}
	}
	f.empty(t)
}

func TestBoundText(t *testing.T) {
	f := newFixture(t, artifacts.Options{})
	var log strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&log, "line %d\n", i)
	}
	out := f.bound(t, nil, tools.ToolResult{Value: log.String(), Content: []tools.Content{tools.TextContent(log.String())}, CallID: "c1",
		Provider: map[string]any{"content_type": "text/x-log; charset=latin1"}, Wire: json.RawMessage(`{"big":1}`)})
	ref, content := f.kept(t, out)
	if content != log.String() || ref.MIME != "text/x-log" || ref.SizeBytes != int64(log.Len()) {
		t.Errorf("kept %d bytes as %+v", len(content), ref)
	}
	info, err := f.Stat(ada(t), ref.Ref)
	if err != nil || info.Tool != "reader" || info.CallID != "c1" {
		t.Errorf("Stat = %+v, %v", info, err)
	}
	shown := out.Text()
	if out.Value != nil || out.Structured != nil || out.Wire != nil || len(out.Content) != 1 || len(shown) > 5000 {
		t.Errorf("%d bytes are left: %+v", len(shown), out)
	}
	want := fmt.Sprintf(`{"ref":%q,"mime":"text/x-log","size":%d}`, ref.Ref, log.Len())
	if !strings.HasPrefix(shown, "line 0\nline 1\n") || !strings.Contains(shown, artifacts.FetchTool) || !strings.HasSuffix(shown, want) {
		t.Errorf("the preview is %q", shown)
	}
	if head, _, _ := strings.Cut(shown, "\n[Shown is the first "); !strings.HasPrefix(log.String(), head+"\n") || len(head) < 3000 {
		t.Errorf("the preview ends at no line: %q", head[max(len(head)-20, 0):])
	}
}

func TestBoundJSON(t *testing.T) {
	f := newFixture(t, artifacts.Options{})
	rows := make([]map[string]any, 1000)
	for i := range rows {
		rows[i] = map[string]any{"id": i, "body": strings.Repeat("é", 600)}
	}
	value := map[string]any{"status": "ok", "total": 1000, "rows": rows}
	for name, res := range map[string]tools.ToolResult{
		"value":      {Value: value},
		"structured": {Structured: encode(t, value)},
		"text":       text(string(encode(t, value))),
		"both":       {Structured: encode(t, value), Content: text(string(encode(t, value))).Content},
	} {
		out := f.bound(t, nil, res)
		ref, content := f.kept(t, out)
		if !json.Valid([]byte(content)) || len(content) < 1000 || ref.MIME != "application/json" || out.Structured != nil || out.Value != nil {
			t.Errorf("%s: kept %d bytes as %+v", name, len(content), ref)
		}
		head, _, _ := strings.Cut(out.Text(), "\n[Shown is an excerpt;")
		var seen struct {
			Status string
			Total  int
			Rows   []any
		}
		if err := json.Unmarshal([]byte(head), &seen); err != nil || seen.Status != "ok" || seen.Total != 1000 || len(seen.Rows) < 2 ||
			!strings.Contains(head, `more of 1000"`) || !strings.Contains(head, "é… (1200 bytes)") || len(head) > 4096 {
			t.Errorf("%s: the preview is %v %q", name, err, head)
		}
	}
}

func encode(t testing.TB, v any) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestBoundMedia(t *testing.T) {
	f := newFixture(t, artifacts.Options{})
	data := strings.Repeat("\x89PNG\x00\xff", 10_000)
	blob := `{"type":"resource","resource":{"uri":"file:///a/b.pdf?x=1","mimeType":"application/pdf","blob":"` + base64.StdEncoding.EncodeToString([]byte(data)) + `"}}`
	handlers := func(_ context.Context, mime string) []string {
		if mime == "application/pdf" {
			return []string{"pdf_text", "pdf_pages"}
		}
		return nil
	}
	for _, c := range []struct {
		block      tools.Content
		mime, name string
		said       string
	}{
		{tools.ImageContent([]byte(data), "image/png"), "image/png", "", `"mime":"image/png","size":60000}`},
		{tools.AudioContent([]byte(data), "audio/wav"), "audio/wav", "", `"size":60000}`},
		{tools.Content{Type: "resource", JSON: json.RawMessage(blob)}, "application/pdf", "b.pdf", `"handled_by":["pdf_text","pdf_pages"]}`},
	} {
		out := f.bound(t, &artifacts.Bounds{Handlers: handlers}, tools.ToolResult{Content: []tools.Content{tools.TextContent("before"), c.block}})
		ref, content := f.kept(t, out)
		info, err := f.Stat(ada(t), ref.Ref)
		if content != data || ref.MIME != c.mime || err != nil || info.Name != c.name {
			t.Errorf("%s: kept %d bytes as %+v, %v", c.mime, len(content), info, err)
		}
		if shown := out.Text(); !strings.HasPrefix(shown, "before\n[60000 bytes of "+c.mime) || !strings.HasSuffix(shown, c.said) {
			t.Errorf("%s: %q", c.mime, shown)
		}
	}
	image := tools.ToolResult{Content: []tools.Content{tools.ImageContent([]byte(data), "image/png")}}
	if out := f.bound(t, &artifacts.Bounds{MediaBytes: 100_000}, image); len(out.Artifacts) != 0 || len(out.Content) != 1 || out.Content[0].Type != "image" {
		t.Errorf("an image that may stay: %+v", out.Artifacts)
	}
}

func TestBoundOddBlocks(t *testing.T) {
	f := newFixture(t, artifacts.Options{})
	long := strings.Repeat("0123456789", 5000)
	for _, c := range []struct{ block, kept, mime string }{
		{`{"type":"resource","resource":{"uri":"x://y/notes.md","mimeType":"text/markdown","text":"` + long + `"}}`, long, "text/markdown"},
		{`{"type":"hologram","payload":"` + long + `"}`, "", "application/json"},
		{`{"type":"image","data":"!` + long + `","mimeType":"image/png"}`, "", "application/json"},
		{`{"type":"resource","resource":{"uri":5,"text":7,"pad":"` + long + `"}}`, "", "application/json"},
	} {
		block := tools.Content{JSON: json.RawMessage(c.block)}
		if err := json.Unmarshal([]byte(c.block), &block); err != nil {
			t.Fatal(err)
		}
		out := f.bound(t, nil, tools.ToolResult{Content: []tools.Content{block}})
		ref, content := f.kept(t, out)
		if want := c.kept; want == "" && content != c.block || want != "" && content != want || ref.MIME != c.mime {
			t.Errorf("%.40s: kept %.40q as %s", c.block, content, ref.MIME)
		}
	}
}

// Many small blocks are heavy together.
func TestBoundManyBlocks(t *testing.T) {
	f := newFixture(t, artifacts.Options{})
	var parts []string
	for i := range 1000 {
		parts = append(parts, fmt.Sprintf("block %d %s", i, strings.Repeat("x", 100)))
	}
	out := f.bound(t, nil, text(parts...))
	_, content := f.kept(t, out)
	var whole struct{ Content []struct{ Text string } }
	if err := json.Unmarshal([]byte(content), &whole); err != nil || len(whole.Content) != 1000 || whole.Content[999].Text != parts[999] {
		t.Errorf("kept %d blocks, %v", len(whole.Content), err)
	}
	if shown := out.Text(); !strings.HasPrefix(shown, "block 0 xxx") || len(shown) > 5000 {
		t.Errorf("%d bytes: %.100q", len(shown), shown)
	}
}

// The smaller parts stay when storing the largest is enough.
func TestBoundKeepsSmallParts(t *testing.T) {
	f := newFixture(t, artifacts.Options{})
	res := text("a note", strings.Repeat("x", 40_000), strings.Repeat("y", 10_000))
	res.Structured = json.RawMessage(`{"n":1}`)
	out := f.bound(t, nil, res)
	if _, content := f.kept(t, out); content != strings.Repeat("x", 40_000) {
		t.Errorf("kept %.10q", content)
	}
	if string(out.Structured) != `{"n":1}` || len(out.Content) != 3 || !strings.Contains(out.Text(), strings.Repeat("y", 10_000)) {
		t.Errorf("%d blocks and %s are left", len(out.Content), out.Structured)
	}
}

func TestBoundLeavesFetchAlone(t *testing.T) {
	f := newFixture(t, artifacts.Options{})
	info := f.put(t, ada(t), strings.Repeat("x", 1<<20), artifacts.Meta{})
	fetched := f.fetch(t, artifacts.FetchArgs{Ref: info.Ref, MaxBytes: 1 << 20})
	for _, c := range []struct {
		tool string
		res  tools.ToolResult
	}{{"anything", tools.ToolResult{Value: fetched}}, {artifacts.FetchTool, tools.ToolResult{Structured: encode(t, fetched)}}} {
		out, err := f.Bounder(nil).Bound(ada(t), &tools.Tool{Name: c.tool}, c.res)
		if err != nil || len(out.Artifacts) != 0 || out.Structured == nil && out.Value == nil {
			t.Errorf("%s: %+v, %v", c.tool, out.Artifacts, err)
		}
	}
}

// When there is no room, the model sees a preview, and that the rest is lost.
func TestBoundWithoutRoom(t *testing.T) {
	f := newFixture(t, artifacts.Options{Tenant: artifacts.Quota{Bytes: 1000}})
	heavy := text(strings.Repeat("a line of text\n", 10_000))
	out := f.bound(t, nil, heavy)
	if shown := out.Text(); len(out.Artifacts) != 0 || len(shown) > 5000 || !strings.HasPrefix(shown, "a line of text\n") || !strings.Contains(shown, "The rest is lost: the tenant already keeps") {
		t.Errorf("%+v, %q", out.Artifacts, shown[max(0, len(shown)-200):])
	}
	nobody, err := f.Bounder(nil).Bound(t.Context(), reader, heavy)
	if err != nil || len(nobody.Text()) > 5000 || !strings.Contains(nobody.Text(), "belong to somebody") {
		t.Errorf("without an identity: %d bytes, %v", len(nobody.Text()), err)
	}
	ctx, cancel := context.WithCancel(ada(t))
	cancel()
	if _, err := f.Bounder(nil).Bound(ctx, reader, heavy); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// What a driver has stored already is shown like what is stored here.
func TestBoundExplainsArtifacts(t *testing.T) {
	f := newFixture(t, artifacts.Options{})
	rows := `{"kind":"list","rows":[` + strings.Repeat(`{"a":"`+strings.Repeat("x", 50)+`","n":12},`, 20_000) + `{}]}`
	stored := f.put(t, ada(t), rows, artifacts.Meta{MIME: "application/json"}).Artifact()
	out := f.bound(t, nil, tools.ToolResult{Artifacts: []tools.ArtifactRef{stored}})
	head, foot, _ := strings.Cut(out.Text(), "\n[Shown is an excerpt;")
	if !json.Valid([]byte(head)) || !strings.HasPrefix(head, `{"kind":"list","rows":[{"a":"`) || !strings.Contains(foot, stored.Ref) || len(out.Artifacts) != 1 {
		t.Errorf("%+v: %q %q", out.Artifacts, head, foot)
	}
	again := f.bound(t, nil, out)
	if diff := cmp.Diff(out, again); diff != "" {
		t.Errorf("a bounded result changed: %s", diff)
	}
	kept := text("before")
	kept.Content = append(kept.Content, stored.Link(), tools.TextContent("after"))
	kept.Artifacts = []tools.ArtifactRef{stored}
	between := f.bound(t, nil, kept)
	if len(between.Content) != 3 || between.Content[2].Type != "text" {
		t.Fatalf("%d blocks: %.300s", len(between.Content), between.Text())
	}
	if shown, _ := between.Content[1].Text(); !strings.HasPrefix(shown, `{"kind":"list"`) || !strings.Contains(shown, stored.Ref) || len(between.Artifacts) != 1 {
		t.Errorf("in the place of a link: %.300q", shown)
	}
	foreign := f.bound(t, nil, tools.ToolResult{Artifacts: []tools.ArtifactRef{{Ref: "art-elsewhere", MIME: "text/plain", SizeBytes: 9}}})
	if !strings.Contains(foreign.Text(), `[9 bytes of text/plain are kept as an artifact`) {
		t.Errorf("of another store: %q", foreign.Text())
	}
}

// Many that are stored are shown in less each.
func TestBoundExplainsManyArtifacts(t *testing.T) {
	f := newFixture(t, artifacts.Options{})
	var res tools.ToolResult
	for range 33 {
		stored := f.put(t, ada(t), strings.Repeat("a line of text\n", 1000), artifacts.Meta{MIME: "text/plain"}).Artifact()
		res.Artifacts, res.Content = append(res.Artifacts, stored), append(res.Content, stored.Link())
	}
	out := f.bound(t, nil, res)
	if shown := out.Text(); len(shown) > artifacts.DefaultThreshold || len(out.Content) != 33 || strings.Count(shown, "a line of text") < 33 || len(out.Artifacts) != 33 {
		t.Errorf("%d blocks, %d bytes, %d artifacts", len(out.Content), len(shown), len(out.Artifacts))
	}
}

// Whatever a result is made of, it is small afterwards, and nothing of it is lost.
func TestBoundHolds(t *testing.T) {
	f := newFixture(t, artifacts.Options{Tenant: artifacts.Quota{Bytes: -1, Count: -1}})
	rapid.Check(t, func(rt *rapid.T) {
		threshold := rapid.SampledFrom([]int{4 << 10, 8 << 10, artifacts.DefaultThreshold}).Draw(rt, "threshold")
		var res tools.ToolResult
		for range rapid.IntRange(0, 6).Draw(rt, "blocks") {
			res.Content = append(res.Content, drawBlock(rt))
		}
		if rapid.Bool().Draw(rt, "structured") {
			res.Structured = drawJSON(rt)
		}
		out := f.bound(t, &artifacts.Bounds{Threshold: threshold}, res)
		size := len(out.Structured)
		for _, c := range out.Content {
			if said, ok := c.Text(); ok {
				size += len(said)
				if !utf8.ValidString(said) {
					rt.Fatalf("a rune was cut: %q", said)
				}
			} else if c.Type != "image" {
				size += len(c.JSON)
			} else if len(c.JSON) > threshold {
				rt.Fatalf("an image of %d bytes stayed", len(c.JSON))
			}
			if !json.Valid(c.JSON) {
				rt.Fatalf("no JSON: %s", c.JSON)
			}
		}
		if size > threshold {
			rt.Fatalf("%d bytes are left, and %d may", size, threshold)
		}
		for _, a := range out.Artifacts {
			if !strings.Contains(out.Text(), a.Ref) {
				rt.Fatalf("%s is not named", a.Ref)
			}
		}
	})
}

func drawBlock(rt *rapid.T) tools.Content {
	size := rapid.SampledFrom([]int{1, 100, 3000, 20_000, 60_000}).Draw(rt, "size")
	fill := rapid.SampledFrom([]string{"x", "é\n", "日本 ", `{"a":1}`, "\x00", "𝄞"}).Draw(rt, "fill")
	body := strings.Repeat(fill, size/len(fill)+1)
	switch rapid.IntRange(0, 3).Draw(rt, "kind") {
	case 0:
		return tools.ImageContent([]byte(body), "image/png")
	case 1:
		return tools.EmbeddedResource("x://y", "text/plain", body)
	case 2:
		return tools.TextContent(string(drawJSON(rt)))
	}
	return tools.TextContent(body)
}

func drawJSON(rt *rapid.T) json.RawMessage {
	n := rapid.SampledFrom([]int{1, 50, 2000}).Draw(rt, "items")
	value := rapid.SampledFrom([]string{`1`, `"é\u00e9\ud834\udd1e\\"`, `{"k":[[[[[[[[[[1]]]]]]]]]]}`, `"` + strings.Repeat("日", 5000) + `"`, strings.Repeat("1", 300)}).Draw(rt, "item")
	switch rapid.IntRange(0, 2).Draw(rt, "form") {
	case 0:
		return json.RawMessage("[" + strings.Repeat(value+",", min(n, 100)) + "null]")
	case 1:
		var b strings.Builder
		for i := range min(n, 200) {
			fmt.Fprintf(&b, `"key%d":%s,`, i, value)
		}
		return json.RawMessage("{" + b.String() + `"last":true}`)
	}
	return json.RawMessage(strings.Repeat(`{"a":`, min(n, 500)) + value + strings.Repeat("}", min(n, 500)))
}
