package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/adapter"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/turn"
)

// speechless panics when it is asked what it is, as errors do that are nil
// pointers.
type speechless struct{ text string }

func (e *speechless) Error() string { return e.text }

var nilError *speechless

// bounding is a Bounder.
type bounding func(res tools.ToolResult) (tools.ToolResult, error)

func (f bounding) Bound(_ context.Context, _ *tools.Tool, res tools.ToolResult) (tools.ToolResult, error) {
	return f(res)
}

// Whatever a part of the turn does wrong, each call has one result that says so.
func TestPartsThatGoWrong(t *testing.T) {
	for name, opts := range map[string]*turn.Options{
		"middleware returns an error that panics": with(func(turn.Handler) turn.Handler {
			return func(context.Context, *turn.Invocation) (tools.ToolResult, error) { return tools.ToolResult{}, nilError }
		}),
		"middleware refuses with an error that panics": with(turn.Before(func(context.Context, *turn.Invocation) error { return nilError })),
		"middleware withholds with an error that panics": with(turn.After(func(context.Context, *turn.Invocation, *tools.ToolResult) error {
			return nilError
		})),
		"middleware answers with what is not JSON": with(func(turn.Handler) turn.Handler {
			return func(context.Context, *turn.Invocation) (tools.ToolResult, error) {
				return tools.ToolResult{Content: []tools.Content{{Type: "text", JSON: json.RawMessage(`{"type`)}}}, nil
			}
		}),
		"middleware ends its goroutine": with(turn.Before(func(context.Context, *turn.Invocation) error { runtime.Goexit(); return nil })),
		"the bounder ends its goroutine": {Bounder: bounding(func(tools.ToolResult) (tools.ToolResult, error) {
			runtime.Goexit()
			return tools.ToolResult{}, nil
		})},
		"the bounder panics":         {Bounder: bounding(func(tools.ToolResult) (tools.ToolResult, error) { panic("bound") })},
		"the bounder's error panics": {Bounder: bounding(func(tools.ToolResult) (tools.ToolResult, error) { return tools.ToolResult{}, nilError })},
		"the bounder makes what is not JSON": {Bounder: bounding(func(tools.ToolResult) (tools.ToolResult, error) {
			return tools.ToolResult{Structured: json.RawMessage(`{`)}, nil
		})},
		"the bounder makes a block of nothing": {Bounder: bounding(func(tools.ToolResult) (tools.ToolResult, error) {
			return tools.ToolResult{Content: []tools.Content{{}}}, nil
		})},
	} {
		c := newCrib(t).add(tools.Tool{Name: "a"}, nil).add(tools.Tool{Name: "b"}, nil)
		results := c.execute(opts, call("1", "a", `{}`), call("2", "b", `{}`))
		for i, r := range results {
			if r.Status != turn.StatusFailed || !r.IsError || r.Err == nil || r.Text() == "" || r.ID != []string{"1", "2"}[i] {
				t.Errorf("%s: %+v", name, r)
			}
		}
		if got := countTerminal(c.heard()); got != 2 {
			t.Errorf("%s: %d terminal events for 2 calls", name, got)
		}
	}
}

// Whoever ends the turn may do so with an error that cannot be read.
func TestCauseThatPanics(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "a"}, nil)
	ctx, cancel := context.WithCancelCause(caller())
	tn := c.begin(ctx, with(turn.Before(func(_ context.Context, inv *turn.Invocation) error {
		if inv.ID == "1" {
			cancel(nilError)
		}
		return nil
	})))
	results, err := tn.Execute(ctx, []turn.Call{call("1", "a", `{}`), call("2", "a", `{}`)})
	want(t, results, turn.StatusNotRun, turn.StatusNotRun)
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestCallsWhoseErrorPanics(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "a", Safety: readOnly}, nil)
	for _, policy := range []turn.BadCalls{turn.ReturnError, turn.Normalize, turn.Fail} {
		results, _ := c.begin(caller(), &turn.Options{BadCalls: policy}).Execute(caller(), []turn.Call{{ID: "1", Name: "a", Err: nilError}})
		if len(results) != 1 || !results[0].IsError || results[0].Text() == "" {
			t.Errorf("%s: %+v", policy, results)
		}
	}
}

func TestSelectionThatPanics(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "a"}, nil)
	choose := func(context.Context, []tools.Tool) ([]string, error) { panic("which?") }
	if _, err := turn.New(c.cat, &turn.Options{Select: choose}).Begin(caller()); err == nil || !strings.Contains(err.Error(), "selection") {
		t.Error(err)
	}
}

// A person who agrees after the turn has ended agrees to nothing.
func TestConfirmationThatComesLate(t *testing.T) {
	ran := false
	c := newCrib(t).add(tools.Tool{Name: "a"}, func(context.Context, json.RawMessage) (tools.ToolResult, error) {
		ran = true
		return tools.ToolResult{Value: 1}, nil
	})
	ctx, cancel := context.WithCancel(caller())
	defer cancel()
	late := turn.Confirm(func(context.Context, *turn.Invocation) (bool, error) { cancel(); return true, nil })
	results, err := c.begin(ctx, with(late)).Execute(ctx, []turn.Call{call("1", "a", `{}`)})
	want(t, results, turn.StatusNotRun)
	if ran || !errors.Is(err, context.Canceled) {
		t.Errorf("it ran: %v, %v", ran, err)
	}
	slow := turn.Confirm(func(ctx context.Context, _ *turn.Invocation) (bool, error) { <-ctx.Done(); return true, nil })
	results, err = c.begin(caller(), &turn.Options{Turn: turn.Limits{Time: time.Millisecond, Cost: 5}, Middleware: []turn.Middleware{slow},
		Cost: func(*tools.Tool, json.RawMessage) float64 { return 2 }}).Execute(caller(), []turn.Call{call("1", "a", `{}`)})
	want(t, results, turn.StatusNotRun)
	if ran || err != nil || !errors.Is(results[0].Err, turn.ErrBudget) {
		t.Errorf("it ran: %v, %v, %v", ran, err, results[0].Err)
	}
}

// What is declared to one caller is told to no other.
func TestTurnOfAnotherCaller(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "mine"}, nil).add(tools.Tool{Name: "payroll", Tenants: []string{"b"}}, nil)
	other := identity.With(context.Background(), identity.Identity{TenantID: "b", UserID: "u", SessionID: "s"})
	tn := c.begin(other, nil)
	results, err := tn.Execute(caller(), []turn.Call{call("1", "payrol", `{}`), call("2", "payroll", `{}`), call("3", "mine", `{}`)})
	want(t, results, turn.StatusNotRun, turn.StatusNotRun, turn.StatusNotRun)
	for i, name := range []string{"payroll\"?", "that", "completed"} {
		if strings.Contains(results[i].Text(), name) {
			t.Errorf("%s, %v", results[i].Text(), err)
		}
	}
	results, err = tn.Execute(other, []turn.Call{call("1", "payrol", `{}`), call("2", "payroll", `{}`)})
	want(t, results, turn.StatusUnknown, turn.StatusCompleted)
	must(t, err)
	anonymous := c.begin(context.Background(), nil)
	results, err = anonymous.Execute(caller(), []turn.Call{call("1", "mine", `{}`)})
	want(t, results, turn.StatusCompleted)
	must(t, err)
}

// A model that uses a canonical name is told the one that was declared.
func TestNamesThatAreNearTheDeclared(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "a.b"}, nil)
	tn := c.begin(caller(), nil)
	d := tn.Declare(adapter.NewOpenAIAdapter())
	for sent, meant := range map[string]string{"a.b": "a__b", "A__B": "a__b", "a__c": "a__b", "zz": ""} {
		body := `{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"` + sent + `","arguments":"{}"}}]}`
		answer, err := tn.Respond(caller(), d, json.RawMessage(body))
		must(t, err)
		said := `There is no tool "` + sent + `" in this turn.`
		if meant != "" {
			said += ` Did you mean "` + meant + `"?`
		}
		if got := answer.Results[0].Text(); got != said {
			t.Errorf("%s: %s", sent, got)
		}
	}
}

// Ids that cannot be printed reach no event.
func TestIDsForEvents(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "a"}, nil)
	ids := []string{"call_1", "two words", "a\nb", "\x00", "\xff", "ü", ""}
	var calls []turn.Call
	for _, id := range ids {
		calls = append(calls, call(id, "a", `{}`))
	}
	results := c.execute(nil, calls...)
	for i, r := range results {
		if r.ID != ids[i] || (r.CallID == ids[i]) != (i == 0) || r.CallID == "" {
			t.Errorf("the id %q became %q and %q", ids[i], r.ID, r.CallID)
		}
	}
}

// Arguments that were cut off are not mended, even if they seem to be whole.
func TestNothingCutIsMended(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "a", Safety: readOnly, ArgsSchema: object(`"q":{"type":"string"}`)}, nil)
	tn := c.begin(caller(), &turn.Options{BadCalls: turn.Normalize})
	d := tn.Declare(adapter.NewOpenAIAdapter())
	for reason, status := range map[string]turn.Status{"length": turn.StatusInvalid, "tool_calls": turn.StatusCompleted} {
		body := `{"choices":[{"finish_reason":"` + reason + `","message":{"role":"assistant","tool_calls":[
			{"id":"1","type":"function","function":{"name":"a","arguments":"\"{\\\"q\\\":\\\"x\\\"}\""}}]}}]}`
		answer, err := tn.Respond(caller(), d, json.RawMessage(body))
		must(t, err)
		want(t, answer.Results, status)
	}
}

// The results are there also when none of them may reach the model.
func TestResultsBesideALeak(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "a"}, func(context.Context, json.RawMessage) (tools.ToolResult, error) {
		return tools.ToolResult{Value: strings.Repeat("x", adapter.DefaultHeavyBytes+1)}, nil
	})
	tn := c.begin(caller(), nil)
	answer, err := tn.Respond(caller(), tn.Declare(adapter.NewOpenAIAdapter()),
		json.RawMessage(`{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"a","arguments":"{}"}}]}`))
	if !errors.Is(err, tools.ErrContextLeak) || answer.Messages != nil {
		t.Errorf("%v, %s", err, answer.Messages)
	}
	want(t, answer.Results, turn.StatusCompleted)
}

// A text is redacted wherever a model may read it.
func TestRedactsWhateverIsRead(t *testing.T) {
	const address = "bob@example.com"
	mails := turn.Removing(regexp.MustCompile(`[a-z]+@[a-z]+\.com`))
	c := newCrib(t)
	answers := map[string]func() (tools.ToolResult, error){
		"error": func() (tools.ToolResult, error) { return tools.ToolResult{}, errors.New("no user " + address) },
		"tools_error": func() (tools.ToolResult, error) {
			return tools.ToolResult{}, &tools.Error{Message: "no user " + address, Class: tools.ErrClassPermanent}
		},
		"strange": func() (tools.ToolResult, error) {
			return tools.ToolResult{Content: []tools.Content{{Type: "strange", JSON: json.RawMessage(`{"type":"strange","data":"` + address + `"}`)}}}, nil
		},
		"no_image": func() (tools.ToolResult, error) {
			return tools.ToolResult{Content: []tools.Content{{Type: "image", JSON: json.RawMessage(`{"type":"image","data":["` + address + `"]}`)}}}, nil
		},
		"link": func() (tools.ToolResult, error) {
			return tools.ToolResult{Content: []tools.Content{tools.ResourceLink("x:1", "x", address)}}, nil
		},
		"value_beside_an_image": func() (tools.ToolResult, error) {
			return tools.ToolResult{Value: map[string]string{"to": address}, Content: []tools.Content{tools.ImageContent([]byte("x"), "image/png")}}, nil
		},
		"wire": func() (tools.ToolResult, error) {
			return tools.ToolResult{Content: []tools.Content{tools.TextContent("x")}, WireKind: tools.KindTool,
				Wire: json.RawMessage(`{"content":[{"type":"text","text":"x"}],"_meta":{"to":"` + address + `"}}`)}, nil
		},
	}
	for name, answer := range answers {
		c.add(tools.Tool{Name: name}, func(context.Context, json.RawMessage) (tools.ToolResult, error) { return answer() })
	}
	tn := c.begin(caller(), with(turn.Redact(map[string]turn.Redaction{"": mails})))
	for name := range answers {
		results, err := tn.Execute(caller(), []turn.Call{call("1", name, `{}`)})
		must(t, err)
		if r := results[0]; r.Err != nil && strings.Contains(r.Err.Error(), address) {
			t.Errorf("%s: %v", name, r.Err)
		}
		for _, p := range adapter.Providers() {
			a, err := adapter.New(p, nil)
			must(t, err)
			out, err := tn.Declare(a).Results(caller(), []adapter.Answer{{Call: adapter.Call{ID: "1", Tool: name}, Result: results[0].ToolResult}})
			must(t, err)
			if text := string(slices.Concat(out...)); strings.Contains(text, address) {
				t.Errorf("%s for %s: %s", name, p, text)
			}
		}
	}
	for _, e := range c.heard() {
		if text, _ := json.Marshal(e.Payload); strings.Contains(string(text), address) {
			t.Errorf("%s: %s", e.Type, text)
		}
	}
}

// Why a tool failed is withheld where nobody knows its redaction.
func TestUnknownRedactionWithholdsErrors(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "a", Safety: tools.Safety{Redaction: "pii"}}, func(context.Context, json.RawMessage) (tools.ToolResult, error) {
		return tools.ToolResult{}, errors.New("bob")
	})
	r := c.execute(with(turn.Redact(nil)), call("1", "a", `{}`))[0]
	if r.Status != turn.StatusFailed || strings.Contains(r.Text()+r.Err.Error(), "bob") || !strings.Contains(r.Text(), "withheld") {
		t.Errorf("%s %s %v", r.Status, r.Text(), r.Err)
	}
}

// A call is the same however its arguments are written.
func TestLoopInOtherWords(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "a"}, func(context.Context, json.RawMessage) (tools.ToolResult, error) {
		return tools.ToolResult{Value: 1}, nil
	})
	run := turn.New(c.cat, with(turn.StopLoops(2))).NewRun(turn.Usage{})
	var got []turn.Status
	for _, args := range []string{`{"a":1,"b":{"c":2,"d":"x"}}`, `{ "b": {"d":"\u0078", "c":2}, "a":1}`, `{"b":{"c":2,"d":"x"},"a":1}`, `{"a":1,"b":{"c":2,"d":"y"}}`} {
		tn, err := run.Begin(caller())
		must(t, err)
		results, err := tn.Execute(caller(), []turn.Call{call("1", "a", args)})
		must(t, err)
		got = append(got, results[0].Status)
	}
	if want := []turn.Status{turn.StatusCompleted, turn.StatusCompleted, turn.StatusDenied, turn.StatusCompleted}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
