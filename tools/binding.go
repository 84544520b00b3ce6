package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/schema"
)

// binding is a registered tool with everything that a call of it needs. It
// never changes, its spare copies apart.
type binding struct {
	cat *catalog
	// given is the tool as it was registered, before the operator's
	// amendments; tool is what callers see. Both are copies of our own, and
	// share what is the same in both.
	given, tool Tool
	driver      Invoker
	validate    func(json.RawMessage) error
	companion   Companion
	in, out     *schema.Schema
	policy      ToolPolicy
	optsIn      bool
	bus         events.EventBus
	inline      bool
	redirect    Redirect // nil for a tool that is run itself
	hidden      bool
	order       uint64 // grows with every binding of the catalog
	invoke      Invoker
	// below are the orders of the bindings that this one took the place of and
	// that its driver may call, the nearest first.
	below       []uint64
	bytes, strs int // sizes of the tool's slices, for copying
	spare       atomic.Pointer[spares]
}

// bind makes a binding of a descriptor. old, when not nil, is the binding that
// it takes the place of. The caller holds the lock.
func (c *catalog) bind(d ToolDescriptor, old *binding) (*binding, error) {
	one := []candidate{{d: d, old: old}}
	c.bindAll(one)
	return one[0].b, one[0].err
}

// newBinding makes a binding of copies, which is not amended and not complete
// yet. It may run for several tools at once.
func (c *catalog) newBinding(d *ToolDescriptor, old *binding) (*binding, error) {
	if d.Invoke == nil {
		return nil, invalid(d.Tool.Name, errors.New("the descriptor has no Invoke"))
	}
	if err := checkDepth(&d.Tool); err != nil {
		return nil, err
	}
	b := &binding{cat: c, given: keptTool(&d.Tool), driver: d.driver(), validate: d.Validate, companion: d.Companion,
		bus: d.bus, inline: d.inline, redirect: d.redirect}
	if old != nil {
		b.hidden = old.hidden
	}
	b.invoke = b.Invoke
	b.tool = b.given
	if c.amend != nil {
		b.tool = cloneTool(&b.given)
	}
	return b, nil
}

// driver returns the innermost step: of a descriptor that a catalog bound and
// whose Invoke nobody replaced, the step that was registered.
func (d *ToolDescriptor) driver() Invoker {
	if d.isBound() {
		return d.bound.driver
	}
	return d.Invoke
}

// isBound reports whether Invoke is still the one that the catalog bound.
func (d *ToolDescriptor) isBound() bool {
	return d.bound != nil && closureOf(d.Invoke) == closureOf(d.bound.invoke)
}

// maxWrappers bounds how many wrappers around one tool are remembered.
const maxWrappers = 64

// above returns what a binding whose driver may call b has below it.
func (b *binding) above() []uint64 {
	return append([]uint64{b.order}, b.below[:min(len(b.below), maxWrappers-1)]...)
}

// isAbove reports whether wrappers were put around older to make b.
func (b *binding) isAbove(older *binding) bool {
	return b.cat == older.cat && slices.Contains(b.below, older.order)
}

// closureOf identifies a function value. A binding's Invoke is made into one
// once, so that the same closure means the same binding.
func closureOf(f Invoker) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&f)) }

// amend lets the operator adjust what callers see. The caller holds the lock.
func (b *binding) amend() (err error) {
	b.cat.order++
	b.order = b.cat.order
	if b.cat.amend == nil {
		return nil
	}
	defer func() {
		if r := recover(); r != nil {
			err = invalid(b.given.Name, fmt.Errorf("the amendment panicked: %v", r))
		}
	}()
	b.cat.amend(&b.tool)
	return nil
}

// own makes what was amended a copy of our own again, as the operator's function
// may have kept a part of it.
func (b *binding) own() {
	t := &b.tool
	t.Name = b.given.Name
	shareText(&t.ArgsSchema, b.given.ArgsSchema)
	shareText(&t.OutSchema, b.given.OutSchema)
	shareText(&t.Definition, b.given.Definition)
	*t = cloneExcept(t, &b.given)
}

// complete fills in what callers see and checks all of it. It may run for
// several bindings at once.
func (b *binding) complete() error {
	if b.cat.amend != nil {
		b.own()
	}
	t := &b.tool
	if err := b.cat.checkTool(t); err != nil {
		return invalid(t.Name, err)
	}
	fillIn(t)
	if err := hideInjected(t); err != nil {
		return invalid(t.Name, err)
	}
	if err := checkExamples(t); err != nil {
		return err
	}
	if err := b.compile(); err != nil {
		return invalid(t.Name, err)
	}
	t.DefinitionDigest = definitionDigest(t)
	b.policy, b.optsIn = t.Policy.Resolved(), t.Policy.optsIn()
	b.bytes, b.strs = footprint(t)
	return nil
}

// compile compiles the schemas and keeps one copy of their texts.
func (b *binding) compile() (err error) {
	if b.in, err = b.cat.schemas.compile(b.tool.ArgsSchema); err != nil {
		return fmt.Errorf("arguments schema: %w", err)
	}
	if b.out, err = b.cat.schemas.compile(b.tool.OutSchema); err != nil {
		return fmt.Errorf("output schema: %w", err)
	}
	for _, t := range []*Tool{&b.tool, &b.given} {
		if b.in != nil {
			shareText(&t.ArgsSchema, b.in.Raw())
		}
		if b.out != nil {
			shareText(&t.OutSchema, b.out.Raw())
		}
	}
	return nil
}

func invalid(name string, err error) error {
	return &Error{Tool: truncate(name, maxShownName), Code: ErrToolInvalid, Class: ErrClassPermanent, Delivery: NotDelivered, Err: err}
}

// checkTool checks what a tool says about itself, apart from its schemas.
func (c *catalog) checkTool(t *Tool) error {
	check := CheckName
	if c.strict {
		check = StrictNames
	}
	if err := check(t.Name); err != nil {
		return err
	}
	if !t.SideEffects.known() {
		return fmt.Errorf("unknown side effect %q: expected pure, read, write, external or stateful", t.SideEffects)
	}
	if t.Loading != "" && t.Loading != LoadingAlways && t.Loading != LoadingDeferred {
		return fmt.Errorf("unknown loading mode %q: expected always or deferred", t.Loading)
	}
	if !t.Kind.known() {
		return fmt.Errorf("unknown kind %q: expected nothing, resource, resource_template, prompt or meta", t.Kind)
	}
	if slices.Contains(t.AuthScopes, "") || slices.Contains(t.Tenants, "") {
		return errors.New("a scope or tenant must not be empty")
	}
	for _, i := range t.Injected {
		if err := i.check(); err != nil {
			return err
		}
	}
	return t.Policy.check()
}

func (p ToolPolicy) check() error {
	for _, c := range p.RetryOn {
		if !c.known() {
			return fmt.Errorf("policy: unknown error class %q: expected transient, timeout, 5xx or permanent", c)
		}
	}
	if math.IsNaN(p.BackoffMult) || math.IsInf(p.BackoffMult, 0) {
		return fmt.Errorf("policy: the back-off multiplier is %v: expected a number", p.BackoffMult)
	}
	switch p.Validate {
	case "", ValidateNone, ValidateBoth, ValidateIn, ValidateOut:
		return nil
	}
	return fmt.Errorf("policy: unknown validate mode %q: expected none, in, out or both", p.Validate)
}

// fillIn derives what a tool leaves open.
func fillIn(t *Tool) {
	if t.Transport == "" {
		t.Transport = TransportInProcess
	}
	if t.Namespace == "" {
		t.Namespace = namespaceOf(t.Name)
	}
	if t.SourceName == "" {
		t.SourceName = t.Name
	}
	t.reconcile()
	t.Tags = sortedSet(t.Tags)
	t.AuthScopes = sortedSet(t.AuthScopes)
	t.Tenants = sortedSet(t.Tenants)
}

// sortedSet returns a list sorted and without repetitions. It does not change
// the list.
func sortedSet(s []string) []string {
	if len(s) == 0 {
		return nil
	}
	if !slices.IsSorted(s) {
		s = slices.Sorted(slices.Values(s))
	}
	for i := range s[1:] {
		if s[i] == s[i+1] {
			return slices.Compact(slices.Clone(s))
		}
	}
	return s
}

// checkExamples refuses an example with an argument that the schema does not
// declare.
func checkExamples(t *Tool) error {
	if len(t.ArgsSchema) == 0 {
		return nil
	}
	for i, ex := range t.Examples {
		for key := range ex.Args {
			if _, ok := rawjson.Get(t.ArgsSchema, "properties", key); !ok {
				return &Error{Tool: t.Name, Code: ErrToolExampleInvalid, Class: ErrClassPermanent, Delivery: NotDelivered,
					Message: fmt.Sprintf("example %d uses the argument %q, which is not among the schema's properties", i, key)}
			}
		}
	}
	return nil
}

// maxExampleDepth bounds how deep the arguments of an example nest, which also
// finds those that contain themselves.
const maxExampleDepth = 64

func checkDepth(t *Tool) error {
	for i, ex := range t.Examples {
		if !shallow(ex.Args, maxExampleDepth) {
			return &Error{Tool: truncate(t.Name, maxShownName), Code: ErrToolExampleInvalid, Class: ErrClassPermanent, Delivery: NotDelivered,
				Message: fmt.Sprintf("the arguments of example %d nest deeper than %d levels", i, maxExampleDepth)}
		}
	}
	return nil
}

// shallow reports whether a value nests at most depth levels.
func shallow(v any, depth int) bool {
	if depth == 0 {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			if !shallow(e, depth-1) {
				return false
			}
		}
	case []any:
		for _, e := range v {
			if !shallow(e, depth-1) {
				return false
			}
		}
	}
	return true
}

// Wrap returns a descriptor whose innermost step is surrounded by middleware,
// the first outermost. Of a descriptor that a catalog bound, the step that was
// registered is wrapped, so that the road is not walked twice once the result
// is given to Replace. Middleware given here runs for every attempt.
func Wrap(d ToolDescriptor, middleware ...Middleware) ToolDescriptor {
	d.Invoke = chain(d.driver(), middleware)
	d.bound = nil
	return d
}

// chain surrounds next by middleware, the first outermost.
func chain(next Invoker, middleware []Middleware) Invoker {
	for _, m := range slices.Backward(middleware) {
		if m != nil {
			next = m(next)
		}
	}
	return next
}

// descriptor fills in what Resolve gives, which shares nothing that can be
// changed.
func (b *binding) descriptor(d *ToolDescriptor) {
	b.copyTool(&d.Tool)
	d.Invoke, d.Validate, d.Companion, d.bus, d.inline, d.bound = b.invoke, b.validate, b.companion, b.bus, b.inline, b
	d.redirect = b.redirect
}

// registered returns a descriptor of what was registered, to bind it anew.
func (b *binding) registered() ToolDescriptor {
	return ToolDescriptor{Tool: b.given, Invoke: b.driver, Validate: b.validate, Companion: b.companion, bus: b.bus, inline: b.inline,
		redirect: b.redirect}
}

// permitted reports whether the caller on ctx, which of narrows, may see the
// tool.
func (b *binding) permitted(ctx context.Context, of PartFunc) bool {
	if b.hidden {
		return false
	}
	if len(b.tool.AuthScopes) == 0 && len(b.tool.Tenants) == 0 && of == nil {
		return true
	}
	f := FilterFrom(ctx)
	return f.permits(&b.tool)
}
