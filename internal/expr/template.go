package expr

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

const (
	open   = "${{"
	closed = "}}"
)

// Template is a JSON value with expressions in its strings. It never changes and
// is safe for concurrent use.
type Template struct {
	fill  func(ctx context.Context, variables map[string]any) (any, error)
	shape Shape
	reads [][]string
}

// Template compiles the expressions in a value, which is decoded JSON or what
// encoding/json makes of Go values. Its errors name the place in the value as a
// JSON Pointer.
func (e *Env) Template(v any) (*Template, error) {
	plain, err := ValueOf(v)
	if err != nil {
		return nil, fmt.Errorf("expr: the value is not JSON: %w", err)
	}
	t, err := e.template(plain, "")
	if err != nil {
		return nil, fmt.Errorf("expr: %w", err)
	}
	return t, nil
}

// Expressive reports whether there may be expressions in a value that Template
// takes. One without any reads nothing of its environment.
func Expressive(v any) bool {
	enc, err := json.Marshal(v)
	return err != nil || bytes.Contains(enc, []byte(open))
}

// Shape returns what is known of the value that Fill gives.
func (t *Template) Shape() Shape { return t.shape }

// Reads returns the paths that the template's expressions read.
func (t *Template) Reads() [][]string { return t.reads }

// Fill evaluates the expressions over decoded JSON and returns the value with
// their results in their places.
func (t *Template) Fill(ctx context.Context, variables map[string]any) (any, error) {
	return t.fill(ctx, variables)
}

func (e *Env) template(v any, at string) (*Template, error) {
	switch v := v.(type) {
	case map[string]any:
		return e.object(v, at)
	case []any:
		return e.list(v, at)
	case string:
		return e.text(v, at)
	}
	return literal(v), nil
}

func literal(v any) *Template {
	return &Template{fill: func(context.Context, map[string]any) (any, error) { return v, nil }, shape: shapeOf(v)}
}

func shapeOf(v any) Shape {
	name := map[string]string{"null": "null", "a boolean": "boolean", "a string": "string", "a number": "number"}[kind(v)]
	return Shape{node: map[string]any{"type": name}}
}

func (e *Env) object(v map[string]any, at string) (*Template, error) {
	names := slices.Sorted(maps.Keys(v))
	members := make(map[string]*Template, len(v))
	shapes := make(map[string]Shape, len(v))
	out := &Template{}
	for _, name := range names {
		member, err := e.template(v[name], at+"/"+rawjson.EscapePointer(name))
		if err != nil {
			return nil, err
		}
		members[name], shapes[name] = member, member.shape
		out.reads = append(out.reads, member.reads...)
	}
	out.shape = ObjectOf(shapes)
	out.fill = func(ctx context.Context, variables map[string]any) (any, error) {
		filled := make(map[string]any, len(members))
		for _, name := range names {
			value, err := members[name].fill(ctx, variables)
			if err != nil {
				return nil, err
			}
			filled[name] = value
		}
		return filled, nil
	}
	return out, nil
}

func (e *Env) list(v []any, at string) (*Template, error) {
	elements := make([]*Template, len(v))
	out := &Template{shape: Shape{node: map[string]any{"type": "array"}}}
	for i := range v {
		element, err := e.template(v[i], fmt.Sprintf("%s/%d", at, i))
		if err != nil {
			return nil, err
		}
		elements[i] = element
		out.reads = append(out.reads, element.reads...)
	}
	out.fill = func(ctx context.Context, variables map[string]any) (any, error) {
		filled := make([]any, len(elements))
		for i, element := range elements {
			value, err := element.fill(ctx, variables)
			if err != nil {
				return nil, err
			}
			filled[i] = value
		}
		return filled, nil
	}
	return out, nil
}

// text compiles a string: one expression, a text with expressions, or a text.
func (e *Env) text(s, at string) (*Template, error) {
	if !strings.Contains(s, open) {
		return literal(s), nil
	}
	parts, err := split(s)
	if err != nil {
		return nil, &Misplaced{at, err}
	}
	programs := make([]*Program, len(parts))
	out := &Template{shape: shapeOf("")}
	for i, part := range parts {
		if !part.expression {
			continue
		}
		if programs[i], err = e.Compile(part.text); err != nil {
			return nil, &Misplaced{at, err}
		}
		out.reads = append(out.reads, programs[i].reads...)
	}
	if len(parts) == 1 {
		out.shape, out.fill = programs[0].shape, programs[0].Eval
		return out, nil
	}
	out.fill = func(ctx context.Context, variables map[string]any) (any, error) {
		return join(ctx, parts, programs, variables)
	}
	return out, nil
}

func join(ctx context.Context, parts []part, programs []*Program, variables map[string]any) (any, error) {
	var text strings.Builder
	for i, part := range parts {
		if programs[i] == nil {
			text.WriteString(part.text)
			continue
		}
		value, err := programs[i].Eval(ctx, variables)
		if err != nil {
			return nil, err
		}
		written, err := written(value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", part.text, err)
		}
		if text.Len()+len(written) > maxResult {
			return nil, fmt.Errorf("%s: %w", part.text, errBigResult)
		}
		text.WriteString(written)
	}
	return text.String(), nil
}

// written is a value as it stands in a longer text.
func written(value any) (string, error) {
	if s, ok := value.(string); ok {
		return s, nil
	}
	enc, err := json.Marshal(value)
	return string(rawjson.UnescapeHTML(enc)), err
}

func place(at string) string {
	if at == "" {
		return "the value"
	}
	return at
}

// part is a piece of a string.
type part struct {
	text       string
	expression bool
}

// split cuts a string into its texts and expressions.
func split(s string) ([]part, error) {
	var parts []part
	for {
		before, rest, found := strings.Cut(s, open)
		if before != "" {
			parts = append(parts, part{text: before})
		}
		if !found {
			return parts, nil
		}
		end := ending(rest)
		if end < 0 {
			return nil, fmt.Errorf("%q is not closed by %q", open, closed)
		}
		source := strings.TrimSpace(rest[:end])
		if source == "" {
			return nil, fmt.Errorf("there is no expression between %q and %q", open, closed)
		}
		parts = append(parts, part{text: source, expression: true})
		s = rest[end+len(closed):]
	}
}

// ending returns where the expression at the start of s is closed, outside the
// quotes and the braces in it, or -1.
func ending(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"', '\'':
			if i = skipQuoted(s, i); i < 0 {
				return -1
			}
		case '{':
			depth++
		case '}':
			if depth == 0 {
				if strings.HasPrefix(s[i:], closed) {
					return i
				}
				return -1
			}
			depth--
		}
	}
	return -1
}

// skipQuoted returns the place of the quote that closes the one at i, or -1.
func skipQuoted(s string, i int) int {
	quote := s[i]
	for i++; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case quote:
			return i
		}
	}
	return -1
}
