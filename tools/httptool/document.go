package httptool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// The bounds of what is read to describe one API.
const (
	maxDocumentBytes = 64 << 20
	maxDocuments     = 200
	documentTimeout  = 60 * time.Second
	maxRefHops       = 32
)

// A DocumentError is a fault of an API document.
type DocumentError struct {
	// Document is the file or URL.
	Document string
	// Pointer is the JSON Pointer of the place, "" for the whole document.
	Pointer string
	// Line and Column are counted from 1, or 0 when they are not known.
	Line, Column int
	// Message says what is wrong.
	Message string

	cause error
}

// Unwrap returns what kept the document from being read, or nil.
func (e *DocumentError) Unwrap() error { return e.cause }

// unreadable is the error of a document that could not be had.
func unreadable(document string, err error) *DocumentError {
	e := &DocumentError{Document: document, Message: err.Error(), cause: err}
	var failed *tools.Error
	if errors.As(err, &failed) {
		e.Message = failed.SafeMessage()
	}
	return e
}

// Error returns "document:line:column: message (at #/pointer)".
func (e *DocumentError) Error() string {
	var b strings.Builder
	b.WriteString(e.Document)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	b.WriteString(": " + e.Message)
	if e.Pointer != "" {
		b.WriteString(" (at #" + e.Pointer + ")")
	}
	return b.String()
}

// A document is one file of an API description, as JSON.
type document struct {
	name   string   // as it is shown
	base   *url.URL // where it came from; nil for a file
	file   string   // the path below the folder of the first file
	raw    json.RawMessage
	source []byte // YAML as read; nil when raw is what was read
	tree   ast.Node
	self   *url.URL // what $self calls it, or nil
	marks  *marks   // nil until one is asked for

	// members holds the objects that pointers led through, by pointer.
	members map[string]map[string]json.RawMessage
}

// A node is a place in a document.
type node struct {
	doc     *document
	pointer string
	raw     json.RawMessage
}

func (n node) ok() bool { return n.raw != nil }

func (n node) kind() rawjson.Kind { return rawjson.KindOf(n.raw) }

// child returns a member of an object; its raw is nil when there is none.
func (n node) child(key string) node {
	raw, _ := rawjson.Get(n.raw, key)
	return node{n.doc, n.pointer + "/" + rawjson.EscapePointer(key), raw}
}

// text returns a member that is a string, or "".
func (n node) text(key string) string {
	raw, _ := rawjson.Get(n.raw, key)
	s, _ := rawjson.Unquote(raw)
	return s
}

// flag returns a member that is true or false, or else.
func (n node) flag(key string, otherwise bool) bool {
	raw, ok := rawjson.Get(n.raw, key)
	if !ok || rawjson.KindOf(raw) != rawjson.KindBool {
		return otherwise
	}
	return raw[0] == 't'
}

// members yields an object's members in order.
func (n node) members(yield func(key string, value node) bool) {
	for it := rawjson.Object(n.raw); it.Next(); {
		key := it.Key()
		if !yield(key, node{n.doc, n.pointer + "/" + rawjson.EscapePointer(key), it.Value()}) {
			return
		}
	}
}

// elements yields an array's elements.
func (n node) elements(yield func(i int, value node) bool) {
	i := 0
	for it := rawjson.Array(n.raw); it.Next(); i++ {
		if !yield(i, node{n.doc, n.pointer + "/" + strconv.Itoa(i), it.Value()}) {
			return
		}
	}
}

// errorf returns an error at the node.
func (n node) errorf(format string, args ...any) *DocumentError {
	line, column := n.doc.position(n.pointer)
	return &DocumentError{Document: n.doc.name, Pointer: n.pointer, Line: line, Column: column,
		Message: fmt.Sprintf(format, args...)}
}

// position returns the line and column of a pointer.
func (d *document) position(pointer string) (line, column int) {
	keys := splitPointer(pointer)
	if d.source != nil {
		if d.tree == nil {
			d.tree, _ = parseYAML(d.source)
		}
		return nodePosition(nodeAt(d.tree, keys))
	}
	before := d.raw[:offset(d.raw, keys)]
	line = bytes.Count(before, []byte{'\n'}) + 1
	return line, len(before) - bytes.LastIndexByte(before, '\n')
}

// offset returns where the value at a path of keys begins, as far as it leads.
func offset(raw json.RawMessage, keys []string) int {
	at := rawjson.SkipSpace(raw, 0)
	for _, key := range keys {
		value := raw[at:]
		it := rawjson.Object(value)
		index := -1
		if rawjson.KindOf(value) == rawjson.KindArray {
			it = rawjson.Array(value)
			index, _ = arrayIndex(key)
		}
		found := false
		for i := 0; !found && it.Next(); i++ {
			found = i == index || index < 0 && it.KeyIs(key)
		}
		if !found {
			break
		}
		at += it.Offset()
	}
	return at
}

func splitPointer(pointer string) []string {
	if pointer == "" {
		return nil
	}
	keys := strings.Split(pointer[1:], "/")
	for i, k := range keys {
		keys[i] = strings.ReplaceAll(strings.ReplaceAll(k, "~1", "/"), "~0", "~")
	}
	return keys
}

func arrayIndex(key string) (int, bool) {
	i, err := strconv.Atoi(key)
	return i, err == nil && i >= 0
}

// at returns the value at a pointer. Objects on the way are indexed once, so
// that a document with thousands of references is not read thousands of times.
func (d *document) at(pointer string) (json.RawMessage, bool) {
	raw, at := d.raw, ""
	for _, key := range splitPointer(pointer) {
		next, ok := d.step(at, raw, key)
		if !ok {
			return nil, false
		}
		raw, at = next, at+"/"+rawjson.EscapePointer(key)
	}
	return raw, true
}

func (d *document) step(at string, raw json.RawMessage, key string) (json.RawMessage, bool) {
	if rawjson.KindOf(raw) == rawjson.KindArray {
		want, ok := arrayIndex(key)
		it := rawjson.Array(raw)
		for i := 0; ok && it.Next(); i++ {
			if i == want {
				return it.Value(), true
			}
		}
		return nil, false
	}
	index, ok := d.members[at]
	if !ok {
		index = map[string]json.RawMessage{}
		for it := rawjson.Object(raw); it.Next(); {
			index[it.Key()] = it.Value()
		}
		d.members[at] = index
	}
	value, ok := index[key]
	return value, ok
}

// A library holds the documents of one API while it is described. It is for
// one goroutine and one Discover, whose context bounds what it fetches.
type library struct {
	ctx    context.Context
	caller *caller
	root   *document
	values map[string]string // of the variables of servers
	folder *os.Root          // what files may be referred to; nil without
	docs   map[string]*document
}

func newLibrary(ctx context.Context, c *caller) *library {
	return &library{ctx: ctx, caller: c, docs: map[string]*document{}}
}

func (l *library) close() {
	if l.folder != nil {
		_ = l.folder.Close()
	}
}

// open reads the first document: content when it is given, else a file or URL.
func (l *library) open(location string, content []byte) error {
	base, isURL, err := webLocation(location)
	if err != nil {
		return &DocumentError{Document: shownLocation(location), Message: err.Error()}
	}
	doc := &document{name: shownLocation(location), base: base}
	switch {
	case content != nil:
	case isURL:
		content, err = l.fetch(base)
	default:
		content, err = l.openFolder(location, doc)
	}
	if err != nil {
		return unreadable(doc.name, err)
	}
	l.root = doc
	return l.add(doc, content)
}

func (l *library) openFolder(location string, doc *document) ([]byte, error) {
	folder, err := os.OpenRoot(filepath.Dir(location))
	if err != nil {
		return nil, plainFileError(err)
	}
	l.folder, doc.file = folder, filepath.Base(location)
	return l.readFile(doc.file)
}

func (l *library) readFile(name string) ([]byte, error) {
	f, err := l.folder.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, plainFileError(err)
	}
	defer f.Close()
	return readBounded(f)
}

// plainFileError says what is wrong without the path, which stands before it.
func plainFileError(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return fmt.Errorf("cannot read the document: %w", at.Err)
	}
	return err
}

func readBounded(r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxDocumentBytes+1))
	if err == nil && len(b) > maxDocumentBytes {
		return nil, fmt.Errorf("the document is larger than %d bytes", maxDocumentBytes)
	}
	return b, err
}

// webLocation tells a URL from a file name.
func webLocation(location string) (*url.URL, bool, error) {
	if !strings.Contains(location, "://") {
		return nil, false, nil
	}
	u, err := url.Parse(location)
	if err != nil {
		return nil, false, errors.New("the document's URL is malformed")
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, false, fmt.Errorf("the document's URL has the scheme %q: expected http or https, or a file name", u.Scheme)
	}
	if u.User != nil {
		return nil, false, errors.New("the document's URL holds a user name or password")
	}
	return u, true, nil
}

// shownLocation is a location without what may be secret.
func shownLocation(location string) string {
	u, err := url.Parse(location)
	if err != nil || u.Host == "" {
		return location
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

func (l *library) fetch(u *url.URL) ([]byte, error) {
	if err := l.caller.checkFound(u); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(l.ctx, documentTimeout)
	defer cancel()
	out := &outgoing{label: "GET", method: http.MethodGet, url: u, header: http.Header{}, bare: true}
	out.header.Set("Accept", "application/json, application/yaml;q=0.9, */*;q=0.5")
	resp, err := l.caller.send(ctx, out)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answered HTTP %d", resp.StatusCode)
	}
	return readBounded(resp.Body)
}

// add parses a document and keeps it.
func (l *library) add(doc *document, content []byte) error {
	doc.members = map[string]map[string]json.RawMessage{}
	content = bytes.TrimPrefix(content, []byte(byteOrderMark))
	kind := rawjson.KindOf(content)
	if (kind == rawjson.KindObject || kind == rawjson.KindArray) && rawjson.Valid(content) {
		doc.raw = content
	} else if err := doc.parse(content); err != nil {
		return err
	}
	if text := doc.root().text("$self"); text != "" {
		doc.self, _ = url.Parse(text) // a malformed one names nothing
	}
	l.docs[doc.key()] = doc
	return nil
}

func (d *document) key() string {
	if d.base != nil {
		u := *d.base
		u.Fragment = ""
		return u.String()
	}
	return d.file
}

func (d *document) parse(content []byte) error {
	tree, err := parseYAML(content)
	if err != nil {
		line, column, message := yamlPosition(err)
		return &DocumentError{Document: d.name, Line: line, Column: column, Message: message}
	}
	d.raw, err = yamlToJSON(tree)
	if err != nil {
		e := &DocumentError{Document: d.name, Message: err.Error()}
		var at *yamlError
		if errors.As(err, &at) {
			e.Line, e.Column = nodePosition(at.node)
		}
		return e
	}
	d.source = content
	return nil
}
