package flow

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/toolcrib/toolcrib/identity"
)

// Recorder keeps what becomes of runs. Its methods are called by many goroutines
// at once; an error from one ends the run. What it was told of a node before the
// process died is what [Flow.Resume] goes on from.
type Recorder interface {
	// Begin is told of a run, also of one that is resumed.
	Begin(ctx context.Context, r Run) error
	// Node is told that a node starts, and what became of it. It returns once
	// that is kept.
	Node(ctx context.Context, runID string, n NodeRecord) error
	// End is told how the run ended; a nil err is success.
	End(ctx context.Context, runID string, err error) error
}

// Loader is a Recorder from which runs can be resumed. Load returns the run of
// that id which belongs to the caller on ctx, and the last record of each node;
// the error is ErrRunNotFound if there is none, and ErrNotResumable for one that
// goes on or came to its end.
type Loader interface {
	Load(ctx context.Context, runID string) (Run, []NodeRecord, error)
}

// Runs is a Recorder whose runs can be looked at, cancelled and resumed. A caller
// reaches those of its own tenant and user.
type Runs interface {
	Recorder
	Loader
	// List returns the caller's runs, the latest first, without inputs and nodes.
	List(ctx context.Context) ([]RunState, error)
	// Get returns one of the caller's runs, or ErrRunNotFound.
	Get(ctx context.Context, runID string) (RunState, error)
	// Cancel ends one of the caller's runs. A run that ended already stays as it
	// is.
	Cancel(ctx context.Context, runID string) error
}

// Run is one run of a flow.
type Run struct {
	ID   string `json:"id"`
	Flow string `json:"flow"`
	// Digest identifies the definition that runs.
	Digest string `json:"digest"`
	// Parent is the run that made this one, or empty.
	Parent   string             `json:"parent,omitempty"`
	Identity identity.Quadruple `json:"-"`
	Inputs   json.RawMessage    `json:"inputs"`
	// Began is when the run began at first, also of one that was resumed.
	Began time.Time `json:"began"`
	// Version is what Load gave of a run that is resumed. Begin refuses, with
	// ErrNotResumable, a run that went on since it was loaded.
	Version int64 `json:"-"`
	// Cancel ends the run with ErrCanceled. It is nil of a run that is not in
	// this process.
	Cancel func() `json:"-"`
}

// Status is what became of a node.
type Status string

// The Status values.
const (
	Started Status = "started"
	Done    Status = "done"
	Skipped Status = "skipped" // it failed and the flow went on without it
	Failed  Status = "failed"
	Undone  Status = "undone" // it was done, and another node undid it
)

// NodeRecord is what became of a node.
type NodeRecord struct {
	Node string `json:"node"`
	// Ran is the node that ran in its place, or the same.
	Ran    string `json:"ran"`
	Status Status `json:"status"`
	// Value is what a node gave that is done.
	Value json.RawMessage `json:"value,omitempty"`
	Error string          `json:"error,omitempty"`
	// Unknown says that the node failed and may have left effects.
	Unknown  bool      `json:"outcome_unknown,omitempty"`
	Attempts int       `json:"attempts,omitempty"`
	At       time.Time `json:"at"`
}

// RunStatus is how a run is doing.
type RunStatus string

// The RunStatus values.
const (
	RunRunning  RunStatus = "running"
	RunDone     RunStatus = "done"
	RunFailed   RunStatus = "failed"
	RunCanceled RunStatus = "cancelled"
	// RunInterrupted: the process that ran it ended before the run did.
	RunInterrupted RunStatus = "interrupted"
)

// RunState is a run as it is shown.
type RunState struct {
	Run
	Status RunStatus    `json:"status"`
	Nodes  []NodeRecord `json:"nodes,omitempty"`
	// Ended is zero while the run goes on, and of one that was interrupted.
	Ended time.Time `json:"ended,omitzero"`
	Error string    `json:"error,omitempty"`
}

// StatusOf is how a run did that ended with err.
func StatusOf(err error) RunStatus {
	switch {
	case err == nil:
		return RunDone
	case canceled(err):
		return RunCanceled
	}
	return RunFailed
}

// Latest orders runs, the latest first.
func Latest(a, b RunState) int {
	return cmp.Or(b.Began.Compare(a.Began), cmp.Compare(a.ID, b.ID))
}
