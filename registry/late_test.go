package registry

import (
	"slices"
	"testing"

	"github.com/toolcrib/toolcrib/registry/stream"
)

// What a process that hung reads when it goes on takes no call from the worker that runs
// it, and gives none to one that has given it back.
func TestClaimsThatComeLate(t *testing.T) {
	db := memory(t)
	hung, other := newWorld(nil, db), newWorld(nil, db)
	say := func(w *world, id string, try int, release bool) string {
		t.Helper()
		payload, err := Encode(Claim{ToolUseID: id, Toolset: "math", Instance: "w1", Token: "token", TenantID: "acme", Try: try, Release: release})
		if err != nil {
			t.Fatal(err)
		}
		answer := w.r.settleRequest(t.Context(), stream.Message{Name: MessageClaims, Payload: EncodeTogether([][]byte{payload})})
		if got := DecodeVerdicts(answer.Payload); !slices.Equal(got, []string{MessageAlone}) {
			return got[0]
		}
		return w.oneByOne(t.Context(), MessageClaims, [][]byte{payload})[0]
	}
	hung.add(t.Context(), "one", "kept")
	for _, step := range []struct {
		name    string
		at      *world
		try     int
		release bool
		want    Verdict
		state   state
		has     int
	}{
		{"released before it comes", hung, 1, true, VerdictOver, stateAccepted, 0},
		{"claimed after its release", hung, 1, false, VerdictOver, stateAccepted, 0},
		{"claimed anew elsewhere", other, 2, false, VerdictRun, stateClaimed, 2},
		{"claimed late", hung, 1, false, VerdictOver, stateClaimed, 2},
		{"released late", hung, 1, true, VerdictOver, stateClaimed, 2},
		{"claimed again, as the answer was lost", hung, 2, false, VerdictRun, stateClaimed, 2},
		{"claimed once more, by the same worker", hung, 3, false, VerdictRun, stateClaimed, 3},
		{"released late elsewhere", other, 2, true, VerdictOver, stateClaimed, 3},
		{"released", other, 3, true, VerdictOver, stateAccepted, 0},
		{"claimed in the end", hung, 4, false, VerdictRun, stateClaimed, 4},
	} {
		got := say(step.at, "one", step.try, step.release)
		rec, _, err := hung.r.ledger.read(t.Context(), callKey("acme", "one"))
		if err != nil || got != string(step.want) || rec.State != step.state || rec.Try != step.has {
			t.Errorf("%s: %s, and the record is %+v, %v", step.name, got, rec, err)
		}
	}
}
