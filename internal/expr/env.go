package expr

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/ext"
)

const (
	// maxSource bounds an expression, in characters.
	maxSource = 8 << 10
	// maxCost bounds one evaluation, in CEL's units of cost: about one for
	// each step.
	maxCost = 1_000_000
	// checkEvery says after how many steps of a loop the context is looked at.
	checkEvery = 256
)

// Env is what expressions may read. It never changes and is safe for concurrent
// use.
type Env struct {
	cel      *cel.Env
	declared []string // of which shapes has those that may be read here
	shapes   map[string]Shape
}

// NewEnv declares variables by name. A name is an identifier of CEL.
func NewEnv(variables map[string]Shape) (*Env, error) {
	opts := []cel.EnvOption{
		cel.CustomTypeAdapter(adapter{types.DefaultTypeAdapter}),
		cel.CrossTypeNumericComparisons(true),
		cel.ParserExpressionSizeLimit(maxSource),
		ext.Strings(), ext.Math(), ext.Sets(), ext.Encoders(),
		cel.OptionalTypes(),
	}
	opts = append(opts, growing()...)
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		opts = append(opts, cel.Variable(name, cel.DynType))
	}
	env, err := cel.NewEnv(opts...)
	if err != nil {
		return nil, fmt.Errorf("expr: %w", err)
	}
	return &Env{cel: env, declared: slices.Collect(maps.Keys(variables)), shapes: maps.Clone(variables)}, nil
}

// Knowing returns an environment with some of the variables of e, which hold
// what the shapes say. It costs much less than a new one.
func (e *Env) Knowing(variables map[string]Shape) *Env {
	return &Env{cel: e.cel, declared: e.declared, shapes: maps.Clone(variables)}
}

// Program is one compiled expression. It never changes and is safe for
// concurrent use.
type Program struct {
	source string
	run    cel.Program
	shape  Shape
	path   []step // of an expression that is a path and nothing more
	reads  [][]string
}

// Compile compiles an expression. Its error names the line and column in the
// source, and what was expected there.
func (e *Env) Compile(source string) (*Program, error) {
	checked, issues := e.cel.Compile(source)
	if issues.Err() != nil {
		return nil, fault(issues)
	}
	p := &Program{source: source}
	native := checked.NativeRep()
	look := &looker{env: e, tree: native}
	if err := look.walk(native.Expr()); err != nil {
		return nil, err
	}
	p.path, _ = look.path(native.Expr())
	p.shape, p.reads = look.shape(native.Expr(), checked.OutputType()), look.reads
	run, err := e.cel.Program(checked, cel.CostLimit(maxCost), cel.InterruptCheckFrequency(checkEvery), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, fmt.Errorf("expr: %w", err)
	}
	p.run = run
	return p, nil
}

// fault states the first thing that is wrong with a source.
func fault(issues *cel.Issues) error {
	if list := issues.Errors(); len(list) > 0 {
		first := list[0]
		message, _, _ := strings.Cut(first.Message, "\n")
		return fmt.Errorf("%d:%d: %s", first.Location.Line(), first.Location.Column()+1, message)
	}
	return issues.Err()
}

// Source returns what was compiled.
func (p *Program) Source() string { return p.source }

// Shape returns what is known of the value.
func (p *Program) Shape() Shape { return p.shape }

// Reads returns the paths that the expression reads, from the variable on, as
// far as their steps are names.
func (p *Program) Reads() [][]string { return p.reads }

// Eval evaluates the expression over decoded JSON, as [Decode] gives it. The
// result is of that kind again.
func (p *Program) Eval(ctx context.Context, variables map[string]any) (any, error) {
	if p.path != nil {
		return follow(variables, p.path, p.source)
	}
	out, _, err := p.run.ContextEval(ctx, variables)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("%s: %w", p.source, err)
	}
	v, err := export(out)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.source, err)
	}
	return v, nil
}

// True evaluates a condition.
func (p *Program) True(ctx context.Context, variables map[string]any) (bool, error) {
	v, err := p.Eval(ctx, variables)
	if err != nil {
		return false, err
	}
	b, ok := v.(bool)
	if !ok {
		return false, fmt.Errorf("%s: expected true or false, got %s", p.source, kind(v))
	}
	return b, nil
}

// looker checks what an expression reads against what is known of it.
type looker struct {
	env   *Env
	tree  *ast.AST
	reads [][]string
	bound []string // variables of the macros around
}

// walk looks at an expression and all in it.
func (l *looker) walk(e ast.Expr) error {
	if path, ok := l.path(e); ok {
		l.note(path)
		_, err := l.along(path, e)
		return err
	}
	if e.Kind() == ast.IdentKind && slices.Contains(l.env.declared, e.AsIdent()) && !slices.Contains(l.bound, e.AsIdent()) {
		return l.located(e, fmt.Errorf("there is no %s here; expected one of %s", e.AsIdent(), strings.Join(slices.Sorted(maps.Keys(l.env.shapes)), ", ")))
	}
	if e.Kind() == ast.ComprehensionKind {
		return l.comprehension(e.AsComprehension())
	}
	for _, child := range children(e) {
		if err := l.walk(child); err != nil {
			return err
		}
	}
	return nil
}

func (l *looker) comprehension(c ast.ComprehensionExpr) error {
	if err := l.walk(c.IterRange()); err != nil {
		return err
	}
	mark := len(l.bound)
	l.bound = append(l.bound, c.IterVar(), c.IterVar2(), c.AccuVar())
	defer func() { l.bound = l.bound[:mark] }()
	for _, e := range []ast.Expr{c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()} {
		if err := l.walk(e); err != nil {
			return err
		}
	}
	return nil
}

func children(e ast.Expr) []ast.Expr {
	switch e.Kind() {
	case ast.CallKind:
		call := e.AsCall()
		list := call.Args()
		if call.IsMemberFunction() {
			list = append([]ast.Expr{call.Target()}, list...)
		}
		return list
	case ast.ListKind:
		return e.AsList().Elements()
	case ast.MapKind:
		var list []ast.Expr
		for _, entry := range e.AsMap().Entries() {
			list = append(list, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
		return list
	case ast.SelectKind:
		return []ast.Expr{e.AsSelect().Operand()}
	}
	return nil
}

// step is one step of a path: a member or an element.
type step struct {
	name  string
	index int // of an element, when name is empty
}

// path returns the steps of an expression that is a variable and what follows
// it by name or constant number.
func (l *looker) path(e ast.Expr) ([]step, bool) {
	switch e.Kind() {
	case ast.IdentKind:
		if _, ok := l.env.shapes[e.AsIdent()]; !ok || slices.Contains(l.bound, e.AsIdent()) {
			return nil, false
		}
		return []step{{name: e.AsIdent()}}, true
	case ast.SelectKind:
		s := e.AsSelect()
		if s.IsTestOnly() {
			return nil, false
		}
		return l.then(s.Operand(), step{name: s.FieldName()})
	case ast.CallKind:
		call := e.AsCall()
		if call.FunctionName() != operators.Index {
			return nil, false
		}
		next, ok := constant(call.Args()[1])
		if !ok {
			return nil, false
		}
		return l.then(call.Args()[0], next)
	}
	return nil, false
}

func (l *looker) then(e ast.Expr, next step) ([]step, bool) {
	path, ok := l.path(e)
	if !ok {
		return nil, false
	}
	return append(path, next), true
}

func constant(e ast.Expr) (step, bool) {
	if e.Kind() != ast.LiteralKind {
		return step{}, false
	}
	switch v := e.AsLiteral().(type) {
	case types.String:
		return step{name: string(v)}, v != ""
	case types.Int:
		return step{index: int(v)}, v >= 0
	}
	return step{}, false
}

func (l *looker) note(path []step) {
	var names []string
	for _, s := range path {
		if s.name == "" {
			break
		}
		names = append(names, s.name)
	}
	l.reads = append(l.reads, names)
}

// along follows a path through what is known.
func (l *looker) along(path []step, e ast.Expr) (Shape, error) {
	at, shape := path[0].name, l.env.shapes[path[0].name]
	for _, s := range path[1:] {
		var err error
		next := at + "." + s.name
		if s.name == "" {
			next = fmt.Sprintf("%s[%d]", at, s.index)
			shape, err = shape.Element()
		} else {
			shape, err = shape.Member(s.name)
		}
		if err != nil {
			return Shape{}, l.located(e, fmt.Errorf("%s cannot be read: %w", next, err))
		}
		at = next
	}
	return shape, nil
}

// located puts the place of an expression before what is wrong with it.
func (l *looker) located(e ast.Expr, err error) error {
	where := l.tree.SourceInfo().GetStartLocation(e.ID())
	return fmt.Errorf("%d:%d: %w", where.Line(), where.Column()+1, err)
}

// shape is what is known of the value of the whole expression.
func (l *looker) shape(e ast.Expr, output *cel.Type) Shape {
	if path, ok := l.path(e); ok {
		shape, _ := l.along(path, e)
		return shape
	}
	if name := jsonTypes(output); name != nil {
		return Shape{node: map[string]any{"type": name}}
	}
	return Shape{}
}

// jsonTypes names the JSON types of what CEL says about a result.
func jsonTypes(t *cel.Type) any {
	switch t.Kind() {
	case types.BoolKind:
		return "boolean"
	case types.StringKind, types.BytesKind, types.TimestampKind, types.DurationKind:
		return "string"
	case types.IntKind, types.UintKind:
		return "integer"
	case types.DoubleKind:
		return "number"
	case types.ListKind:
		return "array"
	case types.MapKind:
		return "object"
	case types.NullTypeKind:
		return "null"
	}
	return nil
}

// follow reads a path without CEL, so that a number keeps its spelling.
func follow(variables map[string]any, path []step, source string) (any, error) {
	at, ok := variables[path[0].name]
	if !ok {
		return nil, fmt.Errorf("%s: there is no %s", source, path[0].name)
	}
	for _, s := range path[1:] {
		switch v := at.(type) {
		case map[string]any:
			if at, ok = v[s.name]; !ok || s.name == "" {
				return nil, fmt.Errorf("%s: no such key: %s", source, s.name)
			}
		case []any:
			if s.name != "" || s.index >= len(v) {
				return nil, fmt.Errorf("%s: there is no such element in a list of %d", source, len(v))
			}
			at = v[s.index]
		default:
			return nil, fmt.Errorf("%s: %s has no members", source, kind(at))
		}
	}
	return at, nil
}

// kind names the JSON type of a decoded value.
func kind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string, []byte:
		return "a string"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	}
	return "a number"
}
