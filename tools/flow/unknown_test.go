package flow_test

import (
	"errors"
	"testing"

	"github.com/toolcrib/toolcrib/exec"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/flow"
)

// A run that cannot be resumed, because nobody knows what a node did, is no failure
// that passes, whatever the node failed with at the time.
func TestResumeOfAnUnknownOutcomeIsNotWorthAnother(t *testing.T) {
	ctx := allowed(t.Context())
	cat := catalog(t, &tracker{})
	def, err := flow.ParseYAML("f.yaml", []byte(one(`{id: a, tool: math.fail, inputs: {a: 1}}`)))
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range []flow.NodeRecord{
		{Node: "a", Status: flow.Failed, Unknown: true, Error: "no answer: timeout, HTTP 503"},
		{Node: "a", Ran: "a", Status: flow.Started},
	} {
		log := crashed{flow.NewLog(nil), &flow.Run{}, rec}
		f, err := flow.ComposeFor(ctx, def, &flow.Options{Runner: exec.NewRunner(cat), Recorder: log})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = f.Run(ctx, nil)
		d, err := f.Tool()
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.Invoke(flow.Resuming(ctx, log.begun.ID), nil)
		te, ok := errors.AsType[*tools.Error](err)
		if !ok || te.Class != tools.ErrClassPermanent || te.Retryable || !te.OutcomeUnknown {
			t.Errorf("%s: got %+v", rec.Status, err)
		}
	}
}
