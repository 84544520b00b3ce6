package a2atool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/toolcrib/toolcrib/tools"
)

func TestDescription(t *testing.T) {
	s := serveAgent(t, "JSONRPC 1.0", func(c *a2a.AgentCard) {
		c.Signatures = []a2a.AgentCardSignature{{Protected: "eyJhbGciOiJFUzI1NiJ9", Signature: "c2ln"}}
	})
	cfg := local(s.URL)
	cfg.TrustTier, cfg.Latency = 3, 2*time.Second
	cfg.ToolPolicies = map[string]tools.ToolPolicy{"act": {TimeoutMS: 120_000}}
	p := open(t, cfg)
	cat := catalogOf(t, p)
	d, ok := cat.Resolve("test_act")
	if !ok {
		t.Fatal("no tool test_act")
	}
	got := d.Tool
	if got.Namespace != "test" || got.Transport != tools.TransportA2A || got.SourceName != "act" || got.Title != "Act" ||
		got.LatencyHint != 2*time.Second || got.Version != "1.2.3" || got.Source != "a2a:test" || got.Policy.TimeoutMS != 120_000 {
		t.Errorf("got %+v", got)
	}
	if got.SideEffects != "" || got.Safety.OpenWorld != tools.Yes || got.Safety.ReadOnly != tools.Unset {
		t.Errorf("effects are not left open: %q %+v", got.SideEffects, got.Safety)
	}
	if !slices.Equal(got.Tags, []string{"demo", "trust_tier:3"}) {
		t.Errorf("tags %v", got.Tags)
	}
	for _, want := range []string{"Acts.", `agent "Test Agent"`, "- echo hello"} {
		if !strings.Contains(got.Description, want) {
			t.Errorf("the description lacks %q: %s", want, got.Description)
		}
	}
	if len(got.Examples) != 1 || got.Examples[0].Args["message"] != "echo hello" {
		t.Errorf("examples %+v", got.Examples)
	}
	st := p.Status()
	if st.Binding != "JSONRPC" || st.Protocol != "1.0" || st.Tools != 1 || !st.Streaming || st.Name != "Test Agent" {
		t.Errorf("status %+v", st)
	}
	if !strings.Contains(string(st.Card), `"signatures":[{"protected":"eyJhbGciOiJFUzI1NiJ9"`) {
		t.Errorf("the card as published is not kept: %s", st.Card)
	}
}

func TestSchemaFollowsTheModes(t *testing.T) {
	for _, c := range []struct {
		modes      []string
		properties []string
		required   []string
	}{
		{nil, []string{"context_id", "data", "files", "message"}, []string{"message"}},
		{[]string{"text"}, []string{"context_id", "message"}, []string{"message"}},
		{[]string{"text/plain", "application/json"}, []string{"context_id", "data", "message"}, []string{"message"}},
		{[]string{"application/json; charset=utf-8"}, []string{"context_id", "data"}, []string{"data"}},
		{[]string{"image/png", "audio/*"}, []string{"context_id", "files"}, []string{"files"}},
		{[]string{"image/png", "application/ld+json"}, []string{"context_id", "data", "files"}, nil},
		{[]string{"*/*"}, []string{"context_id", "data", "files", "message"}, []string{"message"}},
	} {
		var schema struct {
			Properties map[string]any
			Required   []string
		}
		if err := json.Unmarshal(modesOf(c.modes).schema(), &schema); err != nil {
			t.Fatal(err)
		}
		var names []string
		for n := range schema.Properties {
			names = append(names, n)
		}
		slices.Sort(names)
		if !slices.Equal(names, c.properties) || !slices.Equal(schema.Required, c.required) {
			t.Errorf("%v: properties %v, required %v", c.modes, names, schema.Required)
		}
	}
}

func TestOddSkills(t *testing.T) {
	s := serveAgent(t, "HTTP+JSON 1.0", func(c *a2a.AgentCard) {
		long := strings.Repeat("x", 300)
		c.Skills = []a2a.AgentSkill{
			{ID: "Résumé: für alle (2)!"}, {ID: "Resume: fur alle (2)!"}, {ID: "日本語", Name: "言語"},
			{ID: ""}, {ID: "twice", Name: "One"}, {ID: "twice", Name: "Two"}, {ID: long, Examples: slices.Repeat([]string{long}, 30)},
		}
	})
	p := open(t, local(s.URL))
	cat := catalogOf(t, p)
	var names []string
	for _, tool := range cat.List(tools.CatalogFilter{}) {
		names = append(names, tool.Name)
		if err := tools.CheckName(tool.Name); err != nil {
			t.Error(err)
		}
	}
	if len(names) != 5 {
		t.Errorf("tools %v", names)
	}
	var refused []string
	for _, r := range p.Refused() {
		refused = append(refused, r.Err.Error())
	}
	if want := []string{"skill 4 of the card has no id", "skill 6 of the card has the id of another one"}; !slices.Equal(refused, want) {
		t.Errorf("refused %q", refused)
	}
	for _, name := range names {
		if r, err := tools.Invoke(caller(t, "a", "s", nil), cat, name, say("echo x")); err != nil || r.Text() != "echo: x" {
			t.Errorf("%s: %v %v", name, r.Text(), err)
		}
	}
}

// Without a configured name the agent's own is taken, and kept.
func TestNameOfTheCard(t *testing.T) {
	s := serveAgent(t, "JSONRPC 1.0", func(c *a2a.AgentCard) { c.Name = "  Weather & Wind – Bot! " })
	cfg := local(s.URL)
	cfg.Name = ""
	p := open(t, cfg)
	cat := catalogOf(t, p)
	if _, ok := cat.Resolve("weather_wind_bot_act"); !ok {
		t.Errorf("tools: %v", tools.VisibleNames(cat, tools.CatalogFilter{}))
	}
	if got, want := string(p.SourceID()), "a2a:"+strings.TrimPrefix(s.URL, "http://"); got != want {
		t.Errorf("source %s, want %s", got, want)
	}
	s.setCard(func(c *a2a.AgentCard) { c.Name = "Another" })
	list, err := p.Discover(t.Context())
	if err != nil || list[0].Tool.Name != "weather_wind_bot_act" {
		t.Errorf("after a change of name: %v %v", list, err)
	}
}

// cardHandler serves a card that changes.
type cardHandler struct {
	skills atomic.Int64
	broken atomic.Bool
	reads  atomic.Int64
}

func (h *cardHandler) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h.reads.Add(1)
	if h.broken.Load() {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	card := testCard("https://agent.example/rpc", "JSONRPC", "1.0")
	for i := range h.skills.Load() {
		card.Skills = append(card.Skills, a2a.AgentSkill{ID: fmt.Sprintf("more_%d", i), Description: "More."})
	}
	_ = json.NewEncoder(w).Encode(card)
}

func TestCardIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &cardHandler{}
		p, err := New(Config{Name: "test", URL: "https://agent.example", CardTTL: time.Minute,
			Wrap: func(http.RoundTripper) http.RoundTripper { return handlerTransport{h} }})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close(context.Background())
		var told atomic.Int64
		p.OnChange(func() { told.Add(1) })
		found := func() int {
			list, err := p.Discover(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return len(list)
		}
		if err := p.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := found(); n != 1 || h.reads.Load() != 1 {
			t.Errorf("%d tools after %d readings", n, h.reads.Load())
		}
		time.Sleep(5*time.Minute + time.Second)
		if changes := told.Load(); changes != 0 || h.reads.Load() != 6 {
			t.Errorf("unchanged: %d changes after %d readings", changes, h.reads.Load())
		}
		h.skills.Store(2)
		time.Sleep(time.Minute)
		if changes := told.Load(); changes != 1 || found() != 3 || h.reads.Load() != 7 {
			t.Errorf("changed: %d changes after %d readings", changes, h.reads.Load())
		}
		h.broken.Store(true)
		time.Sleep(time.Minute)
		if st := p.Status(); told.Load() != 1 || !strings.Contains(st.LastError, "HTTP 503") || st.Card == nil {
			t.Errorf("broken: %+v", st)
		}
		h.broken.Store(false)
		time.Sleep(time.Minute)
		if st := p.Status(); told.Load() != 1 || st.LastError != "" {
			t.Errorf("well again: %+v", st)
		}
	})
}

// serveCard serves a card at a path, and nothing else.
func serveCard(t *testing.T, path, body string) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestWhereTheCardIs(t *testing.T) {
	const card = `{"name":"Old","url":"https://agent.example/","skills":[{"id":"a","name":"A","description":"d","tags":[]}]}`
	for path, below := range map[string]string{
		"/.well-known/agent.json":               "",
		"/agents/x/.well-known/agent-card.json": "/agents/x",
		"/anywhere/card.json":                   "/anywhere/card.json",
	} {
		p := open(t, local(serveCard(t, path, card)+below))
		list, err := p.Discover(t.Context())
		if err != nil || len(list) != 1 {
			t.Errorf("%s: %v %v", path, list, err)
			continue
		}
		if st := p.Status(); st.Binding != "JSONRPC" || st.Protocol != "0.3" {
			t.Errorf("%s: %+v", path, st)
		}
	}
}

func TestUselessCards(t *testing.T) {
	iface := func(url, binding string) string {
		return fmt.Sprintf(`{"name":"A","skills":[],"supportedInterfaces":[{"url":%q,"protocolBinding":%q,"protocolVersion":"1.0"}]}`, url, binding)
	}
	for body, want := range map[string]string{
		`<html>`:                                 "not JSON",
		`{}`:                                     "no name",
		`[]`:                                     "its card cannot be used",
		`{"name":"A"}`:                           "no interface that can be used",
		iface("http://agent.example", "JSONRPC"): "plain http to agent.example is refused",
		iface("https://10.0.0.1/", "JSONRPC"):    "10.0.0.1 is private",
		iface("https://u:p@a.example/", "JSONRPC"): "without a user name",
		iface("https://a.example/", "SMTP"):        "binding is not known",
		strings.Repeat(" ", maxCardBytes+1):        "longer than",
	} {
		p := open(t, local(serveCard(t, "/.well-known/agent-card.json", body)))
		err := p.Connect(t.Context())
		var te *tools.Error
		if !errors.As(err, &te) || te.Class != tools.ErrClassPermanent || !strings.Contains(te.Message, want) {
			t.Errorf("%.60s: %v", body, err)
		}
	}
}

// A skill that cannot be read is refused alone.
func TestSkillThatCannotBeRead(t *testing.T) {
	const card = `{"name":"A","supportedInterfaces":[{"url":"http://127.0.0.1:1/","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],` +
		`"skills":[{"id":"a","name":"a"},{"id":5},"no skill",{"id":"b","tags":"x"},{"id":"c","name":"c"}]}`
	p := open(t, local(serveCard(t, "/.well-known/agent-card.json", card)))
	list, err := p.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range list {
		got = append(got, d.Tool.SourceName)
	}
	if !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("skills %v", got)
	}
	var refused []string
	for _, r := range p.Refused() {
		refused = append(refused, r.Name)
		if !strings.Contains(r.Err.Error(), r.Name+" of the card cannot be read") {
			t.Error(r.Err)
		}
	}
	if !slices.Equal(refused, []string{"skill 2", "skill 3", "skill 4"}) {
		t.Errorf("refused %v", refused)
	}
}

func FuzzParseCard(f *testing.F) {
	f.Add([]byte(`{"name":"A","skills":[{"id":5},{"id":"x"},null]}`))
	f.Add([]byte(`{"name":"A","skills":[{"id":"x","security":[{"a":[]}]}],"supportedInterfaces":[null,{"url":"x"}]}`))
	f.Add([]byte(`{"name":"A","url":"u","securitySchemes":{"k":{"type":"apiKey","in":"header","name":"n"}},"security":[{"k":[]}]}`))
	f.Fuzz(func(_ *testing.T, b []byte) {
		card, faults, err := parseCard(b)
		if err == nil {
			p, _ := New(local("http://127.0.0.1:1"))
			_, _ = p.describe(&agent{card: card, faults: faults})
			_, _ = p.usable(card)
		}
	})
}
