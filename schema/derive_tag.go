package schema

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// fieldTag is what the tags of a field say.
type fieldTag struct {
	items []tagItem
	flags map[string]bool
}

type tagItem struct{ key, value string }

// hasKey reports whether an item of a tag is a key with a value.
func hasKey(item string) bool {
	key, _, ok := strings.Cut(item, "=")
	if !ok || key == "" || key[0]-'0' <= 9 {
		return false
	}
	return strings.Trim(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// Where the keys of a tag belong, by the type that a value must have. A key
// under "" goes with every type.
var keyTypes = map[string]string{
	"title": "", "description": "", "enum": "", "const": "", "example": "", "default": "",
	"format": "string", "pattern": "string", "minLength": "string", "maxLength": "string", "contentMediaType": "string",
	"minimum": "number", "maximum": "number", "exclusiveMinimum": "number", "exclusiveMaximum": "number", "multipleOf": "number",
	"minItems": "array", "maxItems": "array",
	"minProperties": "object", "maxProperties": "object",
}

// Flags stand alone or with =true or =false.
var flagTypes = map[string]string{
	"required": "", "optional": "", "nullable": "", "readOnly": "", "writeOnly": "", "deprecated": "", "uniqueItems": "array",
}

func parseTag(tag reflect.StructTag) (fieldTag, error) {
	t := fieldTag{flags: map[string]bool{}}
	text := tag.Get("jsonschema")
	items := splitTag(text)
	_, isFlag := flagTypes[items[0]]
	switch {
	case text == "":
	case !isFlag && !hasKey(items[0]):
		t.items = append(t.items, tagItem{"description", text})
	default:
		for _, item := range items {
			if err := t.add(item); err != nil {
				return t, err
			}
		}
	}
	if text := tag.Get("jsonschema_description"); text != "" {
		t.items = append(t.items, tagItem{"description", text})
	}
	return t, nil
}

// splitTag splits at commas that no backslash stands before.
func splitTag(text string) []string {
	var items []string
	var sb strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case strings.HasPrefix(text[i:], `\,`):
			sb.WriteByte(',')
			i++
		case text[i] == ',':
			items = append(items, sb.String())
			sb.Reset()
		default:
			sb.WriteByte(text[i])
		}
	}
	return append(items, sb.String())
}

func (t *fieldTag) add(item string) error {
	key, value, hasValue := strings.Cut(item, "=")
	if _, ok := flagTypes[key]; ok {
		if value != "" && value != "true" && value != "false" {
			return fmt.Errorf("tag: %s is true or false, not %q", key, value)
		}
		t.flags[key] = value != "false"
		return nil
	}
	if _, ok := keyTypes[key]; !ok || !hasValue {
		return fmt.Errorf(`tag: unknown item %q (a comma inside an item is written \\,)`, item)
	}
	t.items = append(t.items, tagItem{key, value})
	return nil
}

// apply adds what the tag says to the schema of the field.
func (t fieldTag) apply(o *object) (*object, error) {
	o = o.clone()
	for flag, on := range t.flags {
		if want := flagTypes[flag]; want != "" && !o.is(want) {
			return nil, fmt.Errorf("tag: %s is for an %s", flag, want)
		}
		if on && flag != "required" && flag != "optional" && flag != "nullable" {
			o.set(flag, []byte("true"))
		}
	}
	slices.SortStableFunc(o.members, func(a, b member) int { return flagOrder(a.key) - flagOrder(b.key) })
	for _, item := range t.items {
		if err := o.applyItem(item); err != nil {
			return nil, fmt.Errorf("tag: %s: %w", item.key, err)
		}
	}
	if err := t.applyValues(o); err != nil {
		return nil, err
	}
	if t.flags["nullable"] {
		return o.nullable(), nil
	}
	return o, nil
}

// flagOrder puts flags, which come from a map, into a fixed order.
func flagOrder(key string) int {
	return slices.Index([]string{"uniqueItems", "readOnly", "writeOnly", "deprecated"}, key)
}

// is reports whether the values of the schema have the given type.
func (o *object) is(name string) bool {
	base := o.baseType()
	return base == name || name == "number" && base == "integer"
}

func (o *object) applyItem(item tagItem) error {
	want := keyTypes[item.key]
	if want != "" && !o.is(want) {
		if o.is("array") {
			return o.onItems(func(elem *object) error { return elem.applyItem(item) })
		}
		return fmt.Errorf("is for a %s, and this is %s", want, typeName(o))
	}
	switch item.key {
	case "enum", "const", "example", "default":
		return nil
	case "pattern":
		if _, err := compilePattern(item.value); err != nil {
			return err
		}
	}
	switch want {
	case "number":
		return o.setLimit(item)
	case "array", "object":
		return o.setCount(item)
	}
	if item.key == "minLength" || item.key == "maxLength" {
		return o.setCount(item)
	}
	o.set(item.key, quoted(item.value))
	return nil
}

func typeName(o *object) string {
	if base := o.baseType(); base != "" {
		return base
	}
	return "of no single type"
}

// onItems changes the schema of the elements of an array.
func (o *object) onItems(change func(*object) error) error {
	elem := &object{}
	it := rawjson.Object(o.get("items"))
	for it.Next() {
		elem.set(it.Key(), it.Value())
	}
	if err := change(elem); err != nil {
		return err
	}
	o.set("items", elem.json())
	return nil
}

func (o *object) setCount(item tagItem) error {
	n, err := strconv.ParseUint(item.value, 10, 31)
	if err != nil {
		return fmt.Errorf("expected a count, got %q", item.value)
	}
	o.set(item.key, strconv.AppendUint(nil, n, 10))
	return nil
}

// setLimit sets a limit of a number, which may be tighter than the range of the
// Go type but not wider.
func (o *object) setLimit(item tagItem) error {
	value := []byte(item.value)
	if rawjson.KindOf(value) != rawjson.KindNumber || !rawjson.Valid(value) || unboundedNumber(value) >= 0 {
		return fmt.Errorf("expected a number, got %q", item.value)
	}
	limit := parseDecimal(value)
	if item.key == "multipleOf" && limit.sign() <= 0 {
		return fmt.Errorf("expected a number above 0, got %q", item.value)
	}
	lowest, highest := o.get("minimum"), o.get("maximum")
	if item.key != "multipleOf" && (lowest != nil && limit.cmp(parseDecimal(lowest)) < 0 || highest != nil && limit.cmp(parseDecimal(highest)) > 0) {
		return fmt.Errorf("%s is outside the range %s to %s", item.value, orText(lowest, "-∞"), orText(highest, "∞"))
	}
	o.set(item.key, value)
	return nil
}

func orText(b []byte, otherwise string) string {
	if b == nil {
		return otherwise
	}
	return string(b)
}

// applyValues sets enum, const, examples and default, each value checked against
// what the schema says so far.
func (t fieldTag) applyValues(o *object) error {
	if texts := t.values("enum"); len(texts) > 0 {
		if err := o.setEnum(texts); err != nil {
			return fmt.Errorf("tag: enum: %w", err)
		}
	}
	for _, key := range []string{"const", "default", "example"} {
		texts := t.values(key)
		if len(texts) == 0 {
			continue
		}
		value, err := o.annotation(key, texts)
		if err != nil {
			return fmt.Errorf("tag: %s: %w", key, err)
		}
		if key == "example" {
			key = "examples"
		}
		o.set(key, value)
	}
	return nil
}

func (t fieldTag) values(key string) []string {
	var texts []string
	for _, item := range t.items {
		if item.key == key {
			texts = append(texts, item.value)
		}
	}
	return texts
}

// annotation returns the value of const or default, or the list of examples.
// Several defaults of an array are its elements.
func (o *object) annotation(key string, texts []string) ([]byte, error) {
	if key == "example" {
		values, err := o.parseAll(texts)
		return jsonArray(values), err
	}
	if o.is("array") && !strings.HasPrefix(texts[0], "[") {
		var values [][]byte
		err := o.clone().onItems(func(elem *object) (err error) {
			values, err = elem.parseAll(texts)
			return err
		})
		if err != nil {
			return nil, err
		}
		value := jsonArray(values)
		return value, o.accepts(value)
	}
	if len(texts) > 1 {
		return nil, fmt.Errorf("given %d times", len(texts))
	}
	return o.parse(texts[0])
}

func (o *object) setEnum(texts []string) error {
	if o.is("array") {
		return o.onItems(func(elem *object) error { return elem.setEnum(texts) })
	}
	values, err := o.parseAll(texts)
	if err != nil {
		return err
	}
	if bytes.Contains(o.get("type"), []byte(`"null"`)) {
		values = append(values, []byte("null"))
	}
	o.set("enum", jsonArray(values))
	return nil
}

func (o *object) parseAll(texts []string) ([][]byte, error) {
	var values [][]byte
	for _, text := range texts {
		v, err := o.parse(text)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}

// parse reads a value from a tag: text as it is for a string, else JSON.
func (o *object) parse(text string) ([]byte, error) {
	value := []byte(text)
	if o.is("string") {
		value = quoted(text)
	}
	if err := rawjson.Check(value, rawjson.Options{}); err != nil {
		return nil, fmt.Errorf("%q is not %s", text, typeName(o))
	}
	if err := o.accepts(value); err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	return value, nil
}

// accepts checks a value against the schema as far as it stands alone.
func (o *object) accepts(value []byte) error {
	raw := o.json()
	if bytes.Contains(raw, []byte(`"$ref"`)) {
		return nil
	}
	s, err := Compile(raw, nil)
	if err != nil {
		return err
	}
	return s.Check(value)
}
