package httptool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// How much of what a schema refers to is carried along, in bytes. What lies
// beyond, breadth first, is replaced by a schema that allows anything, so that
// a document whose schemas all refer to one another does not become as large
// again for each of its operations. Nothing valid is refused by that.
const (
	checkedBudget = 256 << 10 // of schemas that are checked
	shownBudget   = 4 << 10   // of schemas that only describe
)

// schemas turns the schemas of Swagger 2.0 and OpenAPI 3 into JSON Schema 2020-12.
// Each referenced schema becomes a definition, written once for a document and
// copied into every schema that needs it, so that recursion stays as it is.
type schemas struct {
	lib      *library
	response bool              // which of readOnly and writeOnly cannot be required
	names    map[string]string // by level, document and pointer
	defs     map[string]*definition
}

// A definition is a schema that others refer to.
type definition struct {
	source node
	level  uint8
	raw    json.RawMessage // nil until it is written
	refs   []string        // names of definitions
	err    error
}

func newSchemas(lib *library, response bool) *schemas {
	return &schemas{lib: lib, response: response, names: map[string]string{}, defs: map[string]*definition{}}
}

// convert returns a schema without its definitions, and the names of those it
// refers to. The level says where in a multipart body it stands.
func (s *schemas) convert(n node, level uint8) (json.RawMessage, []string, error) {
	w := schemaWriter{schemas: s, level: level}
	if err := w.schema(n); err != nil {
		return nil, nil, err
	}
	return w.out, w.refs, nil
}

// definitions returns the members of $defs that refs need, "" for none.
func (s *schemas) definitions(refs []string, budget int) (json.RawMessage, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	out := []byte{'{'}
	seen := map[string]bool{}
	queue := slices.Clone(refs)
	for i := 0; i < len(queue); i++ {
		name := queue[i]
		if seen[name] {
			continue
		}
		seen[name] = true
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(rawjson.AppendQuoted(out, name), ':')
		d, err := s.written(name)
		if err != nil {
			return nil, err
		}
		if len(out)+len(d.raw) > budget {
			out = append(out, `{"description":"Not shown: any value is accepted."}`...)
			continue
		}
		out = append(out, d.raw...)
		queue = append(queue, d.refs...)
	}
	return append(out, '}'), nil
}

func (s *schemas) written(name string) (*definition, error) {
	d := s.defs[name]
	if d.raw == nil && d.err == nil {
		d.raw, d.refs, d.err = s.convert(d.source, d.level)
	}
	return d, d.err
}

// reference returns the name of the definition that a $ref at n leads to.
func (s *schemas) reference(n node, ref string, level uint8) (string, error) {
	target, err := s.lib.follow(n, ref)
	if err != nil {
		return "", err
	}
	id := strconv.Itoa(int(level)) + target.doc.key() + "#" + target.pointer
	if name, ok := s.names[id]; ok {
		return name, nil
	}
	name := s.unused(definitionName(target))
	s.names[id] = name
	s.defs[name] = &definition{source: target, level: level}
	return name, nil
}

func (s *schemas) unused(base string) string {
	name := base
	for i := 2; s.defs[name] != nil; i++ {
		name = base + "_" + strconv.Itoa(i)
	}
	return name
}

// definitionName is the last part of a pointer that says something.
func definitionName(n node) string {
	keys := splitPointer(n.pointer)
	name := ""
	if len(keys) > 0 {
		name = keys[len(keys)-1]
	}
	name = strings.Map(func(r rune) rune {
		if r < 0x80 && (unreserved(byte(r)) && r != '~') {
			return r
		}
		return '_'
	}, name)
	return or(name, "root")
}

// A schemaWriter writes one schema.
type schemaWriter struct {
	*schemas
	level uint8
	out   []byte
	refs  []string
}

// The shape that a keyword's value must have to be taken over. A value of
// another shape is left out: it could only make the whole schema fail.
type shape uint8

const (
	shapeSchema shape = iota + 1
	shapeSchemaList
	shapeSchemaMap
	shapeNumber
	shapeCount
	shapeText
	shapeBool
	shapeArray
	shapeAny
	shapeSpecial
)

// keywords are those of JSON Schema 2020-12 that are taken over, and those of
// OpenAPI that have a translation. All others are left out.
var keywords = map[string]shape{
	"not": shapeSchema, "additionalProperties": shapeSchema, "contains": shapeSchema, "propertyNames": shapeSchema,
	"if": shapeSchema, "then": shapeSchema, "else": shapeSchema, "contentSchema": shapeSchema,
	"unevaluatedItems": shapeSchema, "unevaluatedProperties": shapeSchema,
	"allOf": shapeSchemaList, "anyOf": shapeSchemaList, "oneOf": shapeSchemaList, "prefixItems": shapeSchemaList,
	"properties": shapeSchemaMap, "patternProperties": shapeSchemaMap, "dependentSchemas": shapeSchemaMap,
	"maximum": shapeNumber, "minimum": shapeNumber,
	"maxLength": shapeCount, "minLength": shapeCount, "maxItems": shapeCount, "minItems": shapeCount,
	"maxProperties": shapeCount, "minProperties": shapeCount, "minContains": shapeCount, "maxContains": shapeCount,
	"title": shapeText, "description": shapeText, "format": shapeText,
	"contentEncoding": shapeText, "contentMediaType": shapeText,
	"uniqueItems": shapeBool, "deprecated": shapeBool, "readOnly": shapeBool, "writeOnly": shapeBool,
	"examples": shapeArray, "default": shapeAny, "const": shapeAny,
	"items": shapeSpecial, "type": shapeSpecial, "enum": shapeSpecial, "required": shapeSpecial, "pattern": shapeSpecial,
	"multipleOf": shapeSpecial, "exclusiveMaximum": shapeSpecial, "exclusiveMinimum": shapeSpecial,
	"example": shapeSpecial, "discriminator": shapeSpecial, "dependentRequired": shapeSpecial,
}

func (w *schemaWriter) schema(n node) error {
	switch n.kind() {
	case rawjson.KindBool:
		w.out = append(w.out, n.raw...)
		return nil
	case rawjson.KindObject:
		if w.level == levelField && n.text("$ref") == "" && w.lib.isFile(n) {
			return w.file(n)
		}
		return w.nullable(n)
	}
	w.out = append(w.out, "{}"...)
	return nil
}

// file writes the schema of a file in place of one of bytes.
func (w *schemaWriter) file(n node) error {
	out := json.RawMessage(fileSchema)
	if text := n.child("description"); text.kind() == rawjson.KindString {
		var err error
		if out, err = setDefault(out, "description", text.raw, true); err != nil {
			return err
		}
	}
	w.out = append(w.out, out...)
	return nil
}

// nullable translates "nullable": next to a type it adds one, and elsewhere it
// is an alternative.
func (w *schemaWriter) nullable(n node) error {
	if !n.nullable() || n.child("type").ok() {
		return w.object(n)
	}
	if n.text("$ref") == "" && !n.child("allOf").ok() && !n.child("oneOf").ok() && !n.child("anyOf").ok() && !n.child("enum").ok() {
		return w.object(n)
	}
	w.out = append(w.out, `{"anyOf":[`...)
	if err := w.object(n); err != nil {
		return err
	}
	w.out = append(w.out, `,{"type":"null"}]}`...)
	return nil
}

// nullable reports whether a schema of OpenAPI 3.0, or one of 2.0 by its usual
// extension, allows null.
func (n node) nullable() bool { return n.flag("nullable", false) || n.flag("x-nullable", false) }

// object writes a schema object. Beside a $ref, OpenAPI 2.0 and 3.0 allow
// nothing; a description is kept all the same. A $dynamicRef is followed as a
// $ref is: no schema of a document is the outermost one of another.
func (w *schemaWriter) object(n node) error {
	w.out = append(w.out, '{')
	start := len(w.out)
	ref := or(n.text("$ref"), n.text("$dynamicRef"))
	if ref != "" {
		name, err := w.reference(n, ref, w.level)
		if err != nil {
			return err
		}
		w.refs = append(w.refs, name)
		w.raw("$ref", rawjson.Quote("#/$defs/"+strings.ReplaceAll(name, "%", "%25")))
	}
	alone := ref != "" && w.lib.oldDialect()
	for key, value := range n.members {
		if alone && key != "description" {
			continue
		}
		if err := w.keyword(n, key, value); err != nil {
			return err
		}
	}
	if len(w.out) > start {
		copy(w.out[start:], w.out[start+1:])
		w.out = w.out[:len(w.out)-1]
	}
	w.out = append(w.out, '}')
	return nil
}

// key writes a comma and a key; raw adds a value.
func (w *schemaWriter) key(key string) { w.out = appendKey(w.out, key) }

func (w *schemaWriter) raw(key string, value []byte) {
	w.key(key)
	w.out = append(w.out, value...)
}

func (w *schemaWriter) keyword(parent node, key string, n node) error {
	s, kind := keywords[key], n.kind()
	switch {
	case s == shapeSchema && (kind == rawjson.KindObject || kind == rawjson.KindBool):
		w.key(key)
		return w.schema(n)
	case s == shapeSchemaList && kind == rawjson.KindArray && rawjson.Len(n.raw) > 0:
		return w.list(key, n)
	case s == shapeSchemaMap && kind == rawjson.KindObject:
		return w.named(key, n)
	case s == shapeSpecial:
		return w.special(parent, key, n)
	case s.fits(n.raw):
		w.raw(key, n.raw)
	}
	return nil
}

func (s shape) fits(raw json.RawMessage) bool {
	kind := rawjson.KindOf(raw)
	switch s {
	case shapeNumber:
		return kind == rawjson.KindNumber
	case shapeCount:
		return kind == rawjson.KindNumber && raw[0] != '-'
	case shapeText:
		return kind == rawjson.KindString
	case shapeBool:
		return kind == rawjson.KindBool
	case shapeArray:
		return kind == rawjson.KindArray
	}
	return s == shapeAny
}

func (w *schemaWriter) list(key string, n node) error {
	w.key(key)
	w.out = append(w.out, '[')
	for i, v := range n.elements {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		if err := w.schema(v); err != nil {
			return err
		}
	}
	w.out = append(w.out, ']')
	return nil
}

func (w *schemaWriter) named(key string, n node) error {
	if w.level > levelValue && (key == "properties" || key == "patternProperties") {
		w.level--
		defer func() { w.level++ }()
	}
	w.key(key)
	w.out = append(w.out, '{')
	first := true
	for name, v := range n.members {
		if !first {
			w.out = append(w.out, ',')
		}
		first = false
		w.out = append(rawjson.AppendQuoted(w.out, name), ':')
		if err := w.member(name, v); err != nil {
			return err
		}
	}
	w.out = append(w.out, '}')
	return nil
}

// member writes the schema of a member. A field of a multipart body that is
// called a file and documented as a mere string may be either.
func (w *schemaWriter) member(name string, n node) error {
	if w.level != levelField || !strings.HasSuffix(strings.ToLower(name), "file") || n.text("type") != "string" ||
		n.child("enum").ok() || w.lib.isFile(n) {
		return w.schema(n)
	}
	w.out = append(w.out, `{"anyOf":[`...)
	if err := w.schema(n); err != nil {
		return err
	}
	w.out = append(append(append(w.out, ','), fileSchema...), "]}"...)
	return nil
}

// setDefault sets a member of a schema object that does not have it; the
// schema true becomes an object for it.
func setDefault(raw json.RawMessage, key string, value []byte, override bool) (json.RawMessage, error) {
	if rawjson.KindOf(raw) == rawjson.KindBool {
		if raw[0] == 'f' {
			return raw, nil
		}
		raw = json.RawMessage("{}")
	}
	if _, has := rawjson.Get(raw, key); has && !override {
		return raw, nil
	}
	out, err := rawjson.Set(raw, key, value)
	if err != nil {
		return nil, fmt.Errorf("internal: a schema that is no object: %w", err)
	}
	return out, nil
}
