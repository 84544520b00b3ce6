package sources

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/httptool"
	"github.com/toolcrib/toolcrib/tools/toolstest"
)

// an api is the HTTP API that both kinds of HTTP sources call.
type api struct {
	events
	place *toolstest.HTTPServer
	grown atomic.Bool
}

func newAPI(t *testing.T) *api {
	t.Helper()
	a := &api{events: newEvents()}
	a.place = toolstest.NewHTTPServer(t, func() (http.Handler, func()) { return a.handler(), nil })
	return a
}

func (a *api) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /openapi.yaml", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, a.document()) })
	mux.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) {
		var in textArgs
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(in)
	})
	mux.HandleFunc("GET /big", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprint(w, strings.Repeat("x", n))
	})
	mux.HandleFunc("GET /wait", func(_ http.ResponseWriter, r *http.Request) {
		a.report("waiting")
		<-r.Context().Done()
		a.report("cancelled")
	})
	mux.HandleFunc("GET /status/{status}", func(w http.ResponseWriter, r *http.Request) {
		status, err := strconv.Atoi(r.PathValue("status"))
		if err != nil || status == 0 {
			panic(http.ErrAbortHandler) // the connection ends without an answer
		}
		refuse(w, r, status)
	})
	return mux
}

func (a *api) document() string {
	grown := ""
	if a.grown.Load() {
		grown = "  /grown: {get: {operationId: grown, responses: {}}}\n"
	}
	return `openapi: 3.1.0
info: {title: Suite, version: "1"}
servers: [{url: ` + a.place.URL + `}]
paths:
  /echo:
    post:
      operationId: echo
      requestBody:
        required: true
        content: {application/json: {schema: {type: object, properties: {text: {type: string}}, required: [text]}}}
  /big: {get: {operationId: big, parameters: [{name: n, in: query, schema: {type: integer}}]}}
  /wait: {get: {operationId: wait}}
  /status/{status}: {get: {operationId: status, parameters: [{name: status, in: path, required: true, schema: {type: integer}}]}}
` + grown
}

func (a *api) source(p tools.ToolProvider, echo func(text string) toolstest.Probe, bad string) *toolstest.Source {
	status := func(n int) toolstest.Probe {
		return toolstest.Probe{Name: "suite_status", Args: json.RawMessage(fmt.Sprintf(`{"status":%d}`, n))}
	}
	return &toolstest.Source{
		Provider: p,
		Echo:     echo,
		Big: func(n int) toolstest.Probe {
			return toolstest.Probe{Name: "suite_big", Args: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))}
		},
		Wait:      toolstest.Probe{Name: "suite_wait"},
		Bad:       toolstest.Probe{Name: "suite_echo", Args: json.RawMessage(bad)},
		Waiting:   a.waiting,
		Cancelled: a.cancelled,
		Stop:      a.place.Stop,
		Secrets:   []string{"s3cr3t"},
		Failures: []toolstest.Failure{
			{Title: "503", Probe: status(503), Class: tools.ErrClass5xx, Delivery: tools.Answered, RetryAfter: 3 * time.Second},
			{Title: "500", Probe: status(500), Class: tools.ErrClass5xx, Delivery: tools.Answered},
			{Title: "429", Probe: status(429), Class: tools.ErrClassTransient, Delivery: tools.NotDelivered, RetryAfter: 7 * time.Second},
			{Title: "404", Probe: status(404), Class: tools.ErrClassPermanent, Delivery: tools.Answered},
			{Title: "no answer", Probe: status(0), Class: tools.ErrClassTransient, Delivery: tools.DeliveryUnknown},
		},
	}
}

func TestOpenAPI(t *testing.T) {
	toolstest.RunSource(t, toolstest.SourceCase{Open: func(t *testing.T) *toolstest.Source {
		a := newAPI(t)
		p, err := httptool.NewOpenAPI(httptool.OpenAPIConfig{
			Name: "suite", Document: a.place.URL + "/openapi.yaml",
			Auth:    &httptool.Auth{Kind: httptool.AuthBearer, Secret: httptool.FixedSecret("s3cr3t-token")},
			Network: httptool.Network{AllowPrivate: true},
		})
		if err != nil {
			t.Fatal(err)
		}
		source := a.source(p, func(text string) toolstest.Probe {
			args, _ := json.Marshal(map[string]textArgs{"body": {text}}) // a text always encodes
			return toolstest.Probe{Name: "suite_echo", Args: args}
		}, `{"body":{"text":7}}`)
		source.Start = func() { a.place.Start(t) }
		source.Change = func() string { a.grown.Store(true); return "suite_grown" }
		return source
	}})
}

func TestManifest(t *testing.T) {
	toolstest.RunSource(t, toolstest.SourceCase{Open: func(t *testing.T) *toolstest.Source {
		a := newAPI(t)
		p, err := httptool.NewManifest(httptool.ManifestConfig{
			Name: "suite", Content: []byte(strings.ReplaceAll(manifest, "BASE", a.place.URL)),
			Secret:  func(string) (string, error) { return "s3cr3t-token", nil },
			Network: httptool.Network{AllowPrivate: true},
		})
		if err != nil {
			t.Fatal(err)
		}
		source := a.source(p, func(text string) toolstest.Probe {
			args, _ := json.Marshal(textArgs{text}) // a text always encodes
			return toolstest.Probe{Name: "suite_echo", Args: args}
		}, `{"text":7}`)
		source.Start = func() { a.place.Start(t) }
		return source
	}})
}

const manifest = `
auth:
  - {name: token, kind: bearer, secret: "${TOKEN}"}
tools:
  - name: suite_echo
    method: POST
    url_template: BASE/echo
    args_schema: {type: object, properties: {text: {type: string}}, required: [text]}
    auth_ref: token
  - name: suite_big
    method: GET
    url_template: BASE/big?n={{.Args.n}}
    args_schema: {type: object, properties: {n: {type: integer}}, required: [n]}
  - name: suite_wait
    method: GET
    url_template: BASE/wait
  - name: suite_status
    method: GET
    url_template: BASE/status/{{.Args.status}}
    args_schema: {type: object, properties: {status: {type: integer}}, required: [status]}
    auth_ref: token
`
