package httptool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// An encoding is a way to write the argument of a request body.
type encoding uint8

// The encodings.
const (
	encodingNone      encoding = iota
	encodingBinary             // base64 in the argument, bytes on the wire
	encodingText               // a text as it is
	encodingMultipart          // an object, one part or more for each member
	encodingForm               // an object, URL-encoded
	encodingLines              // a list, one JSON value a line
	encodingJSON               // the argument as it is
)

// A bodyForm says how the argument of the request body is written.
type bodyForm struct {
	arg      string // the property of the arguments
	encoding encoding
	media    []string // media types; the first is the default
	choice   string   // the property that chooses one, or ""
	fields   map[string]*field
	rest     []*field // how the elements of a multipart list are written in turn, the last one for all that follow
	file     bool     // a multipart body is one file, which the document gives no name
	records  bool     // lines begin with a record separator, as in application/json-seq
}

// A field says how one member of a form is written.
type field struct {
	*parameter
	styled bool   // written in a style, and not by its content type
	media  string // the content type of its parts, or ""
}

// A mediaOption is one entry of a request body's content.
type mediaOption struct {
	media    string
	encoding encoding
	content  node
}

// body adds the argument of the request body: "body", or "body_request" when a
// parameter has that name.
func (b *formBuilder) body(l *library, n node) error {
	if !n.ok() {
		return nil
	}
	n, err := l.deref(n)
	if err != nil {
		return err
	}
	options, err := mediaOptions(l, n)
	if err != nil || len(options) == 0 {
		return err
	}
	first := options[0]
	raw, err := b.bodySchema(options)
	if err != nil {
		return err
	}
	if text := strings.TrimSpace(n.text("description")); text != "" {
		if raw, err = setDefault(raw, "description", rawjson.Quote(text), false); err != nil {
			return err
		}
	}
	body := &bodyForm{encoding: first.encoding, arg: b.property("body", "request")}
	body.file = first.encoding == encodingMultipart && l.isFile(first.content.child("schema"))
	body.records = bareMedia(first.media) == "application/json-seq"
	body.readFields(first.content)
	b.form.body = body
	b.member(body.arg, raw, n.flag("required", false), exampleOf(l, first.content, first.content.child("schema")))
	return b.choose(body, options)
}

// mediaOptions returns the entries of a body's content that are written in the
// best way there is: JSON before a form before multipart before text before
// bytes. A form that can carry files comes before one that cannot.
func mediaOptions(l *library, body node) ([]mediaOption, error) {
	var options []mediaOption
	best := encodingNone
	for media, content := range body.child("content").members {
		content, err := l.deref(content)
		if err != nil {
			return nil, err
		}
		o := mediaOption{media: media, content: content, encoding: bodyEncoding(l, bareMedia(media), content)}
		options = append(options, o)
		best = max(best, o.encoding)
	}
	if best == encodingForm && slices.ContainsFunc(options, func(o mediaOption) bool {
		return o.encoding == encodingMultipart && l.hasFiles(o.content.child("schema"), maxRefHops)
	}) {
		best = encodingMultipart
	}
	return slices.DeleteFunc(options, func(o mediaOption) bool { return o.encoding != best }), nil
}

// bodyEncoding says how a media type is written. One that is not known is JSON
// when its schema is a structure, which YAML reads as well.
func bodyEncoding(l *library, kind string, content node) encoding {
	shape := l.shapeOf(content.child("schema"))
	structured := shape == "object" || shape == "array"
	switch {
	case isJSON(kind):
		return encodingJSON
	case isLines(kind) && (shape == "array" || content.child("itemSchema").ok()):
		return encodingLines
	case kind == "application/x-www-form-urlencoded":
		return encodingForm
	case strings.HasPrefix(kind, "multipart/"):
		return encodingMultipart
	case kind == "*/*" || kind == "application/*":
		if l.isFile(content.child("schema")) {
			return encodingBinary
		}
		return encodingJSON
	case strings.HasSuffix(kind, "xml"):
		return encodingText
	case structured:
		return encodingJSON
	case isText(kind):
		return encodingText
	}
	return encodingBinary
}

func isLines(kind string) bool {
	return kind == "application/jsonl" || kind == "application/x-ndjson" || kind == "application/json-seq"
}

// shapeOf returns the type of a schema's values, or "" when it says none or
// several.
func (l *library) shapeOf(schema node) string {
	n, err := l.deref(schema)
	if err != nil {
		return ""
	}
	if t := n.text("type"); t != "" {
		return t
	}
	for _, key := range []string{"properties", "additionalProperties", "allOf"} {
		if n.child(key).ok() {
			return "object"
		}
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		for _, first := range n.child(key).elements {
			if first.text("$ref") != "" || first.child("properties").ok() || first.text("type") == "object" {
				return "object"
			}
			break
		}
	}
	return ""
}

// bodySchema returns the schema of a body's argument: that of the options, or
// one alternative for each where they differ.
func (b *formBuilder) bodySchema(options []mediaOption) (json.RawMessage, error) {
	var list []json.RawMessage
	for _, o := range options {
		raw, err := b.optionSchema(o)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(list, func(other json.RawMessage) bool { return string(other) == string(raw) }) {
			list = append(list, raw)
		}
		if !b.ambiguous(options) {
			break
		}
	}
	if len(list) == 1 {
		return list[0], nil
	}
	out := []byte(`{"anyOf":[`)
	for i, raw := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, raw...)
	}
	return append(out, "]}"...), nil
}

func (b *formBuilder) optionSchema(o mediaOption) (json.RawMessage, error) {
	source := o.content.child("schema")
	switch o.encoding {
	case encodingBinary:
		return json.RawMessage(`{"type":"string","contentEncoding":"base64","description":"The bytes of the body, in base64."}`), nil
	case encodingText:
		if shape := b.schemas.lib.shapeOf(source); shape == "object" || shape == "array" || strings.HasSuffix(bareMedia(o.media), "xml") {
			return rawjson.Set([]byte(`{"type":"string"}`), "description", rawjson.Quote("The body, as "+o.media+"."))
		}
	case encodingMultipart:
		return b.multipartSchema(o.content)
	case encodingLines:
		if item := o.content.child("itemSchema"); item.ok() {
			raw, err := b.convert(item)
			return slices.Concat([]byte(`{"type":"array","items":`), raw, []byte{'}'}), err
		}
	}
	return b.convert(source)
}

// ambiguous reports whether the caller must say which media type it sends:
// always where the types say different things, as for patches and bytes, and
// never where one is application/json beside its variants.
func (b *formBuilder) ambiguous(options []mediaOption) bool {
	first := options[0]
	switch first.encoding {
	case encodingBinary, encodingText:
		return len(options) > 1 || strings.ContainsRune(first.media, '*')
	case encodingJSON:
		plain, patch := false, false
		for _, o := range options {
			kind := bareMedia(o.media)
			plain = plain || kind == "application/json" || strings.ContainsRune(kind, '*')
			patch = patch || strings.Contains(kind, "patch")
		}
		return len(options) > 1 && (patch || !plain)
	}
	return false
}

// choose adds the argument "content_type" where it is needed.
func (b *formBuilder) choose(body *bodyForm, options []mediaOption) error {
	if !b.ambiguous(options) {
		body.media = []string{defaultMedia(options)}
		return nil
	}
	wild := false
	for _, o := range options {
		if strings.ContainsRune(o.media, '*') {
			wild = true
			continue
		}
		body.media = append(body.media, o.media)
	}
	schema := map[string]any{"type": "string", "description": "The media type of the body."}
	switch {
	case wild && len(body.media) == 0 && options[0].media == "*/*":
		body.media = []string{"application/octet-stream"}
		schema["default"] = body.media[0]
	case wild:
		schema["description"] = "The media type of the body, such as " + strings.ReplaceAll(options[0].media, "*", "...") + "."
	default:
		schema["enum"], schema["default"] = body.media, body.media[0]
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		return err
	}
	body.choice = b.property("content_type", "request")
	b.member(body.choice, raw, len(body.media) == 0 && slices.Contains(b.need, body.arg), nil)
	return nil
}

// defaultMedia is the first of several media types that mean the same, with
// application/json before its variants.
func defaultMedia(options []mediaOption) string {
	for _, o := range options {
		if kind := bareMedia(o.media); kind == "application/json" || kind == "*/*" || kind == "application/*" {
			return strings.Replace(strings.Replace(o.media, "application/*", "application/json", 1), "*/*", "application/json", 1)
		}
	}
	return options[0].media
}

// readFields reads how the members of a form, or the elements of a multipart
// list, are written.
func (f *bodyForm) readFields(content node) {
	if f.encoding != encodingForm && f.encoding != encodingMultipart {
		return
	}
	f.fields = map[string]*field{}
	for name, e := range content.child("encoding").members {
		f.fields[name] = newField(name, e)
	}
	for _, e := range content.child("prefixEncoding").elements {
		f.rest = append(f.rest, newField("", e))
	}
	if e := content.child("itemEncoding"); e.ok() {
		f.rest = append(f.rest, newField("", e))
	}
}

func newField(name string, e node) *field {
	style := or(e.text("style"), "form")
	return &field{
		styled: e.child("style").ok() || e.child("explode").ok() || e.child("allowReserved").ok(),
		media:  firstMedia(e.text("contentType")),
		parameter: &parameter{name: name, in: "query", style: style, reserved: e.flag("allowReserved", false),
			explode: e.flag("explode", style == "form" || style == "deepObject")},
	}
}

// firstMedia is the first concrete media type of a list, or "".
func firstMedia(list string) string {
	for media := range strings.SplitSeq(list, ",") {
		if media = strings.TrimSpace(media); media != "" && !strings.ContainsRune(media, '*') {
			return media
		}
	}
	return ""
}

// encode writes the request body and returns its media type; both are empty
// for an absent argument.
func (f *bodyForm) encode(values map[string]json.RawMessage) ([]byte, string, error) {
	raw := values[f.arg]
	if raw == nil {
		return nil, "", nil
	}
	media, err := f.mediaType(values)
	if err != nil {
		return nil, "", err
	}
	switch f.encoding {
	case encodingBinary:
		body, err := bytesOf(raw)
		if err != nil {
			return nil, "", fmt.Errorf("argument %q: %w", f.arg, err)
		}
		return body, media, nil
	case encodingText:
		return []byte(scalarText(raw)), media, nil
	case encodingMultipart:
		return f.multipart(raw, media)
	case encodingForm:
		body, err := f.urlEncoded(raw)
		return body, media, err
	case encodingLines:
		body, err := f.lines(raw)
		return body, media, err
	}
	return raw, media, nil
}

func (f *bodyForm) mediaType(values map[string]json.RawMessage) (string, error) {
	if f.choice != "" {
		if text, ok := rawjson.Unquote(values[f.choice]); ok {
			if !httpguts.ValidHeaderFieldValue(text) || !strings.Contains(text, "/") {
				return "", fmt.Errorf("argument %q: expected a media type such as image/png", f.choice)
			}
			return text, nil
		}
	}
	if len(f.media) == 0 {
		return "", fmt.Errorf("argument %q is missing: expected the media type of the body", f.choice)
	}
	return f.media[0], nil
}

// lines writes each element of a list on a line of its own.
func (f *bodyForm) lines(raw json.RawMessage) ([]byte, error) {
	if rawjson.KindOf(raw) != rawjson.KindArray {
		return nil, fmt.Errorf("argument %q: expected a list", f.arg)
	}
	out := []byte{}
	for it := rawjson.Array(raw); it.Next(); {
		if f.records {
			out = append(out, 0x1e)
		}
		var err error
		if out, err = rawjson.AppendCompact(out, it.Value()); err != nil {
			return nil, fmt.Errorf("argument %q: %w", f.arg, err)
		}
		out = append(out, '\n')
	}
	return out, nil
}

// urlEncoded writes an object as application/x-www-form-urlencoded.
func (f *bodyForm) urlEncoded(raw json.RawMessage) ([]byte, error) {
	if rawjson.KindOf(raw) != rawjson.KindObject {
		return nil, fmt.Errorf("argument %q: a form takes an object", f.arg)
	}
	parts := []string{}
	for it := rawjson.Object(raw); it.Next(); {
		if part := f.field(it.Key(), it.Value()).query(it.Value()); part != "" {
			parts = append(parts, part)
		}
	}
	return []byte(strings.Join(parts, "&")), nil
}

// field says how a member of a form is written. Without a style, an object is
// written as JSON.
func (f *bodyForm) field(name string, value json.RawMessage) *parameter {
	p := parameter{name: name, in: "query", style: "form", explode: true}
	known := f.fields[name]
	if known != nil {
		p = *known.parameter
	}
	if known == nil || !known.styled {
		p.json = rawjson.KindOf(value) == rawjson.KindObject || known != nil && isJSON(bareMedia(known.media))
	}
	return &p
}
