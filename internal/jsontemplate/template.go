// Package jsontemplate runs Go's templates over decoded JSON. The language, its
// parser and its meaning are those of text/template; what is left out is all
// that needs methods found by name, which would keep the linker from removing
// the unused methods of a whole program.
//
// Values are those that encoding/json decodes to, with numbers as json.Number:
// as for text/template, such a number is a text whose methods String, Int64 and
// Float64 a template can call. The actions define, block, template, break and
// continue are not available.
package jsontemplate

import (
	"errors"
	"fmt"
	"strings"
	"text/template/parse"
)

// Data is what a template sees as its dot.
type Data = struct{ Args map[string]any }

// A Func is a function of one argument that a template can call beside the
// builtin ones. Its errors are returned as they are.
type Func func(v any) (string, error)

// A Template is a parsed template. It is safe for concurrent use once its tree
// is no longer changed.
type Template struct {
	tree  *parse.Tree
	funcs map[string]Func
}

// Limits bound an execution.
type Limits struct {
	Bytes int // of the output, and of each text that is made on the way
	Steps int // actions, texts and calls of functions
}

// Parse parses a template.
func Parse(text string, funcs map[string]Func) (*Template, error) {
	names := map[string]any{}
	for _, name := range builtinNames() {
		names[name] = true
	}
	for name := range funcs {
		names[name] = true
	}
	trees, err := parse.Parse("", text, "", "", names)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "template: :"))
	}
	if len(trees) > 1 {
		return nil, errors.New("define and block are not available in these templates")
	}
	return &Template{tree: trees[""], funcs: funcs}, nil
}

// Tree is the parsed text. It may be changed before the first execution.
func (t *Template) Tree() *parse.Tree { return t.tree }

// Execute runs the template over data and returns what it prints.
func (t *Template) Execute(data Data, limits Limits) (string, error) {
	r := run{tree: t.tree, funcs: t.funcs, limits: limits, vars: []variable{{"$", data}}}
	if err := r.list(data, t.tree.Root); err != nil {
		return "", err
	}
	return r.out.String(), nil
}

// fail is an error at a node.
func (r *run) fail(n parse.Node, format string, args ...any) error {
	place, context := r.tree.ErrorContext(n)
	return fmt.Errorf("%s: at <%s>: %s", strings.TrimPrefix(place, ":"), context, fmt.Sprintf(format, args...))
}
