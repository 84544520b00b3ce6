package jsontemplate

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"text/template/parse"
)

// A run is one execution of a template.
type run struct {
	tree   *parse.Tree
	funcs  map[string]Func
	limits Limits

	out   strings.Builder
	steps int
	vars  []variable // a stack; the innermost is last
}

type variable struct {
	name  string
	value any
}

// null is a JSON null where it stands in an object or array. Asking it for a
// field is an error, while asking nothing (nil) gives nothing. What a pipeline
// gives is never null but nil.
type null struct{}

// held is a value as it stands in an object or array.
func held(v any) any {
	if v == nil {
		return null{}
	}
	return v
}

// bare is a value as a pipeline gives it and functions take it.
func bare(v any) any {
	if v == (null{}) {
		return nil
	}
	return v
}

func (r *run) step() error {
	if r.steps++; r.steps > r.limits.Steps {
		return fmt.Errorf("the template takes more than %d steps", r.limits.Steps)
	}
	return nil
}

func (r *run) write(text string) error {
	if len(text) > r.limits.Bytes-r.out.Len() {
		return fmt.Errorf("the template produced more than %d bytes", r.limits.Bytes)
	}
	r.out.WriteString(text)
	return nil
}

func (r *run) list(dot any, n *parse.ListNode) error {
	if n == nil {
		return nil
	}
	for _, child := range n.Nodes {
		if err := r.step(); err != nil {
			return err
		}
		if err := r.node(dot, child); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) node(dot any, n parse.Node) error {
	switch n := n.(type) {
	case *parse.TextNode:
		return r.write(string(n.Text))
	case *parse.ActionNode:
		return r.action(dot, n)
	case *parse.IfNode:
		return r.branch(dot, &n.BranchNode)
	case *parse.WithNode:
		return r.branch(dot, &n.BranchNode)
	case *parse.RangeNode:
		return r.loop(dot, n)
	case *parse.CommentNode:
		return nil
	}
	return r.fail(n, "not available in these templates")
}

// action prints what a pipeline gives, unless it is kept in a variable, which
// lives until the end of what surrounds it.
func (r *run) action(dot any, n *parse.ActionNode) error {
	v, err := r.pipeline(dot, n.Pipe)
	if err != nil || len(n.Pipe.Decl) > 0 {
		return err
	}
	if text, ok := v.(string); ok {
		return r.write(text)
	}
	return r.write(fmt.Sprint(printable(v)))
}

// branch runs if and with.
func (r *run) branch(dot any, n *parse.BranchNode) error {
	defer r.pop(len(r.vars))
	v, err := r.pipeline(dot, n.Pipe)
	if err != nil {
		return err
	}
	if !truth(v) {
		return r.list(dot, n.ElseList)
	}
	if n.NodeType == parse.NodeWith {
		dot = v
	}
	return r.list(dot, n.List)
}

func (r *run) loop(dot any, n *parse.RangeNode) error {
	defer r.pop(len(r.vars))
	over, err := r.pipeline(dot, n.Pipe)
	if err != nil {
		return err
	}
	elements, err := r.elements(n, over)
	if err != nil {
		return err
	}
	ran, mark := false, len(r.vars)
	for key, element := range elements {
		ran = true
		if err := r.step(); err != nil {
			return err
		}
		if err := r.bind(n.Pipe, key, element); err != nil {
			return err
		}
		if err := r.list(element, n.List); err != nil {
			return err
		}
		r.pop(mark)
	}
	if ran {
		return nil
	}
	return r.list(dot, n.ElseList)
}

// elements are the keys and values that a loop runs over; those of an object
// in the order of their names.
func (r *run) elements(n *parse.RangeNode, over any) (iter.Seq2[any, any], error) {
	single := len(n.Pipe.Decl) < 2
	switch over := over.(type) {
	case nil:
		return func(func(any, any) bool) {}, nil
	case []any:
		return inOrder(over), nil
	case map[string]any:
		return byName(over), nil
	case int:
		if single {
			return upTo(over), nil
		}
	case int64:
		if single {
			return upTo(over), nil
		}
	case uint8:
		if single {
			return upTo(over), nil
		}
	default:
		return nil, r.fail(n.Pipe, "range cannot iterate over %s", describe(over))
	}
	return nil, r.fail(n.Pipe, "range over a number has one variable")
}

func inOrder(list []any) iter.Seq2[any, any] {
	return func(yield func(any, any) bool) {
		for i, v := range list {
			if !yield(i, held(v)) {
				return
			}
		}
	}
}

func byName(object map[string]any) iter.Seq2[any, any] {
	return func(yield func(any, any) bool) {
		for _, name := range slices.Sorted(maps.Keys(object)) {
			if !yield(name, held(object[name])) {
				return
			}
		}
	}
}

func upTo[N int | int64 | uint8](n N) iter.Seq2[any, any] {
	return func(yield func(any, any) bool) {
		for i := N(0); i < n; i++ {
			if !yield(nil, i) {
				return
			}
		}
	}
}

// bind gives the variables of a loop their values: one has the element, two
// have key and element.
func (r *run) bind(pipe *parse.PipeNode, key, element any) error {
	values := []any{key, element}[2-len(pipe.Decl):]
	for i, v := range values {
		if !pipe.IsAssign {
			r.vars[len(r.vars)-len(values)+i].value = v
			continue
		}
		if err := r.assign(pipe.Decl[i], v); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) pop(mark int) { r.vars = r.vars[:mark] }

func (r *run) assign(n *parse.VariableNode, v any) error {
	found, err := r.find(n)
	if err == nil {
		found.value = v
	}
	return err
}

// find returns the innermost variable of a name. It may not be there although
// it is declared: in an argument that was not evaluated.
func (r *run) find(n *parse.VariableNode) (*variable, error) {
	for i := len(r.vars) - 1; i >= 0; i-- {
		if r.vars[i].name == n.Ident[0] {
			return &r.vars[i], nil
		}
	}
	return nil, r.fail(n, "the variable %s has no value here", n.Ident[0])
}
