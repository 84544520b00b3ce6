package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/flow"
)

// asked answers every question with a fixed result.
type asked struct {
	tools.Peer
	result    string
	questions []string
}

func (a *asked) Ask(_ context.Context, q tools.Question) (tools.Answer, error) {
	a.questions = append(a.questions, string(q.Params))
	return tools.Answer{Result: json.RawMessage(a.result)}, nil
}

func (a *asked) Progress(context.Context, tools.ProgressNote) error { return nil }

func TestANodeAsksTheCaller(t *testing.T) {
	cat := catalog(t, &tracker{})
	f := compose(t, "name: ask_first\ninputs: {type: object, properties: {what: {type: string}}}\nentry: ok\nexit: a\nnodes:\n"+
		"  - {id: ok, ask: {message: \"Delete ${{ inputs.what }}?\"}, next: [{to: a}]}\n  - {id: a, tool: math.add, inputs: {a: 1}}\n", cat)
	if err := flow.RegisterAsTool(cat, f, tools.WithDescription("Asks first.")); err != nil {
		t.Fatal(err)
	}
	for answer, want := range map[string]error{
		`{"action":"accept","content":{"approved":true}}`:  nil,
		`{"action":"accept","content":{"approved":false}}`: flow.ErrDeclined,
		`{"action":"decline"}`:                             flow.ErrDeclined,
	} {
		peer := &asked{result: answer}
		ctx := tools.WithEntrance(t.Context(), tools.Entrance{Peer: peer, Capabilities: tools.Capabilities{ElicitForm: true}})
		_, err := tools.Invoke(ctx, cat, "ask_first", json.RawMessage(`{"what":"it all"}`))
		if !errors.Is(err, want) {
			t.Errorf("%s: got %v", answer, err)
		}
		if len(peer.questions) != 1 || !strings.Contains(peer.questions[0], "Delete it all?") {
			t.Errorf("got %v", peer.questions)
		}
	}
	if _, err := tools.Invoke(t.Context(), cat, "ask_first", json.RawMessage(`{"what":"it"}`)); !errors.Is(err, tools.ErrAskUnsupported) {
		t.Errorf("got %v", err)
	}
}

func TestFlowIsATool(t *testing.T) {
	cat := catalog(t, &tracker{})
	f := compose(t, diamond, cat)
	if err := flow.RegisterAsTool(cat, f, tools.WithDescription("A diamond.")); err != nil {
		t.Fatal(err)
	}
	result, err := tools.Invoke(t.Context(), cat, "diamond", json.RawMessage(`{"n":1}`))
	if err != nil {
		t.Fatal(err)
	}
	if raw, _ := result.JSON(); string(raw) != `{"total":107}` {
		t.Errorf("got %s", raw)
	}
	d, _ := cat.Resolve("diamond")
	if d.Tool.SideEffects != tools.SideEffectPure || d.Tool.Transport != tools.TransportFlow || d.Tool.Category != "flow" {
		t.Errorf("got %+v", d.Tool)
	}
	if _, err := tools.Invoke(t.Context(), cat, "diamond", json.RawMessage(`{"n":"x"}`)); !errors.Is(err, tools.ErrToolInvalidArgs) {
		t.Errorf("got %v", err)
	}
	guarded := compose(t, strings.ReplaceAll(one(`{id: a, tool: math.fail, inputs: {a: 1}}`), "name: f", "name: guarded"), cat)
	if err := flow.RegisterAsTool(cat, guarded); err != nil {
		t.Fatal(err)
	}
	if _, err := tools.Invoke(t.Context(), cat, "guarded", nil); !errors.Is(err, tools.ErrToolNotFound) {
		t.Errorf("a caller without the scope of a node: got %v", err)
	}
}

func TestFunctionsAreContained(t *testing.T) {
	for name, f := range map[string]func(context.Context, struct{}) (sum, error){
		"panic":  func(context.Context, struct{}) (sum, error) { panic("secret") },
		"failed": func(context.Context, struct{}) (sum, error) { return sum{}, errBroken },
	} {
		composed, err := flow.Compose(flow.Definition{Name: "f", Entry: "a", Exit: "a", Nodes: []flow.Node{{ID: "a", Func: flow.Func(f)}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := composed.Run(t.Context(), nil); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestMermaid(t *testing.T) {
	got := compose(t, strings.Replace(failing, "HANDLING", "do: fallback, node: spare", 1), catalog(t, &tracker{})).Mermaid()
	for _, want := range []string{"flowchart TD\n", `n0(["a<br/>math.add"])`, "n0 --> n1", `n2 -.->|"on error"| n6`, `n0 -.->|"undo"| n4`} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

func TestInputsAreAnObject(t *testing.T) {
	for inputs, ok := range map[string]bool{`{"type":"string"}`: false, `{"type":["array","null"]}`: false, `{"type":["object","null"]}`: true, `{}`: true} {
		_, err := flow.Compose(flow.Definition{Name: "f", Inputs: []byte(inputs), Entry: "a", Exit: "a",
			Nodes: []flow.Node{{ID: "a", Ask: &flow.Question{Message: "m"}}}}, nil)
		if (err == nil) != ok || err != nil && !errors.Is(err, flow.ErrInvalid) {
			t.Errorf("%s: got %v", inputs, err)
		}
	}
}
