package sources

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/a2atool"
	"github.com/toolcrib/toolcrib/tools/toolstest"
)

// An agent is served by the A2A library. The first word of a message says what it does.
type agent struct {
	events
	streaming bool
	binding   a2a.TransportProtocol
	place     *toolstest.HTTPServer
	grown     atomic.Bool
}

func newAgent(t *testing.T, binding a2a.TransportProtocol, streaming bool) *agent {
	t.Helper()
	a := &agent{events: newEvents(), streaming: streaming, binding: binding}
	a.place = toolstest.NewHTTPServer(t, func() (http.Handler, func()) {
		stop := make(chan struct{})
		handler := a2asrv.NewHandler(&executor{agent: a, stop: stop}, a2asrv.WithLogger(slog.New(slog.DiscardHandler)))
		mux := http.NewServeMux()
		mux.Handle("/rpc", refusingMessages(a2asrv.NewJSONRPCHandler(handler)))
		mux.Handle("/rest/", refusingMessages(http.StripPrefix("/rest", a2asrv.NewRESTHandler(handler))))
		mux.HandleFunc("/.well-known/agent-card.json", func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(a.card()) // who is gone does not read
		})
		return mux, func() { close(stop) }
	})
	return a
}

func (a *agent) card() *a2a.AgentCard {
	path := map[a2a.TransportProtocol]string{"JSONRPC": "/rpc", "HTTP+JSON": "/rest"}[a.binding]
	card := &a2a.AgentCard{
		Name: "Suite", Description: "It does what the first word says.", Version: "1",
		SupportedInterfaces: []*a2a.AgentInterface{{URL: a.place.URL + path, ProtocolBinding: a.binding, ProtocolVersion: "1.0"}},
		Capabilities:        a2a.AgentCapabilities{Streaming: a.streaming},
		DefaultInputModes:   []string{"text/plain"},
		DefaultOutputModes:  []string{"text/plain"},
		Skills:              []a2a.AgentSkill{{ID: "act", Name: "Act", Description: "Acts.", Tags: []string{"demo"}}},
	}
	if a.grown.Load() {
		card.Skills = append(card.Skills, a2a.AgentSkill{ID: "grown", Name: "Grown", Description: "Is new.", Tags: []string{"demo"}})
	}
	return card
}

// An executor is one incarnation of the agent.
type executor struct {
	*agent
	stop chan struct{}
}

func (x *executor) Execute(ctx context.Context, e *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	text := ""
	for _, part := range e.Message.Parts {
		text += part.Text()
	}
	word, rest, _ := strings.Cut(text, " ")
	return func(yield func(a2a.Event, error) bool) {
		if !yield(a2a.NewSubmittedTask(e, e.Message), nil) {
			return
		}
		answer := rest
		switch word {
		case "big":
			n, _ := strconv.Atoi(rest) // a size that is none is nothing
			answer = strings.Repeat("x", n)
		case "fail":
			yield(a2a.NewStatusUpdateEvent(e, a2a.TaskStateFailed, a2a.NewMessageForTask(a2a.MessageRoleAgent, e, a2a.NewTextPart("no luck"))), nil)
			return
		case "wait":
			x.report("waiting")
			select {
			case <-ctx.Done():
			case <-x.stop: // the library keeps a task until it has ended
				yield(a2a.NewStatusUpdateEvent(e, a2a.TaskStateFailed, nil), nil)
			}
			return
		}
		if yield(a2a.NewArtifactEvent(e, a2a.NewTextPart(answer)), nil) {
			yield(a2a.NewStatusUpdateEvent(e, a2a.TaskStateCompleted, nil), nil)
		}
	}
}

func (x *executor) Cancel(_ context.Context, e *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	x.report("cancelled")
	return func(yield func(a2a.Event, error) bool) {
		yield(a2a.NewStatusUpdateEvent(e, a2a.TaskStateCanceled, nil), nil)
	}
}

// refusingMessages answers "status N" with that status of HTTP, and does not answer "status 0".
func refusingMessages(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		_, rest, found := bytes.Cut(body, []byte(`"status `))
		if !found {
			r.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(w, r)
			return
		}
		status, _ := strconv.Atoi(string(rest[:bytes.IndexByte(rest, '"')])) // what is no number is 0
		if status == 0 {
			panic(http.ErrAbortHandler)
		}
		refuse(w, r, status)
	})
}

// bigOverA2A is the size of the large result, in bytes: the library decodes one several times, and a task that is polled is
// sent anew with each poll.
const bigOverA2A = 1 << 20

func TestA2A(t *testing.T) {
	for _, binding := range []a2a.TransportProtocol{"JSONRPC", "HTTP+JSON"} {
		for _, streaming := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s streaming %v", binding, streaming), func(t *testing.T) {
				toolstest.RunSource(t, toolstest.SourceCase{MaxBig: bigOverA2A, Open: func(t *testing.T) *toolstest.Source { return a2aSource(t, newAgent(t, binding, streaming)) }})
			})
		}
	}
}

func a2aSource(t *testing.T, a *agent) *toolstest.Source {
	t.Helper()
	p, err := a2atool.New(a2atool.Config{Name: "suite", URL: a.place.URL, AllowInsecureLoopback: true, CardTTL: time.Second,
		Auth: &a2atool.Auth{Kind: a2atool.AuthBearer, Secret: func(context.Context) (string, error) { return "s3cr3t-token", nil }}})
	if err != nil {
		t.Fatal(err)
	}
	say := func(text string) toolstest.Probe {
		args, _ := json.Marshal(map[string]string{"message": text}) // a text always encodes
		return toolstest.Probe{Name: "suite_act", Args: args}
	}
	return &toolstest.Source{
		Provider:  p,
		Echo:      func(text string) toolstest.Probe { return say("echo " + text) },
		Big:       func(n int) toolstest.Probe { return say(fmt.Sprint("big ", n)) },
		Wait:      say("wait"),
		Bad:       toolstest.Probe{Name: "suite_act", Args: json.RawMessage(`{"message":7}`)},
		Waiting:   a.waiting,
		Cancelled: a.cancelled,
		Stop:      a.place.Stop,
		Start:     func() { a.place.Start(t) },
		Change:    func() string { a.grown.Store(true); return "suite_grown" },
		Secrets:   []string{"s3cr3t"},
		Failures: []toolstest.Failure{
			{Title: "a failed task", Probe: say("fail"), Answer: true},
			{Title: "503", Probe: say("status 503"), Class: tools.ErrClass5xx, Delivery: tools.Answered, RetryAfter: 3 * time.Second},
			{Title: "502", Probe: say("status 502"), Class: tools.ErrClass5xx, Delivery: tools.DeliveryUnknown},
			{Title: "429", Probe: say("status 429"), Class: tools.ErrClassTransient, Delivery: tools.NotDelivered, RetryAfter: 7 * time.Second},
			{Title: "403", Probe: say("status 403"), Class: tools.ErrClassPermanent, Delivery: tools.Answered},
			{Title: "no answer", Probe: say("status 0"), Class: tools.ErrClassTransient, Delivery: tools.DeliveryUnknown},
		},
	}
}
