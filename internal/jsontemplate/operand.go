package jsontemplate

import (
	"encoding/json"
	"strings"
	"text/template/parse"
)

// pipeline evaluates commands, each of which gets what the one before gave as
// its last argument, and keeps the result in the variables of the pipeline.
func (r *run) pipeline(dot any, pipe *parse.PipeNode) (any, error) {
	var final []any // what the command before gave, if there was one
	for _, cmd := range pipe.Cmds {
		v, err := r.command(dot, cmd, final)
		if err != nil {
			return nil, err
		}
		final = []any{bare(v)}
	}
	for _, decl := range pipe.Decl {
		if !pipe.IsAssign {
			r.vars = append(r.vars, variable{decl.Ident[0], final[0]})
			continue
		}
		if err := r.assign(decl, final[0]); err != nil {
			return nil, err
		}
	}
	return final[0], nil
}

func (r *run) command(dot any, cmd *parse.CommandNode, final []any) (any, error) {
	switch n := cmd.Args[0].(type) {
	case *parse.IdentifierNode:
		return r.call(dot, n, cmd.Args[1:], final)
	case *parse.NilNode:
		return nil, r.fail(n, "nil is not a command")
	}
	return r.operand(dot, cmd.Args[0], len(cmd.Args) > 1 || len(final) > 0)
}

// operand evaluates a word that is not a function with arguments. It may have
// been given some nevertheless.
func (r *run) operand(dot any, n parse.Node, given bool) (any, error) {
	switch n := n.(type) {
	case *parse.FieldNode:
		return r.fields(dot, n, n.Ident, given)
	case *parse.VariableNode:
		found, err := r.find(n)
		if err != nil {
			return nil, err
		}
		return r.fields(found.value, n, n.Ident[1:], given)
	case *parse.ChainNode:
		v, err := r.operand(dot, n.Node, false)
		if err != nil {
			return nil, err
		}
		return r.fields(bare(v), n, n.Field, given)
	}
	if given {
		return nil, r.fail(n, "this is not a function and takes no arguments")
	}
	return r.plain(dot, n)
}

func (r *run) plain(dot any, n parse.Node) (any, error) {
	switch n := n.(type) {
	case *parse.DotNode:
		return dot, nil
	case *parse.NilNode:
		return nil, nil
	case *parse.BoolNode:
		return n.True, nil
	case *parse.StringNode:
		return n.Text, nil
	case *parse.NumberNode:
		return r.number(n)
	case *parse.PipeNode:
		return r.pipeline(dot, n)
	case *parse.IdentifierNode:
		return r.call(dot, n, nil, nil)
	}
	return nil, r.fail(n, "not available in these templates")
}

// number is a constant: of the type that its spelling has in Go, and an int
// rather than a float where both are possible.
func (r *run) number(n *parse.NumberNode) (any, error) {
	switch {
	case n.IsComplex:
		return n.Complex128, nil
	case n.IsFloat && floats(n.Text):
		return n.Float64, nil
	case n.IsInt && int64(int(n.Int64)) == n.Int64:
		return int(n.Int64), nil
	}
	return nil, r.fail(n, "the number is too large")
}

// floats tells of a number's text that it is one of a float.
func floats(text string) bool {
	switch {
	case strings.HasPrefix(text, "'"):
		return false
	case len(text) > 2 && (strings.HasPrefix(text, "0x") || strings.HasPrefix(text, "0X")):
		return strings.ContainsAny(text, "pP")
	}
	return strings.ContainsAny(text, ".eEpP")
}

// fields follows names from a value. Arguments, if given, are meant for the
// last of them.
func (r *run) fields(v any, n parse.Node, names []string, given bool) (any, error) {
	if len(names) == 0 && given {
		return nil, r.fail(n, "a variable is not a function and takes no arguments")
	}
	for i, name := range names {
		var err error
		if v, err = r.field(v, n, name, given && i == len(names)-1); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// field is a member of a value, and nothing where there is none.
func (r *run) field(v any, n parse.Node, name string, given bool) (any, error) {
	if v == nil {
		return nil, nil
	}
	var member any
	switch v := v.(type) {
	case json.Number:
		return r.method(v, n, name, given)
	case map[string]any:
		if m, ok := v[name]; ok {
			member = held(m)
		}
	case Data:
		if name != "Args" {
			return nil, r.fail(n, "there is no .%s: these templates see the arguments as .Args alone", name)
		}
		member = v.Args
	default:
		return nil, r.fail(n, "%s has no field %s", describe(v), name)
	}
	if given {
		return nil, r.fail(n, "%s is not a function and takes no arguments", name)
	}
	return member, nil
}

// method calls a method of a number.
func (r *run) method(v json.Number, n parse.Node, name string, given bool) (any, error) {
	var result any
	var err error
	switch name {
	case "String":
		result = v.String()
	case "Int64":
		result, err = v.Int64()
	case "Float64":
		result, err = v.Float64()
	default:
		return nil, r.fail(n, "a number has no field %s", name)
	}
	if given {
		return nil, r.fail(n, "%s takes no arguments", name)
	}
	if err != nil {
		return nil, r.fail(n, "the number does not fit what %s gives", name)
	}
	return result, nil
}
