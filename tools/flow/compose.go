package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/toolcrib/toolcrib/internal/expr"
	"github.com/toolcrib/toolcrib/schema"
	"github.com/toolcrib/toolcrib/tools"
)

// Runner runs one tool and gives its result as a JSON value. Package exec has
// one over a catalog. A Runner that can describe its tools lets Compose check
// what they are given.
type Runner interface {
	Run(ctx context.Context, toolID string, inputs map[string]any) (any, error)
}

type describer interface {
	Describe(ctx context.Context, toolID string) (tools.Tool, bool)
}

// Options tune a flow.
type Options struct {
	// Runner runs the tools. It may be nil if no node calls one.
	Runner Runner
	// Recorder keeps what becomes of runs. Nil keeps nothing.
	Recorder Recorder
}

const (
	defaultParallel = 8
	// maxNodes bounds the nodes of one definition, and maxNesting how deep flows
	// stand in flows.
	maxNodes   = 10_000
	maxNesting = 16
	// maxForEach bounds the elements of one ForEach, which are all filled in
	// once before the first runs.
	maxForEach = 100_000
)

// Flow is a definition that can be run. It never changes and is safe for
// concurrent use.
type Flow struct {
	name     string
	digest   string
	def      *Definition
	graph    *graph
	runner   Runner
	recorder Recorder

	schema json.RawMessage
	inputs *schema.Schema
	nodes  []*node
	output *expr.Template
	budget Budget
	limit  int
	parts  []tools.Tool // the tools that the flow calls, as they were known
}

// node is a compiled Node.
type node struct {
	*Node
	place   int // in the topological order
	inputs  *expr.Template
	items   *expr.Program
	message *expr.Template
	edges   []edge
	sources int // edges into it
	nested  *Flow
	spare   int  // the node of OnError, or -1
	undo    int  // or -1
	known   bool // what follows is
	effects tools.SideEffect
	// composed says that the tool makes calls of its own.
	composed bool
}

type edge struct {
	to   int
	when *expr.Program
}

// Compose checks a definition and makes a flow of it. Errors wrap ErrInvalid and
// name the place, in a parsed definition with its line and column.
func Compose(def Definition, opts *Options) (*Flow, error) {
	if opts == nil {
		opts = &Options{}
	}
	return compose(context.Background(), &def, opts, 0)
}

// ComposeFor is Compose for the caller on ctx: the tools that are known are those
// that the caller sees.
func ComposeFor(ctx context.Context, def Definition, opts *Options) (*Flow, error) {
	if opts == nil {
		opts = &Options{}
	}
	return compose(ctx, &def, opts, 0)
}

func compose(ctx context.Context, given *Definition, opts *Options, depth int) (*Flow, error) {
	def := *given
	def.Nodes = slices.Clone(given.Nodes)
	if err := def.check(depth); err != nil {
		return nil, err
	}
	g, err := newGraph(&def)
	if err != nil {
		return nil, err
	}
	f := &Flow{name: def.Name, def: &def, graph: g, runner: opts.Runner, recorder: opts.Recorder, budget: def.Budget, limit: def.Parallel}
	if f.limit == 0 {
		f.limit = defaultParallel
	}
	f.limit = min(f.limit, len(def.Nodes)) // a run has room for as many
	if f.digest, err = def.digest(); err != nil {
		return nil, def.fault("nodes", "%w", err)
	}
	c := &composer{ctx: ctx, flow: f, opts: opts, depth: depth, shapes: make([]expr.Shape, len(def.Nodes))}
	return f, c.compose()
}

func (d *Definition) check(depth int) error {
	if err := tools.CheckName(d.Name); err != nil {
		return d.fault("name", "%w", err)
	}
	switch {
	case depth > maxNesting:
		return d.fault("nodes", "flows stand more than %d deep in one another", maxNesting)
	case len(d.Nodes) == 0:
		return d.fault("nodes", "there are no nodes")
	case len(d.Nodes) > maxNodes:
		return d.fault("nodes", "there are %d nodes; at most %d are allowed", len(d.Nodes), maxNodes)
	case d.Parallel < 0:
		return d.fault("parallel", "expected a number above 0")
	}
	return d.checkBudget()
}

func (d *Definition) checkBudget() error {
	b := d.Budget
	switch {
	case b.Deadline < 0 || b.HopBudget < 0 || b.Calls < 0 || b.CostCap < 0:
		return d.fault("budget", "a limit is below 0")
	case !finite(b.CostCap):
		return d.fault("budget.cost_cap", "expected a finite number")
	}
	return nil
}

// finite reports whether sums of the number can be compared: nothing is more than
// what is no number, so that no budget would ever hold it.
func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// composer compiles the nodes of one flow.
type composer struct {
	ctx   context.Context
	flow  *Flow
	opts  *Options
	depth int
	// language has every variable that expressions of flows may read somewhere.
	language *expr.Env
	input    expr.Shape
	shapes   []expr.Shape // of the nodes' results
}

func (c *composer) compose() (err error) {
	f, def := c.flow, c.flow.def
	if f.schema = def.Inputs; len(f.schema) == 0 {
		f.schema = json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)
	}
	if f.inputs, err = schema.Compile(f.schema, nil); err != nil {
		return def.fault("inputs", "%w", err)
	}
	if c.input, err = expr.NewShape(f.schema); err == nil {
		err = c.input.CanBeObject()
	}
	if err != nil {
		return def.fault("inputs", "%w", err)
	}
	if c.language, err = expr.NewEnv(map[string]expr.Shape{"inputs": {}, "nodes": {}, "item": {}, "index": {}, "error": {}}); err != nil {
		return err
	}
	f.nodes = make([]*node, len(def.Nodes))
	for place, i := range append(slices.Clone(f.graph.order), sortedKeys(f.graph.apart)...) {
		if f.nodes[i], err = c.node(i); err != nil {
			return err
		}
		f.nodes[i].place = place
	}
	return c.finish()
}

// finish compiles what reads the results of the nodes: conditions and output.
func (c *composer) finish() (err error) {
	f, def := c.flow, c.flow.def
	for i := range f.nodes {
		if err := c.edges(i); err != nil {
			return err
		}
	}
	if def.Output == nil {
		return nil
	}
	exit := f.graph.index[def.Exit]
	seen := slices.Clone(f.graph.above[exit])
	seen.add(exit)
	if f.output, err = c.env(seen, nil).Template(def.Output); err != nil {
		return def.fault("output", "%w", err)
	}
	return nil
}

// env is what a node may read: the inputs, the nodes that are seen, and more.
func (c *composer) env(seen bits, more map[string]expr.Shape) *expr.Env {
	results := map[string]expr.Shape{}
	for i := range c.flow.def.Nodes {
		if seen.has(i) {
			results[c.flow.def.Nodes[i].ID] = c.shapes[i]
		}
	}
	variables := map[string]expr.Shape{"inputs": c.input, "nodes": expr.ObjectOf(results)}
	maps.Copy(variables, more)
	return c.language.Knowing(variables)
}

func (c *composer) node(i int) (*node, error) {
	def, g := c.flow.def, c.flow.graph
	n := &node{Node: &def.Nodes[i], sources: len(g.in[i]), spare: -1, undo: -1}
	if err := c.plain(i, n); err != nil {
		return nil, err
	}
	if n.OnError.Do == Fallback {
		n.spare = g.index[n.OnError.Node]
	}
	if n.Undo != "" {
		n.undo = g.index[n.Undo]
	}
	want, result, err := c.work(i, n)
	if err != nil {
		return nil, err
	}
	if err := c.given(i, n, want); err != nil {
		return nil, err
	}
	c.shapes[i] = result
	if n.ForEach != nil {
		c.shapes[i] = listOf()
	}
	return n, nil
}

func listOf() expr.Shape {
	s, _ := expr.NewShape(json.RawMessage(`{"type":"array"}`))
	return s
}

// plain checks what a node says by itself.
func (c *composer) plain(i int, n *node) error {
	def, at := c.flow.def, nodePath(i)
	kinds := 0
	for _, given := range []bool{n.Tool != "", n.Func != nil, n.Flow != nil, n.Ask != nil} {
		if given {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return def.fault(at, "node %q: expected just one of tool, func, flow and ask", n.ID)
	case n.Join != "" && n.Join != JoinAny && n.Join != JoinAll:
		return def.fault(at+".join", "%q: expected any or all", n.Join)
	case n.Timeout < 0:
		return def.fault(at+".timeout", "expected a time above 0")
	case n.Retry.Attempts < 0 || n.Retry.Backoff < 0:
		return def.fault(at+".retry", "expected numbers above 0")
	case n.Cost < 0 || !finite(n.Cost):
		return def.fault(at+".cost", "expected a finite number above 0")
	case n.ForEach != nil && (n.ForEach.Limit < 0 || n.ForEach.Parallel < 0):
		return def.fault(at+".for_each", "expected numbers above 0")
	case n.ForEach != nil && n.ForEach.Limit > maxForEach:
		return def.fault(at+".for_each.limit", "expected at most %d", maxForEach)
	}
	if !slices.Contains([]Handling{"", Fail, Skip, Fallback, Compensate}, n.OnError.Do) {
		return def.fault(at+".on_error", "%q: expected fail, skip, fallback or compensate", n.OnError.Do)
	}
	return nil
}

// work looks at what the node does: what it wants to be given, and what it
// gives.
func (c *composer) work(i int, n *node) (want, result expr.Shape, err error) {
	def, at := c.flow.def, nodePath(i)
	switch {
	case n.Tool != "":
		return c.tool(i, n)
	case n.Func != nil:
		if n.Func.err != nil {
			return want, result, def.fault(at+".func", "%w", n.Func.err)
		}
		return c.shapesOf(at, n.Func.in, n.Func.out)
	case n.Flow != nil:
		inner := *n.Flow
		inner.root = def.inner(i)
		if n.nested, err = compose(c.ctx, &inner, c.opts, c.depth+1); err != nil {
			return want, result, err
		}
		c.flow.parts = append(c.flow.parts, n.nested.parts...)
		n.known, n.effects = true, whole(n.nested.parts).SideEffects
		return c.shapesOf(at, n.nested.schema, nil)
	}
	if len(n.Ask.Schema) > 0 {
		if _, err := schema.Compile(n.Ask.Schema, nil); err != nil {
			return want, result, def.fault(at+".ask.schema", "%w", err)
		}
		return c.shapesOf(at, nil, n.Ask.Schema)
	}
	return c.shapesOf(at, nil, json.RawMessage(approval))
}

func (c *composer) shapesOf(at string, in, out json.RawMessage) (want, result expr.Shape, err error) {
	if want, err = expr.NewShape(in); err != nil {
		return want, result, c.flow.def.fault(at, "%w", err)
	}
	if result, err = expr.NewShape(out); err != nil {
		return want, result, c.flow.def.fault(at, "%w", err)
	}
	return want, result, nil
}

func (c *composer) tool(i int, n *node) (want, result expr.Shape, err error) {
	def, at := c.flow.def, nodePath(i)
	if c.opts.Runner == nil {
		return want, result, def.fault(at+".tool", "the node calls a tool and there is no runner")
	}
	d, ok := c.opts.Runner.(describer)
	if able, says := c.opts.Runner.(interface{ Describes() bool }); !ok || says && !able.Describes() {
		return want, result, nil
	}
	tool, ok := d.Describe(c.ctx, n.Tool)
	if !ok {
		return want, result, def.fault(at+".tool", "%w: %q", tools.ErrToolNotFound, n.Tool)
	}
	c.flow.parts = append(c.flow.parts, tool)
	n.known, n.effects, n.composed = true, tool.SideEffects, tool.Transport == tools.TransportFlow
	return c.shapesOf(at, tool.ArgsSchema, tool.OutSchema)
}

// given compiles what the node is given and compares it with what it wants.
func (c *composer) given(i int, n *node, want expr.Shape) error {
	def, at := c.flow.def, nodePath(i)
	seen := c.flow.graph.visible(i)
	more := map[string]expr.Shape{}
	if c.flow.graph.apart[i] != "" {
		more["error"] = text()
	}
	env := c.language
	if n.ForEach != nil || n.reads() {
		env = c.env(seen, more)
	}
	if n.ForEach != nil {
		items, err := env.Compile(n.ForEach.Items)
		if err != nil {
			return def.fault(at+".for_each.items", "%w", err)
		}
		n.items = items
		if _, err := n.items.Shape().Element(); err != nil {
			return def.fault(at+".for_each.items", "expected a list: %w", err)
		}
		item, _ := n.items.Shape().Element()
		more["item"], more["index"] = item, expr.Shape{}
		env = c.env(seen, more)
	}
	return c.compiled(env, i, n, want)
}

// reads reports whether there may be expressions in what the node is given. What a
// node may read is as much as all before it, so it is gathered for those only.
func (n *Node) reads() bool {
	given := []any{n.Inputs}
	if n.Ask != nil {
		given = append(given, n.Ask.Message)
	}
	return expr.Expressive(given)
}

func text() expr.Shape {
	s, _ := expr.NewShape(json.RawMessage(`{"type":"string"}`))
	return s
}

func (c *composer) compiled(env *expr.Env, i int, n *node, want expr.Shape) (err error) {
	def, at := c.flow.def, nodePath(i)
	inputs := n.Inputs
	if inputs == nil {
		inputs = map[string]any{}
	}
	if n.inputs, err = env.Template(inputs); err != nil {
		return def.fault(at+".inputs", "%w", err)
	}
	if n.Ask != nil {
		if n.message, err = env.Template(n.Ask.Message); err != nil {
			return def.fault(at+".ask.message", "%w", err)
		}
		return nil
	}
	if err := n.inputs.Shape().Fits(want); err != nil {
		return def.fault(at+".inputs", "node %q: %w", n.ID, err)
	}
	return nil
}

// edges compiles the conditions of the edges out of a node, which may read it.
func (c *composer) edges(i int) error {
	def, g := c.flow.def, c.flow.graph
	var env *expr.Env // of the conditions, if there are any
	if slices.ContainsFunc(def.Nodes[i].Next, func(e Edge) bool { return e.When != "" }) {
		seen := slices.Clone(g.above[i])
		seen.add(i)
		env = c.env(seen, nil)
	}
	for e, next := range def.Nodes[i].Next {
		compiled := edge{to: g.index[next.To]}
		if next.When != "" {
			at := fmt.Sprintf("%s.next[%d].when", nodePath(i), e)
			when, err := env.Compile(next.When)
			if err != nil {
				return def.fault(at, "%w", err)
			}
			if t := when.Shape().Types(); t != nil && !slices.Contains(t, "boolean") {
				return def.fault(at, "expected true or false, got %s", t[0])
			}
			compiled.when = when
		}
		c.flow.nodes[i].edges = append(c.flow.nodes[i].edges, compiled)
	}
	return nil
}

// Name returns the flow's name.
func (f *Flow) Name() string { return f.name }

// Digest identifies what a run of the flow does. A run goes on only in a flow of the
// digest that it began in.
func (f *Flow) Digest() string { return f.digest }

// InputsSchema returns the JSON Schema of what a run is given.
func (f *Flow) InputsSchema() json.RawMessage { return slices.Clone(f.schema) }

// timeout limits ctx, if d is not zero.
func timeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, d, cause)
}
