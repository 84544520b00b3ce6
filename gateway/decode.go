package gateway

import (
	"encoding"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Load reads and checks a configuration file. What the file refers to, other
// files and secrets, is read by Open. The faults are ConfigErrors.
func Load(path string) (*Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, unreadable(path, err)
	}
	return Parse(path, data)
}

func unreadable(path string, err error) error {
	return fmt.Errorf("the configuration %s cannot be read: %w", path, bare(err))
}

// Parse checks the text of a configuration file and returns what it says.
// filename appears in errors, and relative paths start at its folder. All
// faults are reported at once, as ConfigErrors.
func Parse(filename string, data []byte) (*Config, error) {
	root, faults := readTree(filename, data)
	cfg := &Config{file: filename, dir: filepath.Dir(filename), places: map[string]pos{}}
	d := &decoder{cfg: cfg, faults: faults}
	if root != nil && len(faults) == 0 {
		d.value(root, reflect.ValueOf(cfg).Elem(), "")
	}
	if err := d.faults.followedBy(cfg.check()).once().sorted(); err != nil {
		return nil, err
	}
	return cfg, nil
}

// decoder lays nodes into the fields of a Config and notes where each value
// stands.
type decoder struct {
	cfg    *Config
	faults ConfigErrors
}

func (d *decoder) fault(n *node, path, problem, expected string) {
	d.faults = append(d.faults, &ConfigError{File: d.cfg.file, Line: n.at.line, Column: n.at.column, Path: path, Problem: problem, Expected: expected})
}

// value decodes n into v. An empty value leaves v as it is.
func (d *decoder) value(n *node, v reflect.Value, path string) {
	d.cfg.places[path] = n.at
	if n.kind == nullKind {
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		d.text(n, u, path)
		return
	}
	if v.Type() == freeType {
		d.free(n, v, path)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.object(n, v, path)
	case reflect.Map:
		d.mapping(n, v, path)
	case reflect.Slice:
		d.list(n, v, path)
	default:
		d.scalar(n, v, path)
	}
}

func (d *decoder) is(n *node, want kind, path string) bool {
	if n.kind == want {
		return true
	}
	d.fault(n, path, "is "+n.kind.String(), want.String())
	return false
}

func (d *decoder) object(n *node, v reflect.Value, path string) {
	if !d.is(n, mapKind, path) {
		return
	}
	known := keysOf(v.Type())
	for _, f := range n.fields {
		at := join(path, f.key)
		index, ok := known.index[f.key]
		if !ok {
			d.fault(&node{at: f.at}, at, "unknown key", insteadOf(f.key, known))
			continue
		}
		d.value(f.value, v.Field(index), at)
		if f.value.kind == nullKind {
			delete(d.cfg.places, at)
		}
	}
}

func (d *decoder) mapping(n *node, v reflect.Value, path string) {
	if !d.is(n, mapKind, path) {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, f := range n.fields {
		elem := reflect.New(v.Type().Elem()).Elem()
		if f.value.kind == nullKind && elem.Kind() == reflect.String {
			d.fault(&node{at: f.at}, join(path, f.key), "is empty", `a text; "" for an empty one`)
			continue
		}
		d.value(f.value, elem, join(path, f.key))
		v.SetMapIndex(reflect.ValueOf(f.key), elem)
	}
}

// insteadOf is what the file should have in the place of an unknown key.
func insteadOf(key string, known keys) string {
	if _, ok := known.index["command"]; ok && (key == "args" || key == "arguments") {
		return "the arguments in command, behind the program: command: [PROGRAM, ARGUMENT, …]"
	}
	return expectedKey(key, known.names)
}

// asList is how a command that is one text is written. Its arguments are not
// repeated, as one may be a secret.
func asList(command string) string {
	words := strings.Fields(command)
	switch {
	case len(words) == 0:
		return listKind.String()
	case len(words) == 1:
		return "a list: [" + clip(words[0]) + "]"
	}
	return "a list: [" + clip(words[0]) + ", ARGUMENT, …]"
}

func (d *decoder) list(n *node, v reflect.Value, path string) {
	if n.kind == stringKind && strings.HasSuffix(path, ".command") {
		d.fault(n, path, "is "+n.kind.String(), asList(n.text))
		return
	}
	if !d.is(n, listKind, path) {
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.items), len(n.items)))
	for i, item := range n.items {
		at := fmt.Sprintf("%s[%d]", path, i)
		if item.kind == nullKind {
			d.fault(item, at, "is empty", "a value")
		}
		d.value(item, v.Index(i), at)
	}
}

func (d *decoder) text(n *node, u encoding.TextUnmarshaler, path string) {
	expected := "true or false"
	if _, ok := u.(*Duration); ok {
		expected = "a length of time such as 30s or 10m"
	}
	if n.kind == listKind || n.kind == mapKind {
		d.fault(n, path, "is "+n.kind.String(), expected)
	} else if u.UnmarshalText([]byte(n.text)) != nil {
		d.fault(n, path, "wrong value", expected)
	}
}

func (d *decoder) scalar(n *node, v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.String:
		d.stringValue(n, v, path)
	case reflect.Bool:
		if d.is(n, boolKind, path) {
			v.SetBool(n.text == "true")
		}
	case reflect.Float64:
		d.number(n, v, path)
	default:
		d.integer(n, v, path)
	}
}

func (d *decoder) stringValue(n *node, v reflect.Value, path string) {
	switch {
	case n.kind == stringKind:
		v.SetString(n.text)
	case n.kind == intKind || n.kind == floatKind || n.kind == boolKind:
		d.fault(n, path, "is "+n.kind.String(), "a text, so put it in quotes")
	default:
		d.is(n, stringKind, path)
	}
}

func (d *decoder) integer(n *node, v reflect.Value, path string) {
	if n.kind != intKind {
		problem := "is " + n.kind.String()
		if n.kind == floatKind {
			problem = "is a fraction"
		}
		d.fault(n, path, problem, wholeNumber(n, path))
		return
	}
	i, err := strconv.ParseInt(n.text, 10, 64)
	if err != nil || i > math.MaxInt32 && v.Kind() == reflect.Int || i < math.MinInt32 {
		d.fault(n, path, "is out of range", "a whole number of ordinary size")
		return
	}
	v.SetInt(i)
}

// wholeNumber is what stands in the place of n. A length of time is a number of
// milliseconds.
func wholeNumber(n *node, path string) string {
	if !strings.HasSuffix(path, "_ms") {
		return "a whole number"
	}
	if length, err := time.ParseDuration(n.text); err == nil && n.kind == stringKind {
		return fmt.Sprintf("milliseconds: %d", length.Milliseconds())
	}
	return "a whole number of milliseconds"
}

func (d *decoder) number(n *node, v reflect.Value, path string) {
	f, err := strconv.ParseFloat(strings.ReplaceAll(n.text, "_", ""), 64)
	if n.kind != intKind && n.kind != floatKind || err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		d.fault(n, path, "is not a finite number", "a number")
		return
	}
	v.SetFloat(f)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
