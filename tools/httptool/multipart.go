package httptool

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/textproto"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// fileSchema describes the argument of a file.
const fileSchema = `{"type":"object","properties":{` +
	`"filename":{"type":"string"},` +
	`"content_type":{"type":"string","description":"The media type, such as image/png."},` +
	`"data":{"type":"string","contentEncoding":"base64","description":"The bytes, in base64."},` +
	`"text":{"type":"string","description":"The content of a text file, in place of data."}},` +
	`"oneOf":[{"required":["data"]},{"required":["text"]}],"additionalProperties":false}`

// The levels of a multipart schema: what stands for the whole body, and what
// stands for one of its fields. Only a field can be a file.
const (
	levelValue uint8 = iota
	levelField
	levelBody
)

// isFile reports whether a schema stands for bytes.
func (l *library) isFile(schema node) bool {
	n, err := l.deref(schema)
	if err != nil {
		return false
	}
	kind := n.text("type")
	switch {
	case kind == "file":
		return true
	case kind == "string" || kind == "":
		media := n.text("contentMediaType")
		return n.text("format") == "binary" ||
			media != "" && n.text("contentEncoding") == "" && !isText(bareMedia(media))
	}
	return false
}

// hasFiles reports whether a field of a form is a file or a list of them.
func (l *library) hasFiles(schema node, depth int) bool {
	n, err := l.deref(schema)
	if err != nil || depth == 0 {
		return false
	}
	for _, p := range n.child("properties").members {
		if l.isFile(p) || l.isFile(p.child("items")) {
			return true
		}
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		for _, part := range n.child(key).elements {
			if l.hasFiles(part, depth-1) {
				return true
			}
		}
	}
	return false
}

// multipartSchema returns the schema of a multipart body's argument, in which
// files are objects with a name, a media type, and bytes or text. A body that
// is documented as bytes is one file.
func (b *formBuilder) multipartSchema(content node) (json.RawMessage, error) {
	if item := content.child("itemSchema"); item.ok() {
		raw, refs, err := b.schemas.convert(item, levelField)
		b.refs = append(b.refs, refs...)
		return slices.Concat([]byte(`{"type":"array","items":`), raw, []byte{'}'}), err
	}
	source := content.child("schema")
	if !source.ok() {
		return json.RawMessage(`{"type":"object"}`), nil
	}
	level := levelBody
	if b.schemas.lib.isFile(source) {
		level = levelField
	}
	raw, refs, err := b.schemas.convert(source, level)
	b.refs = append(b.refs, refs...)
	return raw, err
}

// bytesOf decodes base64, with or without padding and line breaks.
func bytesOf(raw json.RawMessage) ([]byte, error) {
	text, ok := rawjson.Unquote(raw)
	if !ok {
		return nil, errors.New("expected bytes in base64")
	}
	text = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == ' ' || r == '=' {
			return -1
		}
		return r
	}, text)
	enc := base64.RawStdEncoding
	if strings.ContainsAny(text, "-_") {
		enc = base64.RawURLEncoding
	}
	out, err := enc.DecodeString(text)
	if err != nil {
		return nil, errors.New("expected bytes in base64")
	}
	return out, nil
}

// multipart writes the argument of a multipart body, and returns the media
// type with its boundary.
func (f *bodyForm) multipart(raw json.RawMessage, media string) ([]byte, string, error) {
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	err := f.parts(w, raw)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, "", fmt.Errorf("argument %q: %w", f.arg, err)
	}
	kind := bareMedia(media)
	if strings.ContainsRune(kind, '*') {
		kind = "multipart/form-data"
	}
	return out.Bytes(), kind + "; boundary=" + w.Boundary(), nil
}

func (f *bodyForm) parts(w *multipart.Writer, raw json.RawMessage) error {
	switch rawjson.KindOf(raw) {
	case rawjson.KindObject:
		if _, ok := fileOf(raw); ok && f.file {
			return f.member(w, "file", raw)
		}
		for it := rawjson.Object(raw); it.Next(); {
			if err := f.member(w, it.Key(), it.Value()); err != nil {
				return fmt.Errorf("field %q: %w", it.Key(), err)
			}
		}
		return nil
	case rawjson.KindArray:
		i := 0
		for it := rawjson.Array(raw); it.Next(); i++ {
			if err := writePart(w, "", f.element(i), it.Value()); err != nil {
				return fmt.Errorf("element %d: %w", i, err)
			}
		}
		return nil
	}
	return errors.New("a multipart body takes an object")
}

// element returns the media type that the document gives an element of a list.
func (f *bodyForm) element(i int) string {
	if len(f.rest) == 0 {
		return ""
	}
	return f.rest[min(i, len(f.rest)-1)].media
}

// member writes the parts of one field: one for each element of a list, and
// those that a style makes of it where the document names one.
func (f *bodyForm) member(w *multipart.Writer, name string, raw json.RawMessage) error {
	known := f.fields[name]
	if known == nil {
		known = &field{}
	}
	switch kind := rawjson.KindOf(raw); {
	case kind == rawjson.KindNull:
		return nil
	case known.styled && known.media == "":
		plain := func(s string) string { return s }
		for _, p := range known.pairs(raw, plain, plain) {
			if err := writeBytes(w, fieldDisposition(p.key), "", []byte(p.value)); err != nil {
				return err
			}
		}
		return nil
	case kind == rawjson.KindArray:
		for it := rawjson.Array(raw); it.Next(); {
			if err := writePart(w, name, known.media, it.Value()); err != nil {
				return err
			}
		}
		return nil
	}
	return writePart(w, name, known.media, raw)
}

// A file is a file as an argument.
type file struct{ Filename, ContentType, Text, Data json.RawMessage }

// fileOf reads a file from its argument; ok is false for any other object.
func fileOf(raw json.RawMessage) (f file, ok bool) {
	if rawjson.KindOf(raw) != rawjson.KindObject {
		return f, false
	}
	for it := rawjson.Object(raw); it.Next(); {
		switch it.Key() {
		case "filename":
			f.Filename = it.Value()
		case "content_type":
			f.ContentType = it.Value()
		case "text":
			f.Text = it.Value()
		case "data":
			f.Data = it.Value()
		default:
			return f, false
		}
	}
	_, text := rawjson.Unquote(f.Text)
	_, data := rawjson.Unquote(f.Data)
	return f, text != data
}

// writePart writes one part: a file, a text, or JSON for a structure.
func writePart(w *multipart.Writer, name, media string, raw json.RawMessage) error {
	if f, ok := fileOf(raw); ok && !isJSON(bareMedia(media)) {
		return f.write(w, name, media)
	}
	kind := rawjson.KindOf(raw)
	structured := kind == rawjson.KindObject || kind == rawjson.KindArray
	if media == "" && structured {
		media = "application/json"
	}
	text := scalarText(raw)
	if isJSON(bareMedia(media)) && !structured {
		text = string(raw)
	}
	return writeBytes(w, fieldDisposition(name), media, []byte(text))
}

func (f file) write(w *multipart.Writer, name, media string) error {
	filename, _ := rawjson.Unquote(f.Filename)
	var content []byte
	own, _ := rawjson.Unquote(f.ContentType)
	if text, ok := rawjson.Unquote(f.Text); ok {
		content, media = []byte(text), or(own, or(media, "text/plain; charset=utf-8"))
	} else {
		var err error
		if content, err = bytesOf(f.Data); err != nil {
			return fmt.Errorf("data: %w", err)
		}
		media = or(own, or(media, "application/octet-stream"))
	}
	disposition := ""
	if name != "" {
		disposition = multipart.FileContentDisposition(name, or(filename, name))
	}
	return writeBytes(w, disposition, media, content)
}

// fieldDisposition is the header of a field that is no file; a part of a list
// has none.
func fieldDisposition(name string) string {
	if name == "" {
		return ""
	}
	return strings.TrimSuffix(multipart.FileContentDisposition(name, ""), `; filename=""`)
}

func writeBytes(w *multipart.Writer, disposition, media string, content []byte) error {
	switch {
	case !httpguts.ValidHeaderFieldValue(media):
		return errors.New("content_type holds a line break or another control character")
	case !httpguts.ValidHeaderFieldValue(disposition):
		return errors.New("a field's or file's name holds a control character")
	}
	h := textproto.MIMEHeader{}
	if disposition != "" {
		h.Set("Content-Disposition", disposition)
	}
	if media != "" {
		h.Set("Content-Type", media)
	}
	part, err := w.CreatePart(h)
	if err != nil {
		return err
	}
	_, err = io.Copy(part, bytes.NewReader(content))
	return err
}
