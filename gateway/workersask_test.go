package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcrib/toolcrib/gateway/gatewaytest"
	"github.com/toolcrib/toolcrib/registry/provider"
	streams "github.com/toolcrib/toolcrib/registry/stream/connect"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
)

// A tool on a worker asks the client of the MCP endpoint, in both eras.
func TestWorkersAskTheClient(t *testing.T) {
	g := gatewaytest.Open(t, gatewaytest.Parse(t, fmt.Sprintf(embedded, t.TempDir(), "")), nil)
	at, _ := g.WorkersAddress()
	cat := tools.NewCatalog()
	const question = `{"message":"How many?","requestedSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}`
	err := inproc.RegisterFunc(cat, "shop.order", func(ctx context.Context, _ struct{}) (json.RawMessage, error) {
		answer, err := tools.CallFrom(ctx).Ask(ctx, tools.Question{Method: "elicitation/create", Params: json.RawMessage(question)})
		return answer.Result, err
	}, tools.WithSideEffect(tools.SideEffectWrite))
	if err != nil {
		t.Fatal(err)
	}
	client, err := streams.Client(t.Context(), at.URL, &streams.Options{TokenFile: at.TokenFile})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- provider.Serve(ctx, client, "shop", provider.FromCatalog(cat), provider.Options{Pong: provider.Pong(client, "")})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = client.Close()
	})
	awaitTool(t, g, "shop.order", true)
	web := httptest.NewServer(g.Handler())
	t.Cleanup(web.Close)
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) { order(t, web.URL+"/mcp", version) })
	}
}

func order(t *testing.T, url, version string) {
	asked := 0
	opts := &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		asked++
		if r.Params.Message != "How many?" {
			t.Errorf("asked %q", r.Params.Message)
		}
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"n": 7}}, nil
	}}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, opts).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: url}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "shop.order", Arguments: map[string]any{}})
	if err != nil || res.IsError {
		t.Fatalf("got %+v, %v", res, err)
	}
	got, _ := json.Marshal(res.StructuredContent)
	var answer struct {
		Action  string
		Content struct{ N int }
	}
	if err := json.Unmarshal(got, &answer); err != nil || answer.Action != "accept" || answer.Content.N != 7 || asked != 1 {
		t.Errorf("the tool got %s after %d questions: %v", got, asked, err)
	}
}
