package a2atool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/a2atool"
)

// greeter is an agent that works on a task before it answers.
type greeter struct{}

func (greeter) Execute(_ context.Context, e *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		for _, event := range []a2a.Event{
			a2a.NewSubmittedTask(e, e.Message),
			a2a.NewArtifactEvent(e, a2a.NewTextPart("Good morning, "+e.Message.Parts[0].Text()+"!")),
			a2a.NewStatusUpdateEvent(e, a2a.TaskStateCompleted, nil),
		} {
			if !yield(event, nil) {
				return
			}
		}
	}
}

func (greeter) Cancel(context.Context, *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(func(a2a.Event, error) bool) {}
}

// serveGreeter serves the agent and its card.
func serveGreeter() *httptest.Server {
	mux := http.NewServeMux()
	srv := httptest.NewServer(mux)
	mux.Handle("/a2a", a2asrv.NewJSONRPCHandler(a2asrv.NewHandler(greeter{})))
	mux.Handle(a2asrv.WellKnownAgentCardPath, a2asrv.NewStaticAgentCardHandler(&a2a.AgentCard{
		Name:                "Greeter",
		Version:             "1.0.0",
		SupportedInterfaces: []*a2a.AgentInterface{a2a.NewAgentInterface(srv.URL+"/a2a", a2a.TransportProtocolJSONRPC)},
		Capabilities:        a2a.AgentCapabilities{Streaming: true},
		DefaultInputModes:   []string{"text/plain"},
		Skills:              []a2a.AgentSkill{{ID: "greet", Name: "Greet", Description: "Greets somebody.", Examples: []string{"Ada"}}},
	}))
	return srv
}

// An agent's skills are put into a catalog and called like any other tool.
func Example() {
	srv := serveGreeter()
	defer srv.Close()

	peer, err := a2atool.New(a2atool.Config{Name: "morning", URL: srv.URL, AllowInsecureLoopback: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	defer peer.Close(ctx)
	list, err := peer.Discover(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	cat := tools.NewCatalog().(tools.LiveCatalog)
	cat.SwapSource(peer.SourceID(), list)

	result, err := tools.Invoke(ctx, cat, "morning_greet", json.RawMessage(`{"message":"Ada"}`))
	fmt.Println(result.Text(), err)
	// Output: Good morning, Ada! <nil>
}
