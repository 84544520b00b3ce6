package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
)

// gateTool is a tool that waits until it is let go, and fails when it is told to.
type gateTool struct {
	running chan string
	release chan error
}

func newGateTool() *gateTool { return &gateTool{make(chan string, 10), make(chan error, 10)} }

func (w *gateTool) register(cat tools.ToolCatalog) error {
	return inproc.RegisterFunc(cat, "wait", func(ctx context.Context, in textArgs) (textArgs, error) {
		w.running <- in.Text
		select {
		case err := <-w.release:
			return in, err
		case <-ctx.Done():
			return in, ctx.Err()
		}
	}, tools.WithSideEffect(tools.SideEffectRead), tools.WithPolicy(tools.ToolPolicy{MaxRetries: -1, TimeoutMS: -1}))
}

const waiting = `
tools: {built_in: [text.echo], entries: [{name: text.echo, side_effect: write}]}
flows:
  - name: slow
    description: Waits.
    inputs: {type: object, properties: {text: {type: string}}, required: [text]}
    entry: first
    exit: second
    nodes:
      - {id: first, tool: text.echo, inputs: {text: "${{ inputs.text }}"}, next: [{to: second}]}
      - {id: second, tool: wait, inputs: {text: "${{ nodes.first.text }}"}}
`

func openWaiting(t *testing.T, dir string) (*gateway.Gateway, *gateTool) {
	t.Helper()
	w := newGateTool()
	return open(t, parse(t, waiting), &gateway.Options{DataDir: dir, Register: []func(tools.ToolCatalog) error{w.register}}), w
}

func code(err error) api.Code {
	if e, ok := errors.AsType[*api.Error](err); ok {
		return e.Code
	}
	return ""
}

func TestRunsOverTheProtocol(t *testing.T) {
	for name, dir := range map[string]string{"kept": t.TempDir(), "passing": ""} {
		t.Run(name, func(t *testing.T) { runsOverTheProtocol(t, dir) })
	}
}

func runsOverTheProtocol(t *testing.T, dir string) {
	g, w := openWaiting(t, dir)
	server := httptest.NewServer(g.Handler())
	defer server.Close()
	mine, err := api.NewClient(server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := bounded(t)
	flows, err := mine.Flows(ctx)
	if err != nil || len(flows.Flows) != 1 || flows.Flows[0].State != api.CompositionReady || !slices.Equal(flows.Flows[0].Tools, []string{"text.echo", "wait"}) {
		t.Fatalf("got %+v, %v", flows, err)
	}
	graph, err := mine.FlowGraph(ctx, "slow")
	if err != nil || !strings.HasPrefix(graph.Mermaid, "flowchart TD\n") || !strings.Contains(graph.Mermaid, "text.echo") {
		t.Errorf("got %+v, %v", graph, err)
	}
	if _, err := mine.FlowGraph(ctx, "slw"); code(err) != api.CodeToolNotFound || !strings.Contains(err.Error(), `did you mean "slow"?`) {
		t.Errorf("got %v", err)
	}

	ended := make(chan error, 1)
	go func() {
		_, err := mine.Call(ctx, api.CallRequest{Name: "slow", Arguments: json.RawMessage(`{"text":"one"}`)})
		ended <- err
	}()
	<-w.running
	list, err := mine.FlowRuns(ctx, api.RunsRequest{Flow: "slow"})
	if err != nil || len(list.Runs) != 1 || list.Runs[0].Status != "running" {
		t.Fatalf("got %+v, %v", list, err)
	}
	id := list.Runs[0].ID
	strangers(t, g, id)
	if _, err := mine.Call(ctx, api.CallRequest{Name: "slow", Resume: id}); code(err) != api.CodeNotResumable {
		t.Errorf("a run that goes on: got %v", err)
	}
	if _, err := mine.CancelRun(ctx, id); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; code(err) != api.CodeToolFailed && code(err) != api.CodeCanceled || !strings.Contains(err.Error(), "the run was cancelled") {
		t.Errorf("got %v", err)
	}
	run, err := mine.FlowRun(ctx, id)
	if err != nil || run.Status != "cancelled" || run.Ended == nil || string(run.Inputs) != `{"text":"one"}` || len(run.Nodes) != 2 || run.Nodes[0].Status != "done" {
		t.Errorf("got %+v, %v", run, err)
	}

	w.release <- nil
	resp, err := mine.Call(ctx, api.CallRequest{Name: "slow", Resume: id})
	if err != nil || string(resp.Structured) != `{"text":"one"}` {
		t.Errorf("got %+v, %v", resp, err)
	}
	if run, err := mine.FlowRun(ctx, id); err != nil || run.Status != "done" {
		t.Errorf("got %+v, %v", run, err)
	}
	for what, req := range map[string]api.CallRequest{
		"done":       {Name: "slow", Resume: id},
		"unknown":    {Name: "slow", Resume: "nosuch"},
		"of another": {Name: "text.echo", Resume: id},
		"arguments":  {Name: "slow", Resume: id, Arguments: json.RawMessage(`{"text":"x"}`)},
	} {
		want := map[string]api.Code{"done": api.CodeNotResumable, "unknown": api.CodeRunNotFound, "of another": api.CodeNotResumable, "arguments": api.CodeInvalidRequest}[what]
		if _, err := mine.Call(ctx, req); code(err) != want {
			t.Errorf("%s: got %v, want %s", what, err, want)
		}
	}
	strangers(t, g, id)
}

// strangers demands that nobody else learns of a run or touches it.
func strangers(t *testing.T, g *gateway.Gateway, id string) {
	t.Helper()
	s := g.LocalAPI()
	for _, who := range []identity.Identity{{TenantID: "local", UserID: "other", SessionID: "local"}, {TenantID: "other", UserID: "local", SessionID: "local"}} {
		ctx := identity.With(bounded(t), who)
		if list, err := s.FlowRuns(ctx, api.RunsRequest{}); err != nil || len(list.Runs) != 0 {
			t.Errorf("got %+v, %v", list, err)
		}
		_, getErr := s.FlowRun(ctx, id)
		_, cancelErr := s.CancelRun(ctx, id)
		_, callErr := s.Call(ctx, api.CallRequest{Name: "slow", Resume: id})
		for _, err := range []error{getErr, cancelErr, callErr} {
			if code(err) != api.CodeRunNotFound {
				t.Errorf("got %v", err)
			}
		}
	}
}

// A run that was cut off by the end of the gateway goes on in the next.
func TestRunsOutliveTheGateway(t *testing.T) {
	dir := t.TempDir()
	w := newGateTool()
	first, err := gateway.Open(bounded(t), parse(t, waiting), &gateway.Options{DataDir: dir, Register: []func(tools.ToolCatalog) error{w.register}})
	if err != nil {
		t.Fatal(err)
	}
	await(t, first, func() bool { _, found := first.Catalog().Resolve("slow"); return found })
	ended := make(chan error, 1)
	go func() {
		_, err := tools.Invoke(first.LocalContext(context.Background()), first.Catalog(), "slow", json.RawMessage(`{"text":"x"}`))
		ended <- err
	}()
	<-w.running
	short, cancel := context.WithCancel(context.Background())
	cancel()
	if err := first.Close(short); !errors.Is(err, context.Canceled) {
		t.Errorf("no call was left behind: %v", err)
	}
	w.release <- nil
	<-ended

	second, again := openWaiting(t, dir)
	s := second.LocalAPI()
	ctx := second.LocalContext(bounded(t))
	list, err := s.FlowRuns(ctx, api.RunsRequest{})
	if err != nil || len(list.Runs) != 1 || list.Runs[0].Status != "interrupted" {
		t.Fatalf("got %+v, %v", list, err)
	}
	again.release <- nil
	resp, err := s.Call(ctx, api.CallRequest{Name: "slow", Resume: list.Runs[0].ID})
	if err != nil || string(resp.Structured) != `{"text":"x"}` {
		t.Errorf("got %+v, %v", resp, err)
	}
}

// A flow that runs while the gateway drains comes to its end.
func TestFlowsDrain(t *testing.T) {
	g, w := openWaiting(t, "")
	more := parse(t, strings.Replace(waiting, "exit: second", "exit: third", 1))
	more.Flows[0].Nodes[1].Next = []gateway.FlowEdge{{To: "third"}}
	more.Flows[0].Nodes = append(more.Flows[0].Nodes, gateway.FlowNode{ID: "third", Tool: "text.echo", Inputs: json.RawMessage(`{"text":"end"}`)})
	if err := g.Reload(bounded(t), more); err != nil {
		t.Fatal(err)
	}
	await(t, g, func() bool {
		graph, err := g.LocalAPI().FlowGraph(g.LocalContext(bounded(t)), "slow")
		return err == nil && strings.Contains(graph.Mermaid, "third")
	})
	ended := make(chan error, 1)
	go func() {
		_, err := tools.Invoke(g.LocalContext(context.Background()), g.Catalog(), "slow", json.RawMessage(`{"text":"x"}`))
		ended <- err
	}()
	<-w.running
	closed := make(chan error, 1)
	go func() { closed <- g.Close(bounded(t)) }()
	for {
		_, err := tools.Invoke(g.LocalContext(bounded(t)), g.Catalog(), "text.echo", json.RawMessage(`{"text":"x"}`))
		if errors.Is(err, tools.ErrOverloaded) {
			break // it drains
		}
	}
	w.release <- nil
	if err := <-ended; err != nil {
		t.Errorf("the flow failed: %v", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

func TestFlowAndSkillEvents(t *testing.T) {
	g := open(t, parse(t, composing+"  - {name: poor, entry: a, exit: b, budget: {calls: 1}, nodes: [{id: a, tool: text.echo, inputs: {text: x}, next: [{to: b}]}, {id: b, tool: text.echo, inputs: {text: x}}]}\n"), nil)
	sub := g.Bus().Subscribe(events.Filter{}, nil)
	call(t, g, "inner", `{"text":"hey"}`)
	if _, err := tools.Invoke(g.LocalContext(bounded(t)), g.Catalog(), "poor", nil); err == nil {
		t.Error("the flow did not fail")
	}
	sub.Close()
	var got []string
	for e := range sub.Events() {
		if who := e.Identity; strings.HasPrefix(string(e.Type), "flow.") || strings.HasPrefix(string(e.Type), "skill.") {
			got = append(got, fmt.Sprint(e.Type, " ", e.Tool))
			if who.TenantID != "local" || e.CallID == "" {
				t.Errorf("got %+v", e)
			}
		}
	}
	want := []string{"flow.started inner", "skill.started shout", "skill.step_ended shout", "skill.step_ended shout", "skill.completed shout",
		"flow.node_ended inner", "flow.completed inner", "flow.started poor", "flow.node_ended poor", "flow.node_ended poor", "flow.budget_exceeded poor", "flow.failed poor"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// What a flow tells of its progress reaches the client of MCP, and only grows.
func TestFlowProgressOverMCP(t *testing.T) {
	tells := func(cat tools.ToolCatalog) error {
		return inproc.RegisterFunc(cat, "tells", func(ctx context.Context, in textArgs) (textArgs, error) {
			return in, errors.Join(tools.Progress(ctx, 30, 100, "a third"), tools.Progress(ctx, 60, 100, "more"), tools.Progress(ctx, 40, 100, "back"))
		})
	}
	g := open(t, parse(t, `
flows:
  - {name: two, entry: a, exit: b, nodes: [{id: a, tool: tells, inputs: {text: x}, next: [{to: b}]}, {id: b, tool: deep, inputs: {}}]}
skills:
  - {name: deep, steps: [{id: "1", tool: tells, inputs: {text: x}}]}
`), &gateway.Options{Register: []func(tools.ToolCatalog) error{tells}})
	server := httptest.NewServer(g.Handler())
	defer server.Close()
	notes := make(chan *mcp.ProgressNotificationParams, 100)
	client := mcp.NewClient(&mcp.Implementation{Name: "t"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { notes <- r.Params }})
	session, err := client.Connect(bounded(t), &mcp.StreamableClientTransport{Endpoint: server.URL + "/mcp", HTTPClient: http.DefaultClient}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	params := &mcp.CallToolParams{Name: "two"}
	params.SetProgressToken("p")
	if res, err := session.CallTool(bounded(t), params); err != nil || res.IsError {
		t.Fatalf("got %+v, %v", res, err)
	}
	var got []string
	for last := 0.0; last < 2; {
		n := <-notes
		if n.Progress <= last || n.Total != 2 {
			t.Errorf("%v of %v after %v", n.Progress, n.Total, last)
		}
		last = n.Progress
		got = append(got, fmt.Sprintf("%.1f %s", n.Progress, n.Message))
	}
	if want := []string{"0.3 a: a third", "0.6 a: more", "1.0 a", "1.3 b: 1: a third", "1.6 b: 1: more", "2.0 b: 1"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
