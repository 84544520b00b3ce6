package provider

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/stream"
)

// What was not permitted is said until it is: at once where there is an answer, and
// otherwise when nothing was heard for a while after a try.
func TestHindrancesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h hindrances
		said := func(want string) {
			t.Helper()
			if got := h.text(time.Now()); got != want {
				t.Errorf("it says %q, want %q", got, want)
			}
		}
		said("")
		if !h.add(toPublish, "no", time.Now()) || h.add(toPublish, "not at all", time.Now()) {
			t.Error("the first denial alone is news")
		}
		time.Sleep(time.Hour)
		said(hindered[toPublish] + ": not at all") // Nobody tried.
		h.try(toPublish)
		time.Sleep(denialTime / 2)
		h.add(toPublish, "no", time.Now())
		time.Sleep(denialTime * 2)
		said(hindered[toPublish] + ": no")
		h.add(toAsk, "never", time.Now())
		said(hindered[toAsk] + ": never; " + hindered[toPublish] + ": no")
		h.try(toPublish)
		for range 3 { // Further ones do not put it off.
			time.Sleep(denialTime / 2)
			h.try(toPublish)
		}
		said(hindered[toAsk] + ": never")
		h.end(toAsk)
		said("")
		if h.some.Load() {
			t.Error("something is left")
		}
		if !h.add(toAsk, "no", time.Now()) {
			t.Error("a denial after the end of the one before is no news")
		}
	})
}

// Only what serving needs counts, and of streams and subjects of this toolset and namespace.
func TestNeeds(t *testing.T) {
	w := &worker{toolset: "weather", opts: Options{Namespace: "east"}}
	for _, tt := range []struct {
		denied stream.Denial
		want   need
	}{
		{stream.Denial{Subject: "registry:east:process:P"}, toAsk},
		{stream.Denial{Subject: "registry:east:settle:S"}, toAsk},
		{stream.Denial{Subject: registry.NotesSubject("registry:east:process:P")}, toPublish},
		{stream.Denial{Stream: "registry:east:results:S"}, toLeave},
		{stream.Denial{Stream: registry.RequestStream("weather")}, toTake},
		{stream.Denial{Subject: "registry:default:process:P"}, unimportant},
		{stream.Denial{Stream: "registry:east:process:P"}, unimportant},
		{stream.Denial{Stream: registry.RequestStream("mail")}, unimportant},
		{stream.Denial{Subject: registry.RequestStream("weather")}, unimportant},
		{stream.Denial{Stream: registry.DeadStream("weather")}, unimportant},
		{stream.Denial{Subject: registry.PongSubject("east")}, unimportant},
		{stream.Denial{}, unimportant},
	} {
		if got := w.needOf(&tt.denied); got != tt.want {
			t.Errorf("%+v is %d, want %d", tt.denied, got, tt.want)
		}
	}
}
