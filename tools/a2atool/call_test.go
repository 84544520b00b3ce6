package a2atool

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/toolcrib/toolcrib/tools"
)

// each runs a test against an agent of each binding, streaming and not.
func each(t *testing.T, f func(t *testing.T, s *agentServer, cat tools.LiveCatalog)) {
	for _, binding := range bindings {
		for _, mode := range []string{"streaming", "polling"} {
			t.Run(binding+" "+mode, func(t *testing.T) {
				s := serveAgent(t, binding, func(c *a2a.AgentCard) { c.Capabilities.Streaming = mode == "streaming" })
				f(t, s, catalogOf(t, open(t, local(s.URL))))
			})
		}
	}
}

func TestCompletedTask(t *testing.T) {
	each(t, func(t *testing.T, s *agentServer, cat tools.LiveCatalog) {
		r := call(t, caller(t, "a", "s1", nil), cat, say("echo hi"))
		if r.IsError || r.Text() != "echo: hi" || r.Value != "echo: hi" {
			t.Errorf("got %+v", r)
		}
		if r.Meta[metaTask] == nil || r.Meta[metaContext] == nil || r.Meta[metaState] != "completed" {
			t.Errorf("meta: %v", r.Meta)
		}
		if m := s.received()[0]; m.Metadata["skillId"] != "act" || m.Role != a2a.MessageRoleUser {
			t.Errorf("the agent got %+v", m)
		}
	})
}

func TestAnswerWithoutTask(t *testing.T) {
	each(t, func(t *testing.T, _ *agentServer, cat tools.LiveCatalog) {
		if r := call(t, caller(t, "a", "s1", nil), cat, say("message this")); r.IsError || r.Text() != "just this" {
			t.Errorf("got %+v", r)
		}
	})
}

func TestFailedTask(t *testing.T) {
	each(t, func(t *testing.T, _ *agentServer, cat tools.LiveCatalog) {
		if r := call(t, caller(t, "a", "s1", nil), cat, say("fail it")); !r.IsError || r.Text() != "no luck with it" {
			t.Errorf("failed: %+v", r)
		}
		if r := call(t, caller(t, "a", "s1", nil), cat, say("reject it")); !r.IsError || !strings.Contains(r.Text(), "(rejected)") {
			t.Errorf("rejected: %+v", r)
		}
	})
}

func TestStreamedProgress(t *testing.T) {
	for _, binding := range bindings {
		t.Run(binding, func(t *testing.T) {
			s := serveAgent(t, binding, nil)
			cat := catalogOf(t, open(t, local(s.URL)))
			l := &listener{}
			r := call(t, caller(t, "a", "s1", l), cat, say("long work"))
			if r.Text() != "one two" {
				t.Errorf("result %q", r.Text())
			}
			if got, want := l.all(), []string{"submitted", "step 1", "step 2", "step 3", "one ", "two"}; !slices.Equal(got, want) {
				t.Errorf("progress %q, want %q", got, want)
			}
		})
	}
}

// A task that works is awaited, and the state that it shows meanwhile is told.
func TestWorkIsAwaited(t *testing.T) {
	each(t, func(t *testing.T, s *agentServer, cat tools.LiveCatalog) {
		l := &listener{heard: func(string) {
			select {
			case s.proceed <- struct{}{}:
			default:
			}
		}}
		if r := call(t, caller(t, "a", "s1", l), cat, say("wait now")); r.Text() != "waited" {
			t.Errorf("got %+v", r)
		}
		if len(l.all()) == 0 {
			t.Error("no progress")
		}
	})
}

func TestQuestionIsAnswered(t *testing.T) {
	each(t, func(t *testing.T, s *agentServer, cat tools.LiveCatalog) {
		l := &listener{answer: `{"action":"accept","content":{"answer":"Berne"}}`}
		r := call(t, caller(t, "a", "s1", l), cat, say("ask me"))
		if r.IsError || r.Text() != "the answer was Berne" {
			t.Errorf("got %+v", r)
		}
		if len(l.questions) != 1 || !strings.Contains(l.questions[0], "test asks: Which city?") {
			t.Errorf("questions: %q", l.questions)
		}
		got := s.received()
		if len(got) != 2 || got[1].TaskID == "" || got[1].ContextID == "" {
			t.Errorf("the answer does not belong to the task: %+v", got)
		}
	})
}

func TestQuestionIsDeclined(t *testing.T) {
	s := serveAgent(t, "JSONRPC 1.0", nil)
	cat := catalogOf(t, open(t, local(s.URL)))
	r := call(t, caller(t, "a", "s1", &listener{answer: `{"action":"decline"}`}), cat, say("ask me"))
	if !r.IsError || !strings.Contains(r.Text(), "Which city?") {
		t.Errorf("got %+v", r)
	}
	<-s.cancelled
}

func TestUselessAnswer(t *testing.T) {
	s := serveAgent(t, "JSONRPC 1.0", nil)
	cat := catalogOf(t, open(t, local(s.URL)))
	_, err := tools.Invoke(caller(t, "a", "s1", &listener{answer: `{"action":"accept"}`}), cat, "test_act", say("ask me"))
	if err == nil || !strings.Contains(err.Error(), "it is empty") {
		t.Errorf("got %v", err)
	}
	<-s.cancelled
}

// Where nobody can be asked the question is the result, and the next call of
// the session is the answer.
func TestQuestionIsTheResult(t *testing.T) {
	each(t, func(t *testing.T, _ *agentServer, cat tools.LiveCatalog) {
		r := call(t, caller(t, "a", "s1", nil), cat, say("ask me"))
		if r.IsError || !strings.HasPrefix(r.Text(), "Which city?\n") || r.Meta[metaState] != "input required" {
			t.Fatalf("got %+v", r)
		}
		if r := call(t, caller(t, "a", "s1", nil), cat, say("Basle")); r.Text() != "the answer was Basle" {
			t.Errorf("got %+v", r)
		}
	})
}

func TestQuestionWithoutSession(t *testing.T) {
	s := serveAgent(t, "JSONRPC 1.0", nil)
	cat := catalogOf(t, open(t, local(s.URL)))
	if r := call(t, t.Context(), cat, say("ask me")); !r.IsError || !strings.Contains(r.Text(), "Which city?\n") {
		t.Errorf("got %+v", r)
	}
	<-s.cancelled
}

// The caller's key is the message's id, by which an agent tells repetitions.
func TestIdempotencyKey(t *testing.T) {
	s := serveAgent(t, "JSONRPC 1.0", nil)
	cat := catalogOf(t, open(t, local(s.URL)))
	call(t, tools.WithEntrance(t.Context(), tools.Entrance{IdempotencyKey: "order-7"}), cat, say("echo x"))
	if id := s.received()[0].ID; id != "order-7" {
		t.Errorf("the message's id is %q", id)
	}
}

func TestAuthorizationRequired(t *testing.T) {
	each(t, func(t *testing.T, _ *agentServer, cat tools.LiveCatalog) {
		_, err := tools.Invoke(caller(t, "a", "s1", nil), cat, "test_act", say("auth me"))
		var te *tools.Error
		if !errors.As(err, &te) || te.Class != tools.ErrClassPermanent || te.Delivery != tools.Answered ||
			!strings.Contains(te.Message, "wants an authorization") || !strings.Contains(te.Message, "login.example") {
			t.Errorf("got %v", err)
		}
	})
}

func TestCancelledCallCancelsTheTask(t *testing.T) {
	each(t, func(t *testing.T, s *agentServer, cat tools.LiveCatalog) {
		ctx, cancel := context.WithCancel(caller(t, "a", "s1", nil))
		defer cancel()
		ended := make(chan error, 1)
		l := &listener{heard: func(string) { cancel() }}
		ctx = tools.WithEntrance(ctx, tools.Entrance{Peer: l})
		go func() {
			_, err := tools.Invoke(ctx, cat, "test_act", say("wait here"))
			ended <- err
		}()
		id := <-s.running
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if got := <-s.cancelled; got != id {
			t.Errorf("task %s was cancelled, not %s", got, id)
		}
	})
}

func TestPartsBothWays(t *testing.T) {
	each(t, func(t *testing.T, s *agentServer, cat tools.LiveCatalog) {
		r := call(t, caller(t, "a", "s1", nil), cat, json.RawMessage(`{"message":"parts","data":{"n":9007199254740993,"deep":[{"x":1.10}]},
			"files":[{"name":"p.png","mime":"image/png","bytes":"iVBORw=="},{"uri":"https://in.example/a.txt","mime":"text/plain"}]}`))
		if r.IsError || len(r.Content) != 6 {
			t.Fatalf("got %d blocks: %+v", len(r.Content), r)
		}
		var kinds []string
		for _, c := range r.Content {
			kinds = append(kinds, c.Type)
		}
		if want := []string{"text", "image", "resource_link", "resource", "resource", "resource_link"}; !slices.Equal(kinds, want) {
			t.Errorf("blocks %v, want %v", kinds, want)
		}
		if got := s.received()[0].Parts[2]; string(got.Raw()) != "\x89PNG" || got.Filename != "p.png" || got.MediaType != "image/png" {
			t.Errorf("the agent got the file %+v", got)
		}
		for i, want := range []string{`\"deep\":`, `"iVBORw=="`, `"https://in.example/a.txt"`, `"a,b\n1,2\n"`, `"blob":"AAH/"`, `"name":"r.pdf"`} {
			if !strings.Contains(string(r.Content[i].JSON), want) {
				t.Errorf("block %d lacks %s: %s", i, want, r.Content[i].JSON)
			}
		}
		if !strings.Contains(string(r.Content[0].JSON), `"`+metaSource+`":{"description":"what came","id":`) {
			t.Errorf("the block does not say what it is part of: %s", r.Content[0].JSON)
		}
	})
}

func TestArguments(t *testing.T) {
	s := serveAgent(t, "JSONRPC 1.0", nil)
	cat := catalogOf(t, open(t, local(s.URL)))
	for args, want := range map[string]string{
		`{}`:                                                 "message",
		`{"message":"x","files":[{}]}`:                       "/files/0: expected either bytes or uri",
		`{"message":"x","more":1}`:                           "more",
		`{"message":"x","context_id":"theirs"}`:              "context_id: this session has no such conversation",
		`{"message":"x","files":[{"uri":"a.txt"}]}`:          "absolute URI",
		`{"message":"x","files":[{"bytes":"%%%"}]}`:          "base64",
		`{"message":"x","files":[{"uri":"x:y","bytes":""}]}`: "either bytes or uri",
	} {
		_, err := tools.Invoke(caller(t, "a", "s1", nil), cat, "test_act", json.RawMessage(args))
		if !errors.Is(err, tools.ErrToolInvalidArgs) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
	if n := len(s.received()); n != 0 {
		t.Errorf("%d calls reached the agent", n)
	}
}
