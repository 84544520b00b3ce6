package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"github.com/toolcrib/toolcrib/gateway"
)

// echoAgent answers what it was told.
type echoAgent struct{}

func (echoAgent) Execute(_ context.Context, e *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		yield(a2a.NewMessageForTask(a2a.MessageRoleAgent, e, e.Message.Parts...), nil)
	}
}

func (echoAgent) Cancel(context.Context, *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(func(a2a.Event, error) bool) {}
}

// agent serves an A2A agent that answers only those who know the secret, and
// that has as many skills as the counter says.
func agent(t *testing.T, secret string, skills *atomic.Int64) string {
	t.Helper()
	handler := a2asrv.NewJSONRPCHandler(a2asrv.NewHandler(echoAgent{}, a2asrv.WithLogger(slog.New(slog.DiscardHandler))))
	var url string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/.well-known/agent-card.json":
			card := a2a.AgentCard{Name: "Echo Agent", SupportedInterfaces: []*a2a.AgentInterface{a2a.NewAgentInterface(url, a2a.TransportProtocolJSONRPC)}}
			for i := range skills.Load() {
				card.Skills = append(card.Skills, a2a.AgentSkill{ID: fmt.Sprintf("say%d", i+1), Description: "Says it."})
			}
			_ = json.NewEncoder(w).Encode(card)
		case r.Header.Get("Authorization") != "Bearer "+secret:
			http.Error(w, "who are you?", http.StatusUnauthorized)
		default:
			handler.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	url = srv.URL
	return url
}

func TestAgentsAreSources(t *testing.T) {
	t.Setenv("AGENT_TOKEN", "agent-secret")
	var skills atomic.Int64
	skills.Store(1)
	url := agent(t, "agent-secret", &skills)
	const auth = `auth: {kind: bearer, secret: "${AGENT_TOKEN}"}`
	g := open(t, parse(t, fmt.Sprintf(`
tools:
  a2a_peers:
    - {name: helper, url: %q, allow_insecure_loopback: true, trust_tier: 2, agent_card_ttl: 1s, %s}
    - {url: %q, allow_insecure_loopback: true, %s}
    - {name: gone, url: "https://127.0.0.1:1", allow_private: true}
`, url, auth, url+"/", auth)), nil)
	if got := names(t, g); !slices.Equal(got, []string{"echo_agent_say1", "helper_say1"}) {
		t.Fatalf("tools %v", got)
	}
	for _, name := range names(t, g) {
		if got := call(t, g, name, `{"message":"hello"}`); !strings.Contains(got, "hello") {
			t.Errorf("%s answered %s", name, got)
		}
	}
	for _, s := range g.Sources() {
		if s.Kind != "a2a" || (s.State == gateway.SourceReady) == (s.Name == "gone") {
			t.Errorf("source %+v", s)
		}
	}
	skills.Store(3)
	await(t, g, func() bool { return slices.Contains(names(t, g), "helper_say3") })
}

func TestAgentsThatCannotBe(t *testing.T) {
	for config, want := range map[string]string{
		`{url: "http://agent.example"}`:                                               "plain http to agent.example",
		`{url: "https://10.0.0.1"}`:                                                   "set allow_private",
		`{url: "https://a.example", auth: {kind: api_key, secret: "${HOME}"}}`:        "api_key needs header, query or cookie",
		`{name: x, url: "https://a.example"}, {name: x, url: "https://b.example"}`:    "is the name of tools.a2a_peers[0] too",
		`{url: "https://a.example", auth: {kind: bearer, secret: secret}}`:            "not a reference to a secret",
		`{url: "https://a.example", auth: {kind: bearer, secret: "${NO_SUCH_NAME}"}}`: "NO_SUCH_NAME",
	} {
		cfg, err := gateway.Parse("toolcrib.yaml", []byte("tools: {a2a_peers: ["+config+"]}"))
		if err == nil {
			_, err = gateway.Open(bounded(t), cfg, nil)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", config, err)
		}
	}
}
