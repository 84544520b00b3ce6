package turn_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/turn"
)

func TestNormalizeUnwrapsWithoutLoss(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "read", Safety: readOnly, ArgsSchema: object(`"n":{}`)}, nil)
	opts := &turn.Options{BadCalls: turn.Normalize, Bus: c.bus}
	for _, test := range []struct{ args, inner, wrapping string }{
		{`{"n":1}`, `{"n":1}`, ""},
		{`"{\"n\":9007199254740993}"`, `{"n":9007199254740993}`, "json string"},
		{`"\"{\\\"n\\\":1}\""`, `{"n":1}`, "json string,json string"},
		{"```json\n{\"n\":1}\n```", `{"n":1}`, "code fence"},
		{"```\n{\"n\":1}\n```\n", `{"n":1}`, "code fence"},
		{`"` + "```json\\n{}\\n```" + `"`, `{}`, "json string,code fence"},
		{`{"n":"{\"a\":1}"}`, `{"n":"{\"a\":1}"}`, ""},
	} {
		r := c.execute(opts, turn.Call{ID: "1", Name: "read", Args: json.RawMessage(test.args)})[0]
		if r.Status != turn.StatusCompleted || string(r.Structured) != test.inner || r.Unwrapped != test.wrapping {
			t.Errorf("%s: %s %s (%s) %s", test.args, r.Status, r.Structured, r.Unwrapped, r.Text())
		}
		heard := story(c.heard())
		if slices.Contains(heard, "tool.args_unwrapped read") != (test.wrapping != "") {
			t.Errorf("%s: events %q", test.args, heard)
		}
	}
	for _, bad := range []string{`"hello"`, `"[1]"`, "```json\n{\"n\":1}", "```js\n{}\n```", `"{\"n\":}"`, `"{\"a\":1}{}"`, `"{\"n\":1,\"n\":2}"`, "```{}```"} {
		want(t, c.execute(opts, turn.Call{ID: "1", Name: "read", Args: json.RawMessage(bad)}), turn.StatusInvalid)
	}
	want(t, c.execute(nil, call("1", "read", `"{\"n\":1}"`)), turn.StatusInvalid)
}

func TestNormalizeLeavesToolsWithEffectsAlone(t *testing.T) {
	ran := 0
	c := newCrib(t).add(tools.Tool{Name: "write", SideEffects: tools.SideEffectWrite, ArgsSchema: object(`"n":{}`)}, nil).
		add(tools.Tool{Name: "unclassified", ArgsSchema: object(`"n":{}`)}, nil)
	opts := &turn.Options{BadCalls: turn.Normalize}
	want(t, c.execute(opts, call("1", "write", `"{\"n\":1}"`), call("2", "unclassified", `"{\"n\":1}"`)), turn.StatusInvalid, turn.StatusInvalid)
	if ran != 0 {
		t.Error("a tool ran")
	}
}

// What an adapter could not read is refused as what the adapter says it is.
func TestUnreadableCallsAreNotRun(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "a"}, nil)
	invalid := &tools.Error{Code: tools.ErrToolInvalidArgs, Class: tools.ErrClassPermanent, Delivery: tools.NotDelivered, Message: "not in the declared form"}
	results := c.execute(nil,
		turn.Call{ID: "1", Name: "a", Args: json.RawMessage(`{}`), Err: invalid},
		turn.Call{ID: "2", Name: "a", Args: json.RawMessage(`{}`), Err: errors.New("cut off")},
		turn.Call{ID: "3", Name: "b", Args: json.RawMessage(`{}`), Err: &tools.Error{Code: tools.ErrToolNotFound}})
	want(t, results, turn.StatusInvalid, turn.StatusInvalid, turn.StatusUnknown)
	if got := story(c.heard()); len(got) != 3 || countTerminal(c.heard()) != 0 {
		t.Errorf("events %q", got)
	}
}

// Whatever stands in arguments, the tool sees nothing that the door would not
// take by itself, or what a JSON decoder finds inside.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{`{"n":1}`, `"{\"n\":1}"`, "```json\n{}\n```", `null`, ``, `"`, `"\ud800"`, "{\"n\":1}\x00"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, args []byte) {
		c := newCrib(t).add(tools.Tool{Name: "read", Safety: readOnly, ArgsSchema: json.RawMessage(`{"type":"object"}`)}, nil)
		r := c.execute(&turn.Options{BadCalls: turn.Normalize}, turn.Call{Name: "read", Args: args})[0]
		switch {
		case r.Status == turn.StatusInvalid:
		case r.Status != turn.StatusCompleted:
			t.Errorf("status %s", r.Status)
		case rawjson.KindOf(r.Structured) != rawjson.KindObject || !json.Valid(r.Structured):
			t.Errorf("the tool was given %q for %q", r.Structured, args)
		}
	})
}
