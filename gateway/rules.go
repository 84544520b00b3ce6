package gateway

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// rules are what the rule tag of a field demands of its value, or of each
// element of a list or mapping.
type rules struct {
	required, url, secret bool
	object                bool    // of a value of any form: it is a mapping
	name                  pattern // zero: any text
	enum                  []string
	min, max              *float64
}

func rulesOf(f reflect.StructField) rules {
	var r rules
	for part := range strings.SplitSeq(f.Tag.Get("rule"), ",") {
		word, arg, _ := strings.Cut(part, "=")
		switch word {
		case "required":
			r.required = true
		case "name":
			r.name = namePattern
		case "source":
			r.name = sourcePattern
		case "url":
			r.url = true
		case "secret":
			r.secret = true
		case "object":
			r.object = true
		case "enum":
			r.enum = strings.Split(arg, "|")
		case "min":
			r.min = bound(arg)
		case "max":
			r.max = bound(arg)
		}
	}
	return r
}

func bound(s string) *float64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil
	}
	return &f
}

// The forms of canonical names, and of names of sources and prefixes.
var (
	namePattern   = newPattern(`^[A-Za-z0-9_.-]{1,128}$`)
	sourcePattern = newPattern(`^[A-Za-z0-9_.-]{1,64}$`)
)

// checker looks for faults in a Config, wherever it came from.
type checker struct {
	cfg    *Config
	faults ConfigErrors
}

// fault notes a fault of the value at path, placed there or at the nearest
// value around it that has a place.
func (c *checker) fault(path, problem, expected string) {
	c.faults = append(c.faults, c.cfg.faultAt(path, problem, expected))
}

func (c *Config) faultAt(path, problem, expected string) *ConfigError {
	e := &ConfigError{File: c.file, Path: path, Problem: problem, Expected: expected}
	for at := path; ; at = parent(at) {
		if p, ok := c.places[at]; ok {
			e.Line, e.Column = p.line, p.column
			return e
		}
		if at == "" {
			return e
		}
	}
}

// parent returns the path of what holds the value at path.
func parent(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".["))]
}

// present reports whether the file gives a value at path, or a Config that was
// made in Go sets one.
func (c *checker) present(path string, v reflect.Value) bool {
	_, ok := c.cfg.places[path]
	return ok || !v.IsZero()
}

// walk checks the rules of every field of v.
func (c *checker) walk(v reflect.Value, path string) {
	if v.Type() == freeType {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			c.walk(v.Elem(), path)
		}
	case reflect.Slice:
		for i := range v.Len() {
			c.walk(v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			c.walk(v.MapIndex(key), join(path, key.String()))
		}
	case reflect.Struct:
		c.fields(v, path)
	}
}

func (c *checker) fields(v reflect.Value, path string) {
	t := v.Type()
	for i := range t.NumField() {
		key := t.Field(i).Tag.Get("yaml")
		if key == "" {
			continue
		}
		at, r := join(path, key), rulesOf(t.Field(i))
		switch {
		case c.present(at, v.Field(i)):
			c.field(v.Field(i), at, r)
		case r.required:
			c.fault(at, "missing", "a value: it is required")
		}
	}
}

func (c *checker) field(v reflect.Value, path string, r rules) {
	if v.Type() == freeType {
		if problem, expected := freeFault(v.Bytes(), r.object); problem != "" {
			c.fault(path, problem, expected)
		}
		return
	}
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			c.rules(v.Index(i), fmt.Sprintf("%s[%d]", path, i), r)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			c.rules(v.MapIndex(key), join(path, key.String()), r)
		}
	default:
		c.rules(v, path, r)
	}
	c.walk(v, path)
}

// rules checks one scalar.
func (c *checker) rules(v reflect.Value, path string, r rules) {
	switch v.Kind() {
	case reflect.String:
		c.text(v.String(), path, r)
	case reflect.Int, reflect.Int64:
		c.number(float64(v.Int()), path, r)
	case reflect.Float64:
		c.number(v.Float(), path, r)
	}
}

func (c *checker) text(s, path string, r rules) {
	switch {
	case r.required && s == "":
		c.fault(path, "is empty", "a value: it is required")
	case r.name.text != "" && s != "" && !r.name.MatchString(s):
		c.fault(path, fmt.Sprintf("%q is not a name", clip(s)), "a match of "+r.name.String())
	case r.enum != nil && !slices.Contains(r.enum, s):
		c.fault(path, fmt.Sprintf("unknown value %q", clip(s)), oneOf(r.enum))
	case r.url && s != "":
		c.url(s, path)
	case r.secret:
		if err := checkReferences(s); err != nil {
			c.fault(path, err.Error(), "${NAME} of an environment variable, or file:PATH")
		}
	}
}

// clip bounds how much of a wrong value is repeated.
func clip(s string) string {
	if len(s) <= 80 {
		return s
	}
	return strings.ToValidUTF8(s[:80], "") + "…"
}

// url refuses what is not an absolute HTTP URL, and credentials inside one:
// addresses are shown in logs and pages.
func (c *checker) url(s, path string) {
	u, err := url.Parse(s)
	switch {
	case strings.Contains(s, "${"):
		c.fault(path, "holds a reference", "a plain address; secrets belong into headers or auth")
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		c.fault(path, "is not an absolute address", "http://… or https://…")
	case u.User != nil:
		c.fault(path, "holds a user name or a password", "an address without them; secrets belong into headers or auth")
	}
}

func (c *checker) number(f float64, path string, r rules) {
	if r.min != nil && f < *r.min {
		c.fault(path, "is too small", fmt.Sprintf("at least %v", *r.min))
	}
	if r.max != nil && f > *r.max {
		c.fault(path, "is too large", fmt.Sprintf("at most %v", *r.max))
	}
}

// followedBy adds those of more that are not likely to follow from a fault of l
// around or inside the same value.
func (l ConfigErrors) followedBy(more ConfigErrors) ConfigErrors {
	out := slices.Clone(l)
	for _, e := range more {
		if !slices.ContainsFunc(l, func(have *ConfigError) bool {
			return have.File == e.File && (within(e.Path, have.Path) || within(have.Path, e.Path))
		}) {
			out = append(out, e)
		}
	}
	return out
}

// within reports whether the value at path is inside the one at outer.
func within(path, outer string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (outer == "" || strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "["))
}

// once keeps the first fault of each path.
func (l ConfigErrors) once() ConfigErrors {
	seen := map[string]bool{}
	return slices.DeleteFunc(l, func(e *ConfigError) bool {
		at := e.File + "\x00" + e.Path
		again := e.Path != "" && seen[at]
		seen[at] = true
		return again
	})
}
