package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/toolcrib/toolcrib/internal/yamldoc"
	"github.com/toolcrib/toolcrib/schema"
)

// Sentinels, for callers that branch. Compare with errors.Is.
var (
	// ErrInvalid: a definition cannot be composed.
	ErrInvalid = errors.New("flow: invalid definition")
	// ErrInvalidInputs: what a run was given does not satisfy the inputs' schema.
	ErrInvalidInputs = errors.New("flow: invalid inputs")
	// ErrFlowBudgetExceeded: a run met one of its limits.
	ErrFlowBudgetExceeded = errors.New("flow: budget exceeded")
	// ErrExitNotReached: no path to the exit was taken.
	ErrExitNotReached = errors.New("flow: the exit was not reached")
	// ErrCanceled: the run was cancelled by whoever inspects runs.
	ErrCanceled = errors.New("flow: the run was cancelled")
	// ErrRunNotFound: the caller has no run of that id.
	ErrRunNotFound = errors.New("flow: run not found")
	// ErrNotResumable: a run cannot go on: it goes on already, it came to its
	// end, or its flow is another one now.
	ErrNotResumable = errors.New("flow: the run cannot be resumed")
)

// Definition is a graph of nodes.
type Definition struct {
	// Name names the flow, in the form of a tool's name.
	Name string
	// Description says what the flow does.
	Description string
	// Inputs is the JSON Schema of the object that a run is given. Empty means
	// that a run takes nothing.
	Inputs json.RawMessage
	// Output is what a run gives: a JSON value with expressions in its strings.
	// Nil means the result of the exit.
	Output any
	// Entry and Exit are the IDs of the first node and of the last.
	Entry, Exit string
	// Nodes are the nodes, in any order.
	Nodes []Node
	// Budget limits each run.
	Budget Budget
	// Parallel is how many nodes of one run run at once; 8 when it is 0.
	Parallel int
	// Tags are free labels.
	Tags []string

	doc  *yamldoc.Doc // that it was read from, or nil
	root string       // path to it from the outermost definition, with a dot behind
}

// Document is a YAML text and the name of its file.
type Document = yamldoc.Doc

// Document returns what the definition was read from, or nil for one that was made
// in Go.
func (d *Definition) Document() *Document { return d.doc }

// Node is one step of a flow. Just one of Tool, Func, Flow and Ask says what it
// does.
type Node struct {
	// ID names the node, and its result in expressions.
	ID string
	// Tool is the name of the tool to call.
	Tool string
	// Func is the Go function to run.
	Func *Function
	// Flow is the flow to run.
	Flow *Definition
	// Ask is the question to put to the caller.
	Ask *Question

	// Inputs is what the node is given: a JSON value with expressions in its
	// strings. Nil stands for an empty object.
	Inputs any
	// Next are the edges out of the node.
	Next []Edge
	// Join says which edges into the node must be taken: one of them, or all.
	Join Join
	// ForEach, when not nil, runs the node once for each element of a list.
	ForEach *ForEach
	// Timeout limits each attempt; 0 is no limit beside the tool's own.
	Timeout time.Duration
	// Retry says how often a failure is tried again.
	Retry Retry
	// OnError says what a failure does to the flow.
	OnError OnError
	// Undo is the ID of a node that undoes this one.
	Undo string
	// Cost is what one run of the node costs, in the unit of Budget.CostCap.
	Cost float64
}

// Edge leads to another node.
type Edge struct {
	// To is the ID of that node.
	To string
	// When is a condition; the edge is taken if it is true. Empty is always.
	When string
}

// Join says which edges into a node must be taken for it to run.
type Join string

// The Join values. The zero value is JoinAny.
const (
	JoinAny Join = "any"
	JoinAll Join = "all"
)

// ForEach runs a node for each element of a list. Inputs see it as item, and its
// place as index. The node's result is the list of results in order.
type ForEach struct {
	// Items is an expression that gives the list.
	Items string
	// Limit is how many elements there may be; 100 when it is 0. More are an
	// error.
	Limit int
	// Parallel is how many run at once; 1 when it is 0.
	Parallel int
}

// DefaultForEachLimit is ForEach.Limit when it is 0.
const DefaultForEachLimit = 100

// Retry says how often a failed attempt is made again, beside the tool's own
// policy. A call whose outcome is not known is never repeated.
type Retry struct {
	// Attempts is how many are made at most, the first included; 1 when it is 0.
	Attempts int
	// Backoff is the wait before the second attempt, doubled for each further
	// one up to a minute.
	Backoff time.Duration
}

// Handling is what a failure does.
type Handling string

// The Handling values. The zero value is Fail.
const (
	Fail       Handling = "fail"
	Skip       Handling = "skip"
	Fallback   Handling = "fallback"
	Compensate Handling = "compensate"
)

// OnError says what a node's failure does to the flow.
type OnError struct {
	Do Handling
	// Node is the ID of the node that Fallback runs in its place. It may read
	// the failure as error.
	Node string
}

// Budget limits a run. On every axis zero is no limit.
type Budget struct {
	// Deadline is how long a run may take.
	Deadline time.Duration
	// HopBudget is how many nodes may run; each element of a ForEach is one.
	HopBudget int
	// Calls is how many calls of tools may be made, repeated ones included.
	Calls int
	// CostCap is how much the nodes that run may cost together.
	CostCap float64
}

// Question is put to the caller by a node that asks. Its result is the content
// of the answer. A caller that declines makes the node fail.
type Question struct {
	// Message is what is asked; it may hold expressions.
	Message string
	// Schema is the JSON Schema of the answer, an object of plain members. Empty
	// asks for approval: yes or no.
	Schema json.RawMessage
}

// Function is a Go function as a node.
type Function struct {
	in, out json.RawMessage
	run     func(ctx context.Context, args json.RawMessage) (any, error)
	err     error
}

// Func makes a node's function of a typed Go function. What it takes and gives
// is checked against its types when the flow is composed.
func Func[In, Out any](f func(ctx context.Context, in In) (Out, error)) *Function {
	fn := &Function{}
	if f == nil {
		fn.err = errors.New("the function is nil")
		return fn
	}
	if fn.in, fn.err = schema.Of(reflect.TypeFor[In](), schema.Input); fn.err != nil {
		return fn
	}
	if fn.out, fn.err = schema.Of(reflect.TypeFor[Out](), schema.Output); fn.err != nil {
		return fn
	}
	fn.run = func(ctx context.Context, args json.RawMessage) (any, error) {
		var in In
		if err := json.Unmarshal(args, &in); err != nil {
			return nil, fmt.Errorf("the inputs do not fit the function: %w", err)
		}
		return f(ctx, in)
	}
	return fn
}
