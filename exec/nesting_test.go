package exec_test

import (
	"context"
	"errors"
	"testing"

	"github.com/toolcrib/toolcrib/exec"
	"github.com/toolcrib/toolcrib/tools"
)

func TestNestingIsBounded(t *testing.T) {
	ctx := context.Background()
	for range exec.MaxDepth {
		inner, err := exec.Nested(ctx)
		if err != nil {
			t.Fatal(err)
		}
		ctx = inner
	}
	_, err := exec.Nested(ctx)
	if !errors.Is(err, exec.ErrTooDeep) || tools.ClassifyError(err, false) != tools.ErrClassPermanent {
		t.Errorf("got %v", err)
	}
}

// What a part failed with is of the kind of failure of the whole, unless that would
// say of the whole what is not so.
func TestFailureOfTheWhole(t *testing.T) {
	for name, tc := range map[string]struct {
		part      error
		is, isNot error
		class     tools.ErrorClass
		unknown   bool
	}{
		"not found":  {&tools.Error{Code: tools.ErrToolNotFound, Class: tools.ErrClassPermanent}, nil, tools.ErrToolNotFound, tools.ErrClassPermanent, false},
		"invalid":    {&tools.Error{Code: tools.ErrToolInvalidArgs, Class: tools.ErrClassPermanent}, nil, tools.ErrToolInvalidArgs, tools.ErrClassPermanent, false},
		"denied":     {&tools.Error{Code: tools.ErrToolDenied, Class: tools.ErrClassPermanent}, tools.ErrToolDenied, nil, tools.ErrClassPermanent, false},
		"overloaded": {&tools.Error{Code: tools.ErrOverloaded, Class: tools.ErrClassTransient}, tools.ErrOverloaded, nil, tools.ErrClassTransient, false},
		"no answer":  {&tools.Error{Class: tools.ErrClassTimeout, OutcomeUnknown: true}, tools.ErrOutcomeUnknown, nil, tools.ErrClassTimeout, true},
		"one's own":  {context.Canceled, context.Canceled, tools.ErrOutcomeUnknown, tools.ClassifyError(context.Canceled, false), false},
	} {
		whole := exec.Failure(tc.part)
		if tc.is != nil && !errors.Is(whole, tc.is) || tc.isNot != nil && errors.Is(whole, tc.isNot) || whole.Class != tc.class || whole.OutcomeUnknown != tc.unknown || whole.Retryable {
			t.Errorf("%s: got %+v", name, whole)
		}
	}
}
