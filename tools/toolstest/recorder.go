package toolstest

import (
	"context"
	"slices"
	"sync"

	"github.com/toolcrib/toolcrib/tools"
)

// A Recorder keeps the record of every call. The zero value is ready, and it is
// safe for concurrent use.
type Recorder struct {
	mu      sync.Mutex
	records []tools.CallRecord
}

// Record implements tools.Recorder. The tool, arguments and result are copied,
// as they are lent only.
func (r *Recorder) Record(_ context.Context, rec tools.CallRecord) {
	if rec.Tool != nil {
		tool := *rec.Tool
		rec.Tool = &tool
	}
	if rec.Result != nil {
		result := *rec.Result
		rec.Result = &result
	}
	rec.Args = slices.Clone(rec.Args)
	rec.Call = nil
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records = append(r.records, rec)
}

// Records returns what was recorded so far, in the order in which the calls
// ended. Call is nil in each.
func (r *Recorder) Records() []tools.CallRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.records)
}

// A Peer is the caller of a call: it keeps the notes that reach it and answers
// questions. The zero value refuses to be asked. It is safe for concurrent use.
type Peer struct {
	// OnProgress, when not nil, is called with each note, after it was kept.
	OnProgress func(tools.ProgressNote)
	// Answers, when not nil, answers questions.
	Answers func(ctx context.Context, q tools.Question) (tools.Answer, error)

	mu       sync.Mutex
	progress []tools.ProgressNote
	logs     []tools.LogNote
	asked    []tools.Question
}

// Progress implements tools.Peer.
func (p *Peer) Progress(_ context.Context, n tools.ProgressNote) error {
	p.mu.Lock()
	p.progress = append(p.progress, n)
	p.mu.Unlock()
	if p.OnProgress != nil {
		p.OnProgress(n)
	}
	return nil
}

// Log implements tools.Peer.
func (p *Peer) Log(_ context.Context, n tools.LogNote) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.logs = append(p.logs, n)
	return nil
}

// Ask implements tools.Peer.
func (p *Peer) Ask(ctx context.Context, q tools.Question) (tools.Answer, error) {
	p.mu.Lock()
	p.asked = append(p.asked, q)
	p.mu.Unlock()
	if p.Answers == nil {
		return tools.Answer{}, tools.ErrAskUnsupported
	}
	return p.Answers(ctx, q)
}

// Heard returns the progress notes and log lines so far, in their order.
func (p *Peer) Heard() ([]tools.ProgressNote, []tools.LogNote) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.progress), slices.Clone(p.logs)
}

// Asked returns the questions so far, in their order.
func (p *Peer) Asked() []tools.Question {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}
