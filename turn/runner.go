package turn

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/view"
)

// The defaults of Options.
const (
	// DefaultConcurrency is how many calls of a turn run at once.
	DefaultConcurrency = 8
	// DefaultTurnCalls is how many calls of one turn are made.
	DefaultTurnCalls = 64
)

// BadCalls says what becomes of calls that should not have been made: of tools
// that are unknown, with arguments that are refused, or denied.
type BadCalls string

// The BadCalls values.
const (
	// ReturnError answers with a result that the model can repair.
	ReturnError BadCalls = "return_error"
	// Fail starts no further call, and Execute returns an error.
	Fail BadCalls = "fail"
	// Normalize is ReturnError, except that arguments which were wrapped are
	// unwrapped where nothing is lost by it: JSON inside a JSON string, and JSON
	// inside a code fence. It is recorded, and never done for a tool that is not
	// known to be read-only.
	Normalize BadCalls = "normalize"
)

// Options configure New. A zero field means its default.
type Options struct {
	// Discovery decides which of the tools that a caller sees are declared, and
	// remembers what it found. Nil declares as view.NewDiscovery does by
	// default, and each Run has a memory of its own.
	Discovery *view.Discovery
	// NativeDeferral leaves deferred tools to the provider's own search: they are
	// declared as well, with LoadingDeferred for an adapter that has the option
	// of the same name, and can be called in the same turn. Meta-tools are then
	// declared only where an operator set that they always are.
	NativeDeferral bool
	// Select narrows what is declared. Nil keeps all.
	Select Selector
	// Middleware surrounds each call, the first outermost.
	Middleware []Middleware
	// BadCalls is ReturnError by default. An unknown word counts as that.
	BadCalls BadCalls
	// SingleCall runs only the first call of a turn, and the others get a
	// result which says that they were not run.
	SingleCall bool
	// Concurrency is how many calls of a turn run at once. Zero means
	// DefaultConcurrency.
	Concurrency int
	// Keys names what a call concerns, for Keys of two calls that have one in
	// common to keep them in call order. Nil means DefaultKeys. A tool that is
	// Exclusive runs alone of its name in any case.
	Keys func(tool *tools.Tool, args json.RawMessage) []string
	// Turn and Run bound each turn and each run. Turn.Calls 0 means
	// DefaultTurnCalls; what else is zero, or negative, is not bounded.
	Turn, Run Limits
	// Cost estimates what a call costs, in the unit of Limits.Cost. Nil means
	// HintedCost.
	Cost func(tool *tools.Tool, args json.RawMessage) float64
	// Bounder keeps results small. Nil passes them on whole, and an adapter
	// refuses those that are too large for a model.
	Bounder Bounder
	// Bus is told of arguments that were unwrapped. Nil means the bus on the
	// context, if there is one.
	Bus events.EventBus
}

// Selector chooses among the tools that are to be declared, by name. Names that
// are not among them have no effect. For a call that was redirected to a tool
// which is not declared, it is asked about that tool alone.
type Selector func(ctx context.Context, declared []tools.Tool) (keep []string, err error)

// Bounder makes a result small enough for a model. It stores what is too large
// and returns a result with a preview of it. The tool must not be changed. One
// that is a tools.Sink too takes large content while it arrives.
type Bounder interface {
	Bound(ctx context.Context, tool *tools.Tool, result tools.ToolResult) (tools.ToolResult, error)
}

// Runner runs turns against a catalog. It is safe for concurrent use.
type Runner struct {
	cat       tools.LiveCatalog
	opts      Options
	discovery *view.Discovery
	ownMemory bool // each run has a memory of its own
	handle    Handler
}

// New returns a runner for cat. Nil options are the defaults.
func New(cat tools.LiveCatalog, opts *Options) *Runner {
	r := &Runner{cat: cat}
	if opts != nil {
		r.opts = *opts
	}
	r.discovery = r.opts.Discovery
	if r.discovery == nil {
		r.discovery, r.ownMemory = view.NewDiscovery(nil, nil), true
	}
	if r.opts.Concurrency <= 0 {
		r.opts.Concurrency = DefaultConcurrency
	}
	if r.opts.Keys == nil {
		r.opts.Keys = DefaultKeys
	}
	if r.opts.Cost == nil {
		r.opts.Cost = HintedCost
	}
	r.opts.Turn.Calls = cmp.Or(r.opts.Turn.Calls, DefaultTurnCalls)
	r.handle = surround(goOn, r.opts.Middleware)
	return r
}

// Begin begins a turn that is a run of its own: NewRun and its Begin.
func (r *Runner) Begin(ctx context.Context) (*Turn, error) { return r.NewRun(Usage{}).Begin(ctx) }
