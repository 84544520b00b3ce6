package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/mcpserver"
	"github.com/toolcrib/toolcrib/tools"
)

// askingCrib has tools that ask.
func askingCrib(t *testing.T) *crib {
	t.Helper()
	c := newCrib(t)
	form := tools.Question{Method: "elicitation/create", Params: json.RawMessage(`{"message":"who?"}`), Key: "who"}
	for name, questions := range map[string][]tools.Question{
		"ask.one":   {form},
		"ask.two":   {form, {Method: "roots/list"}},
		"ask.other": {{Method: "sampling/createMessage"}},
	} {
		err := c.Register(tools.ToolDescriptor{Tool: tools.Tool{Name: name, Policy: tools.ToolPolicy{MaxRetries: -1}},
			Invoke: func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
				answers, err := tools.CallFrom(ctx).AskAll(ctx, questions)
				if err != nil {
					select {
					case c.ended <- struct{}{}:
					default:
					}
					return tools.ToolResult{}, err
				}
				var said []string
				for _, a := range answers {
					said = append(said, string(a.Result))
				}
				return tools.ToolResult{Value: strings.Join(said, " ")}, nil
			}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// asker calls a tool over a pipe as a client of the stateless era that can be
// asked for forms and roots.
type asker struct {
	*pipe
	last int
}

// call returns the answer to a call with further params, such as the answers.
func (a *asker) call(t *testing.T, tool, more string) json.RawMessage {
	t.Helper()
	a.last++
	a.write(t, `{"jsonrpc":"2.0","id":`+strconv.Itoa(a.last)+`,"method":"tools/call","params":{"name":"`+tool+`",`+more+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"roots":{}}}}}`)
	before := a.said.Len()
	a.readAnswer(t)
	return json.RawMessage(a.said.String()[before:])
}

func at(answer json.RawMessage, path ...string) string {
	v, _ := rawjson.Get(answer, path...)
	if text, ok := rawjson.Unquote(v); ok {
		return text
	}
	return string(v)
}

// back are the params of a request that comes back with answers.
func back(answer json.RawMessage, responses string) string {
	state, _ := rawjson.Get(answer, "result", "requestState")
	return `"requestState":` + string(state) + `,"inputResponses":{` + responses + `},`
}

const ada = `"who":{"action":"accept","content":{"name":"Ada"}}`

func TestAQuestionIsTheResult(t *testing.T) {
	p := &asker{pipe: openPipe(t, askingCrib(t).serve(t, nil))}
	first := p.call(t, "ask.two", "")
	if at(first, "result", "resultType") != "input_required" ||
		at(first, "result", "inputRequests") != `{"who":{"method":"elicitation/create","params":{"message":"who?"}},"question-1":{"method":"roots/list","params":{}}}` {
		t.Fatalf("%s", first)
	}
	// One answer of two, and what is none: the rest is asked again.
	second := p.call(t, "ask.two", back(first, ada+`,"question-1":7,"nobody asked":{}`))
	if at(second, "result", "inputRequests") != `{"question-1":{"method":"roots/list","params":{}}}` || at(second, "result", "requestState") == at(first, "result", "requestState") {
		t.Fatalf("%s", second)
	}
	// A state is good once.
	if again := p.call(t, "ask.two", back(first, ada)); at(again, "error", "code") != "-32602" {
		t.Errorf("%s", again)
	}
	last := p.call(t, "ask.two", back(second, `"question-1":{"roots":[]}`))
	if at(last, "result", "resultType") != "complete" || !strings.Contains(at(last, "result", "content"), `{\"roots\":[]}`) {
		t.Errorf("%s", last)
	}
	if again := p.call(t, "ask.two", back(second, "")); at(again, "error", "code") != "-32602" {
		t.Errorf("%s", again)
	}
}

func TestAnswersAhead(t *testing.T) {
	p := &asker{pipe: openPipe(t, askingCrib(t).serve(t, nil))}
	got := p.call(t, "ask.one", `"inputResponses":{`+ada+`},`)
	if at(got, "result", "resultType") != "complete" {
		t.Errorf("%s", got)
	}
	for _, none := range []string{`"who":12345`, `"who":{}`, `"other":{"action":"accept"}`} {
		if got := p.call(t, "ask.one", `"inputResponses":{`+none+`},`); at(got, "result", "resultType") != "input_required" {
			t.Errorf("%s: %s", none, got)
		}
	}
	if got := p.call(t, "ask.one", `"inputResponses":null,`); at(got, "result", "resultType") != "input_required" {
		t.Errorf("%s", got)
	}
}

func TestOnlyWhatTheClientDeclaresIsAsked(t *testing.T) {
	p := &asker{pipe: openPipe(t, askingCrib(t).serve(t, nil))}
	if got := p.call(t, "ask.other", ""); !strings.Contains(string(got), `"code":"ask_unsupported"`) {
		t.Errorf("%s", got)
	}
}

func TestStatesBelongToWhoeverGotThem(t *testing.T) {
	c := askingCrib(t)
	url := listenHTTP(t, c.serve(t, &mcpserver.Options{Authenticate: byTenant}))
	ask := func(auth, tool string, params map[string]json.RawMessage) json.RawMessage {
		m := modern{url: url, auth: auth, capabilities: `{"elicitation":{}}`}
		_, answer := m.post(t, "tools/call", tool, params)
		return answer
	}
	first := ask("Bearer acme", "ask.one", nil)
	state, ok := rawjson.Get(first, "result", "requestState")
	if !ok {
		t.Fatalf("%s", first)
	}
	with := func(state json.RawMessage) map[string]json.RawMessage {
		return map[string]json.RawMessage{"requestState": state, "inputResponses": json.RawMessage("{" + ada + "}")}
	}
	tampered := json.RawMessage(strings.TrimSuffix(string(state), `"`) + `-TAMPERED"`)
	for name, got := range map[string]json.RawMessage{
		"another tenant": ask("Bearer zeta", "ask.one", with(state)),
		"another tool":   ask("Bearer acme", "ask.two", with(state)),
		"tampered":       ask("Bearer acme", "ask.one", with(tampered)),
		"invented":       ask("Bearer acme", "ask.one", with(json.RawMessage(`"x"`))),
	} {
		if at(got, "error", "code") != "-32602" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := ask("Bearer acme", "ask.one", with(state)); at(got, "result", "resultType") != "complete" {
		t.Errorf("%s", got)
	}
}

func TestParkedCallsAreBounded(t *testing.T) {
	c := askingCrib(t)
	p := &asker{pipe: openPipe(t, c.serve(t, &mcpserver.Options{ParkedCalls: 8}))}
	var last json.RawMessage
	for range 2 {
		if last = p.call(t, "ask.one", ""); at(last, "result", "resultType") != "input_required" {
			t.Fatalf("%s", last)
		}
	}
	if got := p.call(t, "ask.one", ""); !strings.Contains(at(got, "error", "message"), "too many calls wait") {
		t.Errorf("%s", got)
	}
	receive(t, c.ended) // the call that has no place is over
	if got := p.call(t, "ask.one", back(last, ada)); at(got, "result", "resultType") != "complete" {
		t.Errorf("%s", got)
	}
	if got := p.call(t, "ask.one", ""); at(got, "result", "resultType") != "input_required" {
		t.Errorf("%s", got)
	}
}

// However many callers there are, and however few calls each has, all together
// are bounded.
func TestParkedCallsOfAllAreBounded(t *testing.T) {
	c := askingCrib(t)
	url := listenHTTP(t, c.serve(t, &mcpserver.Options{Authenticate: byTenant, ParkedCalls: 4}))
	for i := range 6 {
		_, got := modern{url: url, auth: "Bearer t" + strconv.Itoa(i), capabilities: `{"elicitation":{}}`}.post(t, "tools/call", "ask.one", nil)
		if full := strings.Contains(at(got, "error", "message"), "too many calls wait"); full != (i >= 4) {
			t.Errorf("caller %d: %s", i, got)
		}
	}
}

// Who comes back to a tool that has been hidden meanwhile is told what is told of
// one that does not exist, and the call is over.
func TestParkedCallOfAHiddenTool(t *testing.T) {
	c := askingCrib(t)
	p := &asker{pipe: openPipe(t, c.serve(t, nil))}
	first := p.call(t, "ask.one", "")
	if err := c.Amend(func(tool *tools.Tool) {
		if tool.Name == "ask.one" {
			tool.Tenants = []string{"somebody else"}
		}
	}); err != nil {
		t.Fatal(err)
	}
	if got := p.call(t, "ask.one", back(first, ada)); at(got, "error", "message") != "Unknown tool: ask.one" {
		t.Errorf("%s", got)
	}
	receive(t, c.ended)
}

// A call that nobody comes back to ends after its time, and one whose server
// ends ends with it.
func TestParkedCallsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := askingCrib(t)
		s := mcpserver.New(c, &mcpserver.Options{ParkedTTL: time.Minute})
		p := &asker{pipe: openPipe(t, s)}
		first := p.call(t, "ask.one", "")
		begun := time.Now()
		<-c.ended
		if waited := time.Since(begun); waited != time.Minute {
			t.Errorf("ended after %v", waited)
		}
		if got := p.call(t, "ask.one", back(first, ada)); at(got, "error", "code") != "-32602" {
			t.Errorf("%s", got)
		}
		p.call(t, "ask.one", "")
		p.end(t)
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		<-c.ended
	})
}

// An error of the client about a question reaches the tool as it is.
func TestTheClientsErrorIsKept(t *testing.T) {
	c := newCrib(t)
	said := make(chan error, 1)
	err := c.Register(tools.ToolDescriptor{Tool: tools.Tool{Name: "ask"},
		Invoke: func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
			_, err := tools.CallFrom(ctx).Ask(ctx, tools.Question{Method: "roots/list"})
			said <- err
			return tools.ToolResult{Value: "done"}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	p := openPipe(t, c.serve(t, nil))
	p.write(t, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}}}}`)
	p.readAnswer(t)
	p.write(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}`)
	p.readAnswer(t)
	p.write(t, `{"jsonrpc":"2.0","id":`+string(p.lastRequest)+`,"error":{"code":-1,"message":"no","data":[1]}}`)
	var refused *tools.AnswerError
	var rpc *mcpwire.Error
	if err := receive(t, said); !errors.As(err, &refused) || refused.Code != -1 || string(refused.Data) != "[1]" || errors.As(err, &rpc) {
		t.Errorf("%v", err)
	}
	p.readAnswer(t)
	p.end(t)
}
