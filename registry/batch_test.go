package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/registry/stream/natsserver"
	"github.com/toolcrib/toolcrib/store"
)

// world is a registry that knows some calls, of which others may know more.
type world struct {
	r   *Registry
	ids []string
}

func newWorld(client stream.Client, records store.Records) *world {
	return &world{r: &Registry{client: client, ledger: ledger{records: records, retention: time.Hour}, log: slog.New(slog.DiscardHandler),
		calls: map[string]*call{}, toolsets: map[string]*toolset{}, absent: map[string]time.Time{}}}
}

// natsClient returns a client of a stream server of its own.
func natsClient(t *testing.T) stream.Client {
	t.Helper()
	server, err := natsserver.Start(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	client, err := server.Client(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// pasts are what may have become of a call before it is claimed or answered.
var pasts = []string{"new", "kept", "claimed", "done", "elsewhere", "moved", "late", "unrecorded", "unknown"}

// add adds a call with a past, which it returns as this process knows it.
func (w *world) add(ctx context.Context, id, past string) *call {
	w.ids = append(w.ids, id)
	l := &w.r.ledger
	c := accepted(id, "digest")
	if past == "late" {
		c.rec.Deadline = time.Now().Add(-time.Second)
	}
	c.recorded = past != "unrecorded"
	if !slices.Contains([]string{"new", "late", "unrecorded", "unknown"}, past) {
		c.keep(ctx, l)
	}
	switch past {
	case "unknown", "elsewhere":
		return c
	case "claimed":
		_, _, _ = c.claim(ctx, l, &Claim{ToolUseID: id, Instance: "w1", Token: "token"})
	case "done":
		_ = c.finish(ctx, l, failed(id, &ToolError{Message: "was done"}))
	case "moved": // another process has given it to a worker meanwhile
		rec, rev, _ := l.read(ctx, c.key)
		other := (&Registry{ledger: *l, calls: map[string]*call{}}).adopt(c.key, rec, rev)
		_, _, _ = other.claim(ctx, l, &Claim{ToolUseID: id, Instance: "w2", Token: "token"})
	}
	w.r.calls[id] = c
	return c
}

// oneByOne returns the names of the answers to messages, each a question.
func (w *world) oneByOne(ctx context.Context, name string, messages [][]byte) []string {
	if name == MessageClaims {
		name = MessageClaim
	} else {
		name = ResultEventKey
	}
	var names []string
	for _, m := range messages {
		names = append(names, w.r.settleRequest(ctx, stream.Message{Name: name, Payload: m}).Name)
	}
	return names
}

// together returns the messages in the order in which they are decided, and what
// answers each: first those of one question that got a verdict, and then the
// others, alone.
func (w *world) together(ctx context.Context, t *rapid.T, name string, messages [][]byte) (ordered [][]byte, names []string, joined int) {
	answer := w.r.settleRequest(ctx, stream.Message{Name: name, Payload: EncodeTogether(messages)})
	verdicts := DecodeVerdicts(answer.Payload)
	if answer.Name != MessageVerdicts || len(verdicts) != len(messages) {
		t.Fatalf("%d messages got %s with %d verdicts", len(messages), answer.Name, len(verdicts))
	}
	var alone [][]byte
	for i, v := range verdicts {
		if v == MessageAlone {
			alone = append(alone, messages[i])
			continue
		}
		ordered, names = append(ordered, messages[i]), append(names, v)
	}
	return append(ordered, alone...), append(names, w.oneByOne(ctx, name, alone)...), len(names)
}

// ends tells what became of each call, in the store and here.
func (w *world) ends(ctx context.Context) (ends []string) {
	for _, id := range w.ids {
		end := "no record"
		if rec, _, err := w.r.ledger.read(ctx, callKey("acme", id)); err != nil {
			end = err.Error()
		} else if rec != nil {
			end = fmt.Sprint(rec.State, " ", rec.Instance, " ", rec.Message != nil)
			if rec.Result != nil {
				end += " " + string(rec.Result.ResultJSON) + fmt.Sprint(rec.Result.Error)
			}
		}
		if c := w.r.known(id); c != nil {
			end += fmt.Sprint(", here ", c.over())
			if c.over() {
				end += " " + string(c.result.ResultJSON)
			}
		}
		ends = append(ends, end)
	}
	return ends
}

// drawn draws claims or results of calls, some of which nobody could read. A worker has
// one result of a call.
func drawn(t *rapid.T, name string, ids []string) (list [][]byte) {
	pick := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
	fails := map[string]bool{}
	for range rapid.IntRange(1, 12).Draw(t, "messages") {
		id, instance := pick("call", ids...), pick("worker", "w1", "w1", "w2")
		token := pick("token", "token", "token", "token", "other")
		var m any = Claim{ToolUseID: id, Instance: instance, Token: token, TenantID: "acme", Release: pick("release", "", "", "", "yes") != "",
			Toolset: pick("toolset", "math", "math", "math", "other")}
		if name == MessageResults {
			result := id + " " + instance
			if _, known := fails[result]; !known {
				fails[result] = pick("failed", "", "", "yes") != ""
			}
			res := ToolResultMessage{ToolUseID: id, ResultJSON: json.RawMessage(strconv.Quote(result)), Receipt: &Receipt{Instance: instance, Token: token, TenantID: "acme"}}
			if fails[result] {
				res.ResultJSON, res.Error = nil, &ToolError{Code: CodeExecutionFailed, Message: result}
			}
			m = res
		}
		payload, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		if pick("poison", "", "", "", "", "", "yes") != "" {
			payload = []byte(pick("what", `{}`, `7`, `{"tool_use_id":5}`, `[["x"]]`, `{"tool_use_id":"a","tool_use_id":"a"}`, `null`))
		}
		list = append(list, payload)
	}
	return list
}

// Claims and results that come together are decided as if they had come one after
// the other, whatever is wrong with some of them.
func TestTogetherAsOneByOne(t *testing.T) {
	client := natsClient(t)
	stores := [2]store.Records{memory(t), memory(t)}
	n, joined := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		ctx := context.Background()
		single, joint := newWorld(client, stores[0]), newWorld(client, stores[1])
		for i := range rapid.IntRange(1, 8).Draw(t, "calls") {
			past := rapid.SampledFrom(pasts).Draw(t, "past")
			single.add(ctx, fmt.Sprintf("call-%d-%d", n, i), past).waiters = 1 // without whom a call that is over is forgotten
			joint.add(ctx, fmt.Sprintf("call-%d-%d", n, i), past).waiters = 1
		}
		for _, name := range []string{MessageClaims, MessageResults} {
			list := drawn(t, name, single.ids)
			ordered, got, at := joint.together(ctx, t, name, list)
			joined += at
			if diff := cmp.Diff(single.oneByOne(ctx, name, ordered), got); diff != "" {
				t.Fatalf("%s %s: %s", name, ordered, diff)
			}
		}
		if diff := cmp.Diff(single.ends(ctx), joint.ends(ctx)); diff != "" {
			t.Fatal(diff)
		}
	})
	if joined == 0 {
		t.Error("everything was decided alone")
	}
}

// What is plain is written in one batch; what is not takes none of the others with it.
func TestTogetherIsOneBatch(t *testing.T) {
	counted := &counting{Records: memory(t)}
	w := newWorld(nil, counted)
	var claims, results [][]byte
	for i := range 20 {
		id := fmt.Sprint("call", i)
		w.add(t.Context(), id, "new")
		claim, _ := Encode(Claim{ToolUseID: id, Toolset: "math", Instance: "w1", Token: "token", TenantID: "acme"})
		result, _ := Encode(ToolResultMessage{ToolUseID: id, ResultJSON: json.RawMessage(`1`), Receipt: &Receipt{Instance: "w1", Token: "token"}})
		claims, results = append(claims, claim), append(results, result)
	}
	claims[7] = []byte(`{"tool_use_id":7}`)
	results[9] = []byte(`{}`)
	w.expect(t, MessageClaims, claims, string(VerdictRun), 7)
	w.expect(t, MessageResults, results, MessageOK, 9)
	if counted.batches != 2 || counted.writes != 19+19 {
		t.Errorf("%d batches with %d writes", counted.batches, counted.writes)
	}
}

func (w *world) expect(t *testing.T, name string, list [][]byte, want string, but int) {
	t.Helper()
	answer := w.r.settleRequest(t.Context(), stream.Message{Name: name, Payload: EncodeTogether(list)})
	for i, v := range DecodeVerdicts(answer.Payload) {
		if (v == want) == (i == but) || i == but && v != MessageAlone {
			t.Errorf("%s: message %d got %s", name, i, v)
		}
	}
}

// counting counts what is written.
type counting struct {
	store.Records
	batches, writes int
}

func (c *counting) Apply(ctx context.Context, b store.Batch) ([]store.Revision, error) {
	c.batches++
	c.writes += len(b.Writes)
	return c.Records.Apply(ctx, b)
}

// A record that the store refuses leaves the calls as they were, and free.
func TestTogetherWithoutAStore(t *testing.T) {
	db := memory(t)
	w := newWorld(nil, db)
	w.add(t.Context(), "one", "kept")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	claim, _ := Encode(Claim{ToolUseID: "one", Toolset: "math", Instance: "w1", Token: "token", TenantID: "acme"})
	answer := w.r.settleRequest(t.Context(), stream.Message{Name: MessageClaims, Payload: EncodeTogether([][]byte{claim})})
	if got := DecodeVerdicts(answer.Payload); !slices.Equal(got, []string{MessageAlone}) {
		t.Errorf("the verdicts are %v", got)
	}
	if s, _, _ := w.r.known("one").view(); s != stateAccepted {
		t.Errorf("the call is %s", s)
	}
	if got := w.oneByOne(t.Context(), MessageClaims, [][]byte{claim}); !slices.Equal(got, []string{string(VerdictRetry)}) {
		t.Errorf("alone: %v", got)
	}
}

// More than are allowed, or an answer that is none, give no verdict.
func TestVerdictsThatAreNotThere(t *testing.T) {
	w := newWorld(nil, memory(t))
	many := strings.Repeat("{},", MaxTogether) + "{}"
	answer := w.r.settleRequest(t.Context(), stream.Message{Name: MessageClaims, Payload: []byte("[" + many + "]")})
	if got := len(DecodeVerdicts(answer.Payload)); got != MaxTogether {
		t.Errorf("%d verdicts", got)
	}
	for _, payload := range []string{``, `{}`, `null`, `[`, `[1]`, `["run"`, `["run",1]`} {
		if got := DecodeVerdicts([]byte(payload)); len(got) > 1 {
			t.Errorf("%q: %v", payload, got)
		}
	}
	for _, payload := range []string{``, `{}`, `[`, `[{}`, `[}]`} {
		if got := w.r.settleRequest(t.Context(), stream.Message{Name: MessageResults, Payload: []byte(payload)}); got.Name != MessageVerdicts {
			t.Errorf("%q is answered %s", payload, got.Name)
		}
	}
}

// Claims and results that come together, from several workers at once, while callers
// go away and a worker is lost: one worker at most is told to run a call, none whose
// caller was told that it did not run, and there is one result.
func TestTogetherAtOnce(t *testing.T) {
	w := newWorld(nil, memory(t))
	const calls = 60
	var claims [3][][]byte
	var results [3][][]byte
	for i := range calls {
		id := fmt.Sprint("call", i)
		w.add(t.Context(), id, []string{"new", "kept"}[i%2])
		for n := range claims {
			token := "token"
			if n == 2 {
				token = "guess"
			}
			by := fmt.Sprint("w", n)
			claim, _ := Encode(Claim{ToolUseID: id, Toolset: "math", Instance: by, Token: token, TenantID: "acme"})
			result, _ := Encode(ToolResultMessage{ToolUseID: id, ResultJSON: json.RawMessage(`"` + by + `"`), Receipt: &Receipt{Instance: by, Token: token}})
			claims[n], results[n] = append(claims[n], claim, claim), append(results[n], result)
		}
	}
	var wg sync.WaitGroup
	var told [3][]string
	for n := range claims {
		wg.Go(func() {
			told[n] = DecodeVerdicts(w.r.settleRequest(context.Background(), stream.Message{Name: MessageClaims, Payload: EncodeTogether(claims[n])}).Payload)
			w.r.settleRequest(context.Background(), stream.Message{Name: MessageResults, Payload: EncodeTogether(results[n])})
		})
	}
	withdrawn := make([]bool, calls)
	known := make([]*call, calls)
	for i := range calls {
		known[i] = w.r.known(w.ids[i])
		wg.Go(func() {
			if i%3 == 0 {
				withdrawn[i], _ = known[i].finishUnclaimed(context.Background(), &w.r.ledger, failed(w.ids[i], &ToolError{NotDelivered: true}))
			}
			if i%5 == 0 {
				_ = known[i].finishLost(context.Background(), &w.r.ledger, "w1", failed(w.ids[i], &ToolError{OutcomeUnknown: true}))
			}
		})
	}
	wg.Wait()
	for i, id := range w.ids {
		var by []string
		for n := range told {
			if slices.Contains(told[n][2*i:2*i+2], string(VerdictRun)) {
				by = append(by, fmt.Sprint("w", n))
			}
		}
		rec, _, err := w.r.ledger.read(t.Context(), callKey("acme", id))
		switch {
		case err != nil:
			t.Fatal(err)
		case len(by) > 1, withdrawn[i] && len(by) > 0, slices.Contains(by, "w2"):
			t.Errorf("%s: withdrawn %v, and told to run it: %v", id, withdrawn[i], by)
		case len(by) == 1 && rec != nil && rec.State == stateClaimed && rec.Instance != by[0]:
			t.Errorf("%s: %s was told to run it, and the record is %+v", id, by[0], rec)
		case rec != nil && rec.State == stateDone && rec.Result.ResultJSON != nil && len(by) == 1 && string(rec.Result.ResultJSON) != `"`+by[0]+`"`:
			t.Errorf("%s: %s was told to run it, and the result is %s", id, by[0], rec.Result.ResultJSON)
		case rec == nil && (len(by) != 1 || string(known[i].result.ResultJSON) != `"`+by[0]+`"`):
			t.Errorf("%s: told to run it were %v, and there is no record of the result %s", id, by, known[i].result.ResultJSON)
		case rec != nil && known[i].over() && rec.State != stateDone:
			t.Errorf("%s: it is over here, and %s in the store", id, rec.State)
		}
	}
}

// What is no batch, or a very large one, is answered soon, and leaves no call locked.
func TestTogetherHostile(t *testing.T) {
	w := newWorld(nil, memory(t))
	w.add(t.Context(), "one", "kept")
	claim, _ := Encode(Claim{ToolUseID: "one", Toolset: "math", Instance: "w1", Token: "guess", TenantID: "acme"})
	list := make([][]byte, 100_000)
	for i := range list {
		list[i] = claim
	}
	deep := strings.Repeat("[", 200_000)
	for what, payload := range map[string]string{"many": string(EncodeTogether(list)), "deep": deep, "deep and whole": deep + strings.Repeat("]", 200_000),
		"deep entry": `[{"tool_use_id":` + deep + `}]`, "long text": `["` + strings.Repeat("x", 1<<22) + `"]`, "not UTF-8": "[\"\xff\xfe\", {\"tool_use_id\":\"\xff\"}]",
		"commas": "[" + strings.Repeat(",", 100_000) + "]", "zeros": strings.Repeat("\x00", 1000), "numbers": "[" + strings.Repeat("1e999999999,", 1000) + "1]",
		"null": "[null,null]", "own name": `[{"tool_use_id":"one","toolset":"math","instance":"` + strings.Repeat("w", 1<<20) + `","token":"token"}]`} {
		for _, name := range []string{MessageClaims, MessageResults} {
			answer := w.r.settleRequest(t.Context(), stream.Message{Name: name, Payload: []byte(payload)})
			got := DecodeVerdicts(answer.Payload)
			if answer.Name != MessageVerdicts || len(got) > MaxTogether || slices.ContainsFunc(got, func(v string) bool { return v != MessageAlone }) {
				t.Errorf("%s, %s: %s, %d verdicts", name, what, answer.Name, len(got))
			}
		}
	}
	if c := w.r.known("one"); !c.mu.TryLock() {
		t.Error("the call is locked")
	} else if c.mu.Unlock(); c.rec.State != stateAccepted {
		t.Errorf("the call is %s", c.rec.State)
	}
}
