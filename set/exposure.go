package set

import (
	"errors"
	"fmt"

	"github.com/toolcrib/toolcrib/adapter"
	"github.com/toolcrib/toolcrib/tools"
)

// Exposure shows a set in the form of a protocol. It is safe for concurrent use
// once it is made.
type Exposure struct {
	tools   *Toolset
	adapter *adapter.Adapter
}

// NewExposure returns the exposure of a set. What is nil is reported by Export.
// To show a caller what it may see, expose ts.For(ctx).
func NewExposure(ts *Toolset, a *adapter.Adapter) *Exposure { return &Exposure{ts, a} }

// Warning is something of a tool's definition that its form in a protocol does
// not keep.
type Warning struct {
	// Tool is the canonical name.
	Tool string
	// Feature is what is lost, FromAdapter the form that has it, and ToAdapter
	// the one that has not.
	Feature, FromAdapter, ToAdapter string
	// Path is the place in the definition, as a JSON Pointer.
	Path string
	// Reason says why, and what stands there instead.
	Reason string
}

// canonical names the form that tools have in a catalog.
const canonical = "canonical"

// Export returns the tools, sorted by canonical name. Tools that the protocol
// cannot express are left out, and the error names each; it is also
// ErrNilToolset or ErrNilAdapter.
func (e *Exposure) Export() ([]adapter.Declaration, error) {
	list, _, errs := e.ExportWithWarnings()
	return list, errors.Join(errs...)
}

// ExportWithWarnings is Export that says what is lost on the way. There is one
// error for each tool that was left out; its text names the tool.
func (e *Exposure) ExportWithWarnings() ([]adapter.Declaration, []Warning, []error) {
	if e == nil || e.tools == nil {
		return nil, nil, []error{ErrNilToolset}
	}
	if e.adapter == nil {
		return nil, nil, []error{ErrNilAdapter}
	}
	held := e.tools.list()
	list := make([]tools.Tool, len(held))
	for i, tool := range held {
		list[i] = *tool
	}
	declared := e.adapter.Declare(list)
	var warnings []Warning
	for _, loss := range declared.Losses {
		warnings = append(warnings, Warning{loss.Tool, loss.Feature, canonical, e.adapter.Name(), loss.Path, loss.Reason})
	}
	var errs []error
	for _, q := range declared.Quarantined {
		errs = append(errs, fmt.Errorf("set: %q cannot be shown as %s: %s", q.Tool, e.adapter.Name(), q.Reason))
	}
	return declared.Tools, warnings, errs
}
