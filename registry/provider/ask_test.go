package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
	"github.com/toolcrib/toolcrib/tools/toolstest"
)

var form = tools.Question{Method: "elicitation/create", Params: json.RawMessage(`{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}`)}

type said struct {
	Answer  string `json:"answer"`
	Refusal int64  `json:"refusal,omitempty"`
	Fault   string `json:"fault,omitempty"`
}

// asker is a catalog whose tools ask their caller what list holds, all at once. A
// caller that gives no answer is part of their result.
func asker(t *testing.T, list ...tools.Question) tools.ToolCatalog {
	t.Helper()
	cat := tools.NewCatalog()
	ask := func(ctx context.Context, _ struct{}) (said, error) {
		answers, err := tools.CallFrom(ctx).AskAll(ctx, list)
		var refusal *tools.AnswerError
		if errors.As(err, &refusal) {
			return said{Refusal: refusal.Code, Fault: refusal.Message}, nil
		}
		if err != nil {
			return said{}, err
		}
		var texts []string
		for _, a := range answers {
			texts = append(texts, string(a.Result))
		}
		return said{Answer: strings.Join(texts, ";")}, nil
	}
	for name, effect := range map[string]tools.SideEffect{"ask.read": tools.SideEffectRead, "ask.write": tools.SideEffectWrite} {
		if err := inproc.RegisterFunc(cat, name, ask, tools.WithSideEffect(effect), tools.WithPolicy(tools.ToolPolicy{TimeoutMS: 1000, MaxRetries: -1})); err != nil {
			t.Fatal(err)
		}
	}
	return cat
}

// asked returns a context whose calls are asked through p.
func asked(t *testing.T, p tools.Peer) context.Context {
	return tools.WithEntrance(caller(t), tools.Entrance{Peer: p, Client: "client-1", Capabilities: tools.Capabilities{ElicitForm: true, Roots: true}})
}

// A tool on a worker asks its caller, whose time to think counts for nobody's
// limit: neither the attempt's, which is a second here, nor the worker's.
func TestAsk(t *testing.T) {
	c := newCrib(t, nil)
	c.serve("ask", provider.FromCatalog(asker(t, form)), provider.Options{})
	c.up("ask", 1)
	for _, tool := range []string{"ask.read", "ask.write"} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			peer := &toolstest.Peer{Answers: func(ctx context.Context, _ tools.Question) (tools.Answer, error) {
				think := time.NewTimer(2500 * time.Millisecond)
				defer think.Stop()
				select {
				case <-think.C:
				case <-ctx.Done():
					return tools.Answer{}, ctx.Err()
				}
				return tools.Answer{Result: json.RawMessage(`{"action":"accept","content":{"n":9007199254740993}}`)}, nil
			}}
			res, err := c.call(asked(t, peer), tool, `{}`)
			if err != nil {
				t.Fatal(err)
			}
			var got said
			if err := json.Unmarshal(structured(t, res), &got); err != nil || got.Answer != `{"action":"accept","content":{"n":9007199254740993}}` {
				t.Errorf("the tool got %+v, %v", got, err)
			}
			if list := peer.Asked(); len(list) != 1 || list[0].Method != form.Method || string(list[0].Params) != string(form.Params) {
				t.Errorf("the caller was asked %+v", list)
			}
		})
	}
}

// Several questions are asked at once and answered in their order.
func TestAskSeveral(t *testing.T) {
	c := newCrib(t, nil)
	c.serve("ask", provider.FromCatalog(asker(t, form, tools.Question{Method: "roots/list", Params: json.RawMessage(`{}`)})), provider.Options{})
	c.up("ask", 1)
	peer := &toolstest.Peer{Answers: func(_ context.Context, q tools.Question) (tools.Answer, error) {
		if q.Method == "roots/list" {
			return tools.Answer{Result: json.RawMessage(`{"roots":[]}`)}, nil
		}
		return tools.Answer{Result: json.RawMessage(`{"action":"decline"}`)}, nil
	}}
	res, err := c.call(asked(t, peer), "ask.write", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(structured(t, res)); !strings.Contains(got, `{\"action\":\"decline\"};{\"roots\":[]}`) {
		t.Errorf("got %s", got)
	}
}

// A caller's error reaches the tool as it is, and who cannot be asked is not.
func TestAskWithoutAnswer(t *testing.T) {
	c := newCrib(t, nil)
	c.serve("ask", provider.FromCatalog(asker(t, form)), provider.Options{})
	c.up("ask", 1)
	peer := &toolstest.Peer{Answers: func(context.Context, tools.Question) (tools.Answer, error) {
		return tools.Answer{}, &tools.Error{Class: tools.ErrClassPermanent, Err: &tools.AnswerError{Code: -32042, Message: "not now"}}
	}}
	res, err := c.call(asked(t, peer), "ask.write", `{}`)
	if err != nil || string(structured(t, res)) != `{"answer":"","refusal":-32042,"fault":"not now"}` {
		t.Errorf("refused: %s, %v", structured(t, res), err)
	}
	if _, err := c.call(asked(t, &toolstest.Peer{}), "ask.write", `{}`); !errors.Is(err, tools.ErrAskUnsupported) {
		t.Errorf("a caller that cannot answer this: %v", err)
	}
	if _, err := c.call(caller(t), "ask.write", `{}`); !errors.Is(err, tools.ErrAskUnsupported) {
		t.Errorf("a caller that nobody can reach: %v", err)
	}
	c.add("ask", "call", `{"type":"call","tool_use_id":"hand","tool":"ask.write","payload":{}}`)
	if _, res := c.answer("hand"); res.Error == nil || res.Error.Code != registry.CodeAskUnsupported {
		t.Errorf("a message by hand: %+v", res.Error)
	}
}

// A caller that goes away is not waited for, and a question that the tool takes
// back is taken back from the caller.
func TestAskEnds(t *testing.T) {
	c := newCrib(t, nil)
	begun, ended := make(chan struct{}, 1), make(chan error, 1)
	ask := func(ctx context.Context, in struct {
		Patient bool `json:"patient"`
	}) (said, error) {
		if !in.Patient {
			impatient, cancel := context.WithCancel(ctx)
			defer cancel()
			go func() {
				<-begun
				cancel()
			}()
			_, err := tools.CallFrom(ctx).Ask(impatient, form)
			return said{Answer: "later", Fault: err.Error()}, nil
		}
		_, err := tools.CallFrom(ctx).Ask(ctx, form)
		ended <- err
		return said{}, err
	}
	cat := tools.NewCatalog()
	c.check(inproc.RegisterFunc(cat, "ask.wait", ask, tools.WithSideEffect(tools.SideEffectWrite)))
	c.serve("ask", provider.FromCatalog(cat), provider.Options{})
	c.up("ask", 1)
	withdrawn := make(chan struct{}, 1)
	peer := &toolstest.Peer{Answers: func(ctx context.Context, _ tools.Question) (tools.Answer, error) {
		begun <- struct{}{}
		<-ctx.Done()
		withdrawn <- struct{}{}
		return tools.Answer{}, ctx.Err()
	}}
	res, err := c.call(asked(t, peer), "ask.wait", `{"patient":false}`)
	if err != nil || string(structured(t, res)) != `{"answer":"later","fault":"context canceled"}` {
		t.Errorf("taken back: %s, %v", structured(t, res), err)
	}
	receive(t, withdrawn)

	ctx, leave := context.WithCancel(asked(t, peer))
	go func() {
		<-begun
		leave()
	}()
	if _, err := c.call(ctx, "ask.wait", `{"patient":true}`); !errors.Is(err, context.Canceled) {
		t.Errorf("the caller that went away: %v", err)
	}
	receive(t, withdrawn)
	if err := receive(t, ended); !errors.Is(err, context.Canceled) {
		t.Errorf("the tool that it left: %v", err)
	}
}

// A handler without a catalog asks as well.
func TestHandlerAsks(t *testing.T) {
	c := newCrib(t, nil)
	h := provider.HandlerFunc(func(ctx context.Context, m registry.ToolCallMessage) (registry.ToolResultMessage, error) {
		answers, err := provider.Ask(ctx, form)
		if err != nil {
			return registry.ToolResultMessage{}, err
		}
		return registry.ToolResultMessage{ResultJSON: answers[0].Result}, nil
	})
	anything := json.RawMessage(`{}`)
	c.serve("ask", h, provider.Options{Contract: &registry.Contract{Toolset: "ask",
		Tools: []registry.ToolSpec{{Name: "ask.bare", Description: "Asks.", ArgsSchema: anything, ResultSchema: anything}}}})
	c.up("ask", 1)
	peer := &toolstest.Peer{Answers: func(context.Context, tools.Question) (tools.Answer, error) {
		return tools.Answer{Result: json.RawMessage(`{"action":"cancel"}`)}, nil
	}}
	res, err := c.call(asked(t, peer), "ask.bare", `{}`)
	if err != nil || string(structured(t, res)) != `{"action":"cancel"}` {
		t.Errorf("got %s, %v", structured(t, res), err)
	}
	if _, err := provider.Ask(t.Context(), form); !errors.Is(err, provider.ErrNoCall) {
		t.Errorf("outside of a call: %v", err)
	}
}

func structured(t *testing.T, res tools.ToolResult) json.RawMessage {
	t.Helper()
	out, err := res.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}
