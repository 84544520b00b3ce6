package jsontemplate

import (
	"errors"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strings"
	"text/template/parse"
	"unicode"
	"unicode/utf8"
)

// A function has at least and at most so many arguments; most is -1 without
// such a limit.
type function struct {
	least, most int
	apply       func(args []any) (any, error)
}

// builtinNames are the functions of text/template.
func builtinNames() []string {
	return []string{"and", "or", "not", "call", "html", "index", "slice", "js", "len", "print", "printf", "println",
		"urlquery", "eq", "ge", "gt", "le", "lt", "ne"}
}

// builtin is a function of text/template, but and and or.
func builtin(name string) function {
	switch name {
	case "not":
		return function{1, 1, func(args []any) (any, error) { return !truth(args[0]), nil }}
	case "call":
		return function{1, -1, func([]any) (any, error) { return nil, errors.New("call takes a function, and JSON has none") }}
	case "html":
		return printer(escapeHTML)
	case "js":
		return printer(escapeJS)
	case "urlquery":
		return printer(url.QueryEscape)
	case "index":
		return function{1, -1, index}
	case "slice":
		return function{1, 4, slice}
	case "len":
		return function{1, 1, func(args []any) (any, error) { return length(args[0]) }}
	case "print":
		return function{0, -1, func(args []any) (any, error) { return fmt.Sprint(args...), nil }}
	case "println":
		return function{0, -1, func(args []any) (any, error) { return fmt.Sprintln(args...), nil }}
	case "printf":
		return function{1, -1, printf}
	}
	return comparison(name)
}

// call calls a function with arguments and what comes through the pipe.
func (r *run) call(dot any, n *parse.IdentifierNode, nodes []parse.Node, final []any) (any, error) {
	if err := r.step(); err != nil {
		return nil, err
	}
	if n.Ident == "and" || n.Ident == "or" {
		return r.choose(dot, n, nodes, final)
	}
	own := r.funcs[n.Ident]
	f := function{least: 1, most: 1}
	if own == nil {
		f = builtin(n.Ident)
	}
	if given := len(nodes) + len(final); given < f.least || f.most >= 0 && given > f.most {
		return nil, r.fail(n, "wrong number of arguments for %s: %d", n.Ident, given)
	}
	args, err := r.arguments(dot, nodes, final)
	if err != nil {
		return nil, err
	}
	if own != nil {
		return own(args[0])
	}
	v, err := f.apply(args)
	if err != nil {
		return nil, r.fail(n, "error calling %s: %v", n.Ident, err)
	}
	if text, ok := v.(string); ok && len(text) > r.limits.Bytes {
		return nil, r.fail(n, "%s made more than %d bytes", n.Ident, r.limits.Bytes)
	}
	return v, nil
}

func (r *run) arguments(dot any, nodes []parse.Node, final []any) ([]any, error) {
	args := make([]any, 0, len(nodes)+len(final))
	for _, n := range nodes {
		v, err := r.operand(dot, n, false)
		if err != nil {
			return nil, err
		}
		args = append(args, bare(v))
	}
	return append(args, final...), nil
}

// choose is and and or: the first argument that decides, or else the last one.
// Those behind it are not evaluated.
func (r *run) choose(dot any, n *parse.IdentifierNode, nodes []parse.Node, final []any) (any, error) {
	if len(nodes)+len(final) == 0 {
		return nil, r.fail(n, "wrong number of arguments for %s: 0", n.Ident)
	}
	var v any
	for _, node := range nodes {
		var err error
		if v, err = r.operand(dot, node, false); err != nil {
			return nil, err
		}
		if truth(v) == (n.Ident == "or") {
			return v, nil
		}
	}
	if len(final) > 0 {
		return final[0], nil
	}
	return v, nil
}

// printable is a value as it is printed: nothing has a text of its own.
func printable(v any) any {
	if v == nil {
		return "<no value>"
	}
	return v
}

// printer is a function that escapes the text of its arguments.
func printer(escape func(string) string) function {
	return function{0, -1, func(args []any) (any, error) {
		shown := slices.Clone(args)
		for i, v := range shown {
			shown[i] = printable(v)
		}
		return escape(fmt.Sprint(shown...)), nil
	}}
}

func printf(args []any) (any, error) {
	format, ok := args[0].(string)
	if !ok {
		return nil, fmt.Errorf("the format is %s, want a string", describe(args[0]))
	}
	return fmt.Sprintf(format, args[1:]...), nil
}

func escapeHTML(s string) string {
	return html.EscapeString(strings.ReplaceAll(s, "\x00", "\uFFFD"))
}

// escapeJS escapes a text for a string of JavaScript, wherever that stands.
func escapeJS(s string) string {
	var b strings.Builder
	for i, size := 0, 0; i < len(s); i += size {
		var c rune
		c, size = utf8.DecodeRuneInString(s[i:])
		switch {
		case c == '\\' || c == '\'' || c == '"':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c < ' ' || strings.ContainsRune("<>&=", c) || c >= utf8.RuneSelf && !unicode.IsPrint(c):
			fmt.Fprintf(&b, `\u%04X`, c)
		default:
			b.WriteString(s[i : i+size])
		}
	}
	return b.String()
}
