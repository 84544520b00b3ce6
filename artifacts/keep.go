package artifacts

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// maxPreviewed is how much of a document a preview looks at.
const maxPreviewed = 16 << 20

// headBytes is how much a preview reads of what is stored already.
const headBytes = 256 << 10

// item is something that is to be stored.
type item struct {
	content io.Reader
	mime    string
	name    string
	size    int    // about
	head    []byte // what a preview is made of; nil for binary content
}

// store stores a part, and puts a preview in its place.
func (w *bounding) store(i, preview int) {
	p := &w.parts[i]
	p.text, p.kept, w.dirty = w.keep(w.itemOf(p), preview), true, true
}

// itemOf returns what there is to store of a part.
func (w *bounding) itemOf(p *part) item {
	if p.structured != nil {
		return item{content: bytes.NewReader(p.structured), mime: "application/json", size: p.size, head: p.structured}
	}
	if text, ok := p.block.Text(); ok {
		return item{content: strings.NewReader(text), mime: w.textType(text), size: len(text), head: []byte(text)}
	}
	if data, kind := binary(p.block); data != "" {
		if _, err := base64.StdEncoding.DecodeString(data); err == nil {
			return item{content: base64.NewDecoder(base64.StdEncoding, strings.NewReader(data)), mime: kind, size: base64.StdEncoding.DecodedLen(len(data)), name: nameOf(p.block)}
		}
	}
	if text, ok := resourceText(p.block, "text"); ok {
		kind, _ := resourceText(p.block, "mimeType")
		if kind == "" {
			kind = w.textType(text)
		}
		return item{content: strings.NewReader(text), mime: kind, size: len(text), head: []byte(text), name: nameOf(p.block)}
	}
	return item{content: bytes.NewReader(p.block.JSON), mime: "application/json", size: len(p.block.JSON), head: p.block.JSON}
}

// textType returns the media type of a text: that which the tool's transport
// named, when the text is its whole answer.
func (w *bounding) textType(text string) string {
	if named, ok := w.res.Provider["content_type"].(string); ok && len(w.res.Content) == 1 {
		if kind, _, err := mime.ParseMediaType(named); err == nil {
			return kind
		}
	}
	if kind := rawjson.KindOf([]byte(text)); (kind == rawjson.KindObject || kind == rawjson.KindArray) && rawjson.Valid([]byte(text)) {
		return "application/json"
	}
	return "text/plain; charset=utf-8"
}

// binary returns the base64 and the media type of an image, a sound or a binary
// resource.
func binary(c tools.Content) (data, kind string) {
	var b struct {
		Data     string `json:"data"`
		MIMEType string `json:"mimeType"`
		Resource struct {
			Blob     string `json:"blob"`
			MIMEType string `json:"mimeType"`
		} `json:"resource"`
	}
	switch c.Type {
	case "image", "audio":
		if json.Unmarshal(c.JSON, &b) == nil {
			return b.Data, b.MIMEType
		}
	case "resource":
		if json.Unmarshal(c.JSON, &b) == nil {
			return b.Resource.Blob, b.Resource.MIMEType
		}
	}
	return "", ""
}

func isBinary(c tools.Content) bool {
	data, _ := binary(c)
	return data != ""
}

// resourceText returns a text below the member "resource" of a block.
func resourceText(c tools.Content, key string) (string, bool) {
	raw, ok := rawjson.Get(c.JSON, "resource", key)
	if !ok || rawjson.KindOf(raw) != rawjson.KindString {
		return "", false
	}
	return rawjson.Unquote(raw)
}

// nameOf returns the last part of a resource's URI.
func nameOf(c tools.Content) string {
	uri, _ := resourceText(c, "uri")
	uri, _, _ = strings.Cut(uri, "?")
	return uri[strings.LastIndexByte(uri, '/')+1:]
}

// keep stores an item and returns what is shown in its place.
func (w *bounding) keep(it item, preview int) string {
	info, err := w.Bounder.store.Put(w.ctx, it.content, Meta{MIME: it.mime, Name: it.name, Tool: w.tool.Name, CallID: w.res.CallID})
	if err != nil {
		return w.unkept(it, preview, err)
	}
	w.res.Artifacts = append(w.res.Artifacts[:len(w.res.Artifacts):len(w.res.Artifacts)], info.Artifact())
	return w.stub(info.Artifact(), it.head, preview, false)
}

// unkept shows what there is of an item that could not be stored.
func (w *bounding) unkept(it item, preview int, err error) string {
	reason := "it could not be stored"
	var told *tools.Error
	if errors.As(err, &told) && told.Code != nil {
		reason = told.SafeMessage()
	}
	shown, said := show(it.head, preview, false)
	if said == "" {
		said = "nothing"
	}
	return fmt.Sprintf("%s\n[Shown is %s of %d bytes of %s. The rest is lost: %s.]", shown, said, it.size, it.mime, reason)
}

// glimpse shows the beginning of what is stored already.
func (w *bounding) glimpse(ref tools.ArtifactRef, preview int) string {
	var head []byte
	if r, err := w.Bounder.store.Open(w.ctx, ref.Ref, Section{Length: headBytes}); err == nil {
		head, err = io.ReadAll(r)
		if err = errors.Join(err, r.Close()); err != nil {
			head = nil
		}
	}
	partial := int64(len(head)) < ref.SizeBytes
	if len(head) == 0 || !isText(head[:trimRune(head, len(head))]) {
		return w.stub(ref, nil, 0, false)
	}
	return w.stub(ref, head[:trimRune(head, len(head))], preview, partial)
}

// show returns a preview of content in at most so many bytes, and what of the
// content it is.
func show(head []byte, preview int, partial bool) (shown, said string) {
	if len(head) == 0 || preview <= 0 {
		return "", ""
	}
	if len(head) > maxPreviewed {
		head, partial = head[:maxPreviewed], true
	}
	if text, ok := previewJSON(head, preview, partial); ok {
		return text, "an excerpt"
	}
	shown, said = previewText(head, preview)
	if said == "" && partial {
		said = fmt.Sprintf("the first %d bytes", len(shown))
	}
	return shown, said
}

// reference is how a text names an artifact.
type reference struct {
	Ref       string   `json:"ref"`
	MIME      string   `json:"mime"`
	Size      int64    `json:"size"`
	HandledBy []string `json:"handled_by,omitempty"`
}

// stub is what a model sees of an artifact: a preview, and how to get more.
func (w *bounding) stub(ref tools.ArtifactRef, head []byte, preview int, partial bool) string {
	r := reference{Ref: ref.Ref, MIME: ref.MIME, Size: ref.SizeBytes}
	if h := w.bounds.Handlers; h != nil {
		r.HandledBy = h(w.ctx, ref.MIME)
		r.HandledBy = r.HandledBy[:min(len(r.HandledBy), maxHandlers)]
	}
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(r) // strings and a number always encode
	named := strings.TrimSpace(line.String())
	shown, said := show(head, preview, partial)
	switch {
	case shown == "":
		return fmt.Sprintf("[%d bytes of %s are kept as an artifact; %s reads parts of it.]\n%s", ref.SizeBytes, ref.MIME, FetchTool, named)
	case said == "":
		said = "all of it"
	}
	return fmt.Sprintf("%s\n[Shown is %s; %d bytes of %s are kept as an artifact. %s reads it from an offset, by lines, by search, or by a jq query.]\n%s",
		shown, said, ref.SizeBytes, ref.MIME, FetchTool, named)
}
