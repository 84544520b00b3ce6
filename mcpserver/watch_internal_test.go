package mcpserver

import (
	"context"
	"encoding/json"
	"testing"
)

// A hasty companion tells of changes before the subscription holds, and while
// it does not yet has those that are there taken.
type hasty struct{ watched *watched }

func (hasty) Complete(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, nil }

func (h hasty) Subscribe(_ context.Context, uri string, updated func(json.RawMessage)) (func(), error) {
	updated(uriArgument(uri))
	updated(uriArgument("r:hidden"))
	h.watched.updates(func(string) bool { return true })
	return func() {}, nil
}

func TestEarlyUpdateIsNotLost(t *testing.T) {
	t.Parallel()
	w := newWatched()
	if err := w.add(t.Context(), "r:open", hasty{w}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-w.wake:
	default:
		t.Error("nobody is woken for it")
	}
	got := w.updates(func(uri string) bool { return uri == "r:open" })
	if len(got) != 1 || string(got[0]) != `{"uri":"r:open"}` {
		t.Errorf("%s", got)
	}
	if len(w.updates(func(string) bool { return true })) != 0 {
		t.Error("an update is told twice, or one that was not to be seen is kept")
	}
}
