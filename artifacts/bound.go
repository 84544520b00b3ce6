package artifacts

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// DefaultThreshold is the size above which a result is heavy, in bytes.
const DefaultThreshold = 32 << 10

const (
	defaultPreview = 4 << 10
	minPreview     = 200
	// minItem is the least size of a part that is stored by itself; with its
	// preview and its reference a smaller one would hardly shrink.
	minItem = 2 << 10
	// maxHandlers bounds the tools that a reference names.
	maxHandlers = 5
)

// Bounds says what a bounded result is. Nil means the defaults.
type Bounds struct {
	// Threshold is the size in bytes that a result may have: of its text, its
	// structured content and its media, encoded as a model would get them.
	// Zero means DefaultThreshold.
	Threshold int
	// Preview is how many bytes are shown of what is stored; zero means 4 KiB,
	// or less where that is a large part of the threshold.
	Preview int
	// MediaBytes is the size up to which an image or a sound stays in the
	// result, as base64; zero means Threshold. Media do not count for the
	// threshold then.
	MediaBytes int
	// Handlers names the tools that the caller on ctx sees and that take a
	// media type. Nil names none.
	Handlers func(ctx context.Context, mime string) []string
}

// A Bounder makes results small enough for a model. It is safe for concurrent
// use.
type Bounder struct {
	store  *Store
	bounds Bounds
}

var (
	_ tools.Sink      = (*Bounder)(nil)
	_ tools.Retractor = (*Bounder)(nil)
)

// Bounder returns a bounder that keeps in s what is heavy.
func (s *Store) Bounder(bounds *Bounds) *Bounder {
	b := &Bounder{store: s}
	if bounds != nil {
		b.bounds = *bounds
	}
	if b.bounds.Threshold <= 0 {
		b.bounds.Threshold = DefaultThreshold
	}
	if b.bounds.Preview <= 0 {
		b.bounds.Preview = min(defaultPreview, b.bounds.Threshold/4)
	}
	if b.bounds.MediaBytes <= 0 {
		b.bounds.MediaBytes = b.bounds.Threshold
	}
	return b
}

// Store returns where the bounder keeps what is heavy.
func (b *Bounder) Store() *Store { return b.store }

// Offload implements tools.Sink, for the Entrance of calls whose results are
// bounded afterwards.
func (b *Bounder) Offload(ctx context.Context, about tools.Offload, r io.Reader) (tools.ArtifactRef, error) {
	return b.store.Offload(ctx, about, r)
}

// Retract implements tools.Retractor.
func (b *Bounder) Retract(ctx context.Context, ref string) error { return b.store.Retract(ctx, ref) }

// Bound returns a result that is not larger than the threshold, for the caller
// on ctx. What is heavy is stored; a preview and a reference to it stand in its
// place, and ToolResult.Artifacts names it. A result that is small comes back as
// it is, and so does the answer of FetchTool.
//
// When something cannot be stored, its preview says so, and the result is small
// all the same. The error is that of ctx.
func (b *Bounder) Bound(ctx context.Context, tool *tools.Tool, res tools.ToolResult) (tools.ToolResult, error) {
	if tool == nil {
		tool = &tools.Tool{}
	}
	if _, ok := res.Value.(FetchResult); ok || tool.Name == FetchTool {
		return res, nil
	}
	if b.isPlainlySmall(&res) {
		return res, nil
	}
	w, err := b.unfold(ctx, tool, res)
	if err != nil {
		return tools.ToolResult{}, err
	}
	w.explainArtifacts()
	w.storeMedia()
	w.storeLargest()
	if w.size() > b.bounds.Threshold {
		w.storeAll()
	}
	if err := ctx.Err(); err != nil {
		return tools.ToolResult{}, err
	}
	return w.fold(), nil
}

// isPlainlySmall tells most results from those that must be looked at.
func (b *Bounder) isPlainlySmall(res *tools.ToolResult) bool {
	if len(res.Artifacts) > 0 || res.Structured == nil && res.Value != nil && len(res.Content) == 0 {
		return false
	}
	n := len(res.Structured)
	for _, c := range res.Content {
		n += len(c.JSON)
	}
	return n <= b.bounds.Threshold && n <= b.bounds.MediaBytes
}

// part is a part of a result.
type part struct {
	block      tools.Content // as it was; empty for structured content
	structured json.RawMessage
	size       int // as a model would get it
	kept       bool
	text       string // what stands in its place, when it is kept elsewhere
}

// bounding is a result on its way to being bounded.
type bounding struct {
	*Bounder
	ctx   context.Context
	tool  *tools.Tool
	res   tools.ToolResult
	parts []part
	given int  // how many artifacts came with the result
	same  bool // the structured content is the text once more
	dirty bool
}

// unfold takes a result apart.
func (b *Bounder) unfold(ctx context.Context, tool *tools.Tool, res tools.ToolResult) (*bounding, error) {
	w := &bounding{Bounder: b, ctx: ctx, tool: tool, res: res, given: len(res.Artifacts)}
	for _, c := range res.Content {
		w.parts = append(w.parts, part{block: c, size: sizeOf(c)})
	}
	structured, err := res.JSON()
	if err != nil {
		return nil, &tools.Error{Code: tools.ErrToolInvalidOutput, Class: tools.ErrClassPermanent, Delivery: tools.Answered,
			Message: "the result cannot be encoded as JSON", Err: err}
	}
	if _, isText := res.Value.(string); isText && len(res.Content) > 0 && res.Structured == nil {
		structured = nil // the value is the text of the content
	}
	if structured != nil {
		w.same = len(res.Content) == 1 && sameJSON(res.Content[0], structured)
		w.parts = append(w.parts, part{structured: structured, size: len(structured)})
	}
	return w, nil
}

func sizeOf(c tools.Content) int {
	if raw, ok := rawjson.Get(c.JSON, "text"); ok && c.Type == "text" && rawjson.KindOf(raw) == rawjson.KindString {
		if text, ok := rawjson.Unquote(raw); ok {
			return len(text)
		}
	}
	return len(c.JSON)
}

// sameJSON reports whether a text block is a JSON value written out.
func sameJSON(c tools.Content, value []byte) bool {
	text, ok := c.Text()
	if !ok {
		return false
	}
	one, err := rawjson.Compact([]byte(text))
	if err != nil {
		return false
	}
	other, err := rawjson.Compact(value)
	return err == nil && bytes.Equal(one, other)
}

// size is what a model would get, without media that stay.
func (w *bounding) size() int {
	n := 0
	for i := range w.parts {
		switch p := &w.parts[i]; {
		case p.kept:
			n += len(p.text)
		case p.structured != nil && w.same, p.isMedia():
		default:
			n += p.size
		}
	}
	return n
}

// isMedia reports whether a part is something that a model looks at or listens
// to, rather than reads.
func (p *part) isMedia() bool { return p.block.Type == "image" || p.block.Type == "audio" }

// explainArtifacts shows what drivers have stored already: in the place of the
// links that stand for it, or at the end where no text of the result speaks of it.
func (w *bounding) explainArtifacts() {
	if w.given == 0 {
		return
	}
	preview := min(w.bounds.Preview, max(w.bounds.Threshold/2/w.given, minPreview))
	for _, ref := range w.res.Artifacts {
		link := ref.Link()
		at := slices.IndexFunc(w.parts, func(p part) bool { return bytes.Equal(p.block.JSON, link.JSON) })
		switch {
		case at >= 0:
			w.parts[at].kept, w.parts[at].text, w.dirty = true, w.glimpse(ref, preview), true
		case !w.mentions(ref.Ref):
			w.parts = append(w.parts, part{kept: true, text: w.glimpse(ref, preview)})
			w.dirty = true
		}
	}
}

func (w *bounding) mentions(ref string) bool {
	return slices.ContainsFunc(w.parts, func(p part) bool { return bytes.Contains(p.block.JSON, []byte(ref)) })
}

// storeMedia stores images, sounds and binary resources that are too large.
func (w *bounding) storeMedia() {
	for i := range w.parts {
		if p := &w.parts[i]; !p.kept && p.size > w.bounds.MediaBytes && isBinary(p.block) {
			w.store(i, 0)
		}
	}
}

// storeLargest stores the largest parts until what is left is small enough.
func (w *bounding) storeLargest() {
	var heavy []int
	for i := range w.parts {
		if p := &w.parts[i]; !p.kept && !p.isMedia() && p.size >= minItem && (p.structured == nil || !w.same) {
			heavy = append(heavy, i)
		}
	}
	if len(heavy) == 0 {
		return
	}
	slices.SortStableFunc(heavy, func(a, b int) int { return w.parts[b].size - w.parts[a].size })
	preview := min(w.bounds.Preview, max(w.bounds.Threshold/2/len(heavy), minPreview))
	for _, i := range heavy {
		if w.size() <= w.bounds.Threshold {
			return
		}
		w.store(i, preview)
	}
}

// storeAll stores the whole result as one artifact.
func (w *bounding) storeAll() {
	whole := struct {
		Content    []tools.Content `json:"content,omitempty"`
		Structured json.RawMessage `json:"structuredContent,omitempty"`
	}{Content: w.res.Content}
	for _, p := range w.parts {
		if p.structured != nil {
			whole.Structured = p.structured
		}
	}
	doc, err := json.Marshal(whole)
	if err != nil {
		doc = []byte("{}") // the blocks are JSON, or the catalog would have refused the result
	}
	w.forget()
	text := w.keep(item{content: bytes.NewReader(doc), mime: "application/json", size: len(doc), head: []byte(w.res.Text())}, w.bounds.Preview)
	w.parts, w.dirty, w.same = []part{{kept: true, text: text}}, true, false
	for _, ref := range w.res.Artifacts[:w.given] {
		w.parts = append(w.parts, part{kept: true, text: w.stub(ref, nil, 0, false)})
	}
}

// forget removes what was stored of the result in parts.
func (w *bounding) forget() {
	for _, a := range w.res.Artifacts[w.given:] {
		if err := w.Bounder.store.Delete(w.ctx, a.Ref); err != nil {
			w.Bounder.store.opts.Logger.WarnContext(w.ctx, "a part of a heavy result could not be removed yet", "error", err)
		}
	}
	w.res.Artifacts = w.res.Artifacts[:w.given]
}

// fold puts the result together again.
func (w *bounding) fold() tools.ToolResult {
	if !w.dirty {
		return w.res
	}
	res := w.res
	res.Content, res.Structured, res.Value, res.Wire = nil, nil, nil, nil
	for _, p := range w.parts {
		switch {
		case p.kept:
			res.Content = append(res.Content, tools.TextContent(p.text))
		case p.structured == nil:
			res.Content = append(res.Content, p.block)
		case !w.same || !w.textKept():
			res.Structured, res.Value = p.structured, p.structured
		}
	}
	return res
}

// textKept reports whether the only text is kept elsewhere.
func (w *bounding) textKept() bool { return len(w.parts) > 0 && w.parts[0].kept }
