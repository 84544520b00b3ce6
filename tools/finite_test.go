package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/toolcrib/toolcrib/events"
)

// A ring wraps itself.
type ring struct{ next error }

func (r *ring) Error() string { return "a ring" }
func (r *ring) Unwrap() error { return r.next }

// A tree wraps itself twice.
type tree struct{}

func (tree) Error() string   { return "a tree" }
func (tree) Unwrap() []error { return []error{tree{}, tree{}} }

// An error that leads in a circle ends the call that it comes from, wherever it comes from.
func TestErrorThatLeadsInACircle(t *testing.T) {
	self := &ring{}
	self.next = self
	two := &ring{next: fmt.Errorf("by way of %w", self)}
	for name, bad := range map[string]error{
		"ring": self, "wrapped": fmt.Errorf("%w", two), "joined": errors.Join(errors.New("a"), self), "tree": tree{},
		"given": &Error{Class: ErrClassPermanent, Message: "why", Err: self},
	} {
		fail := func(context.Context, json.RawMessage) (ToolResult, error) { return ToolResult{}, bad }
		work := func(context.Context, json.RawMessage) (ToolResult, error) { return ToolResult{Value: 1}, nil }
		for where, cat := range map[string]ToolCatalog{
			"tool":       catalogWith(t, fail),
			"middleware": catalogWith(t, work, WithMiddleware(func(Invoker) Invoker { return fail })),
			"approver":   catalogWith(t, work, WithStages(Stages{Safety: asking{}, Approver: failing{bad}})),
			"admission":  catalogWith(t, work, WithStages(Stages{Admission: failing{bad}})),
			"redactor":   catalogWith(t, work, WithStages(Stages{Redactor: failing{bad}})),
		} {
			_, err := Invoke(context.Background(), cat, "x", nil)
			var e *Error
			if !errors.As(err, &e) || errors.Is(err, ErrIdentityRequired) {
				t.Errorf("%s, %s: %v", name, where, err)
			}
		}
	}
	if err := errors.Join(make1000()...); finite(err) != err {
		t.Error("an error with many behind it is taken for endless")
	}
}

func make1000() []error {
	list := make([]error, 1000)
	for i := range list {
		list[i] = fmt.Errorf("%d: %w", i, ErrOverloaded)
	}
	return list
}

func catalogWith(t *testing.T, invoke Invoker, opts ...CatalogOption) ToolCatalog {
	t.Helper()
	cat := NewCatalog(append(opts, WithEvents(events.NewBus(nil)))...)
	if err := cat.Register(ToolDescriptor{Tool: Tool{Name: "x", Policy: ToolPolicy{MaxRetries: -1}}, Invoke: invoke}); err != nil {
		t.Fatal(err)
	}
	return cat
}

type asking struct{}

func (asking) Decide(context.Context, *Tool, json.RawMessage) (Verdict, string, error) {
	return Ask, "", nil
}

type failing struct{ err error }

func (f failing) Approve(context.Context, ApprovalRequest) (json.RawMessage, error) {
	return nil, f.err
}
func (f failing) Admit(context.Context, *Tool) (func(error), error) { return nil, f.err }
func (f failing) Redact(context.Context, *Tool, *ToolResult) error  { return f.err }

// mute panics when it is asked what it is.
type mute struct{}

func (*mute) Error() string { panic("no") }

// An error that panics ends the call that it comes from, wherever it comes from.
func TestErrorThatPanics(t *testing.T) {
	var none *mute
	var noError *Error
	for name, bad := range map[string]error{"mute": &mute{}, "nil": none, "nil *Error": noError, "joined": errors.Join(none), "given": &Error{Err: none}} {
		fail := func(context.Context, json.RawMessage) (ToolResult, error) { return ToolResult{}, bad }
		work := func(context.Context, json.RawMessage) (ToolResult, error) { return ToolResult{Value: 1}, nil }
		for where, cat := range map[string]ToolCatalog{
			"tool":       catalogWith(t, fail),
			"middleware": catalogWith(t, work, WithMiddleware(func(Invoker) Invoker { return fail })),
			"admission":  catalogWith(t, work, WithStages(Stages{Admission: failing{bad}})),
			"approver":   catalogWith(t, work, WithStages(Stages{Safety: asking{}, Approver: failing{bad}})),
		} {
			_, err := Invoke(context.Background(), cat, "x", nil)
			var e *Error
			if !errors.As(err, &e) || e.SafeMessage() == "" {
				t.Errorf("%s from %s: %v", name, where, err)
			}
		}
	}
}
