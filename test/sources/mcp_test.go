package sources

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcrib/toolcrib/test/control"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/mcptool"
	"github.com/toolcrib/toolcrib/tools/toolstest"
)

// A process of this test binary that has a desk is an MCP server on its standard input and output, and ends when the
// desk hangs up.
func TestMain(m *testing.M) {
	line, err := control.Dial()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if line != nil {
		os.Exit(serveChild(line))
	}
	os.Exit(m.Run())
}

type (
	textArgs struct {
		Text string `json:"text"`
	}
	sizeArgs struct {
		N int `json:"n"`
	}
	none struct{}
)

// newMCPServer returns a server of the Go SDK. It reports what happens to calls of "wait".
func newMCPServer(report func(string)) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "suite", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in textArgs) (*mcp.CallToolResult, textArgs, error) {
		return nil, in, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "big"}, func(_ context.Context, _ *mcp.CallToolRequest, in sizeArgs) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat("x", in.N)}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
		report("waiting")
		<-ctx.Done()
		report("cancelled")
		return nil, nil, ctx.Err()
	})
	mcp.AddTool(s, &mcp.Tool{Name: "refuse"}, func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
		return nil, nil, errors.New("I will not")
	})
	for name, code := range map[string]int64{"misuse": jsonrpc.CodeInvalidParams, "broken": jsonrpc.CodeInternalError} {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return nil, &jsonrpc.Error{Code: code, Message: "not like this"}
			})
	}
	return s
}

func grow(s *mcp.Server) {
	mcp.AddTool(s, &mcp.Tool{Name: "grown"}, func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
		return nil, nil, nil
	})
}

func serveChild(line *control.Line) int {
	s := newMCPServer(func(event string) { line.Report("%s", event) })
	go func() {
		line.Orders(func(string) { grow(s) })
		os.Exit(1)
	}()
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		return 1
	}
	return 0
}

// events are what a server saw.
type events struct{ waiting, cancelled chan struct{} }

func newEvents() events {
	return events{make(chan struct{}, 64), make(chan struct{}, 64)}
}

func (e events) report(event string) {
	switch event {
	case "waiting":
		e.waiting <- struct{}{}
	case "cancelled":
		e.cancelled <- struct{}{}
	}
}

// mcpSource is what the server offers, whatever the way to it.
func mcpSource(p tools.ToolProvider, e events) *toolstest.Source {
	probe := func(name, args string) toolstest.Probe {
		return toolstest.Probe{Name: "suite_" + name, Args: json.RawMessage(args)}
	}
	return &toolstest.Source{
		Provider: p,
		Echo: func(text string) toolstest.Probe {
			args, _ := json.Marshal(textArgs{text}) // a text always encodes
			return probe("echo", string(args))
		},
		Big:       func(n int) toolstest.Probe { return probe("big", fmt.Sprintf(`{"n":%d}`, n)) },
		Wait:      probe("wait", `{}`),
		Bad:       probe("echo", `{"text":7}`),
		Waiting:   e.waiting,
		Cancelled: e.cancelled,
		Failures: []toolstest.Failure{
			{Title: "an answer", Probe: probe("refuse", `{}`), Answer: true},
			{Title: "invalid params", Probe: probe("misuse", `{}`), Class: tools.ErrClassPermanent, Delivery: tools.Answered},
			{Title: "internal error", Probe: probe("broken", `{}`), Class: tools.ErrClass5xx, Delivery: tools.Answered},
		},
	}
}

func newMCPTool(t *testing.T, cfg mcptool.Config) *mcptool.Server {
	t.Helper()
	cfg.Name = "suite"
	s, err := mcptool.New(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMCPOverStdio(t *testing.T) {
	for _, version := range []string{"2025-06-18", ""} {
		t.Run("version "+version, func(t *testing.T) {
			toolstest.RunSource(t, toolstest.SourceCase{Open: func(t *testing.T) *toolstest.Source { return stdioSource(t, version) }})
		})
	}
}

func stdioSource(t *testing.T, version string) *toolstest.Source {
	t.Helper()
	e := newEvents()
	desk := control.Open(t, e.report)
	program := filepath.Join(t.TempDir(), "server")
	install(t, program)
	source := mcpSource(newMCPTool(t, mcptool.Config{Command: []string{program}, Version: version,
		Env: map[string]string{control.Variable: desk.Addr(), "API_KEY": "s3cr3t-key"}}), e)
	source.Stop = func() {
		if err := os.Remove(program); err != nil {
			t.Fatal(err)
		}
		desk.HangUp()
	}
	source.Start = func() { install(t, program) }
	source.Change = func() string { desk.Order(t, "grow"); return "suite_grown" }
	source.Secrets = []string{"s3cr3t"}
	return source
}

func install(t *testing.T, program string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
}

func TestMCPOverHTTP(t *testing.T) {
	for name, stateless := range map[string]bool{"sessions": false, "stateless": true} {
		t.Run(name, func(t *testing.T) {
			toolstest.RunSource(t, toolstest.SourceCase{Open: func(t *testing.T) *toolstest.Source { return httpSource(t, stateless) }})
		})
	}
}

func httpSource(t *testing.T, stateless bool) *toolstest.Source {
	t.Helper()
	e := newEvents()
	var own *mcp.Server // of the current incarnation
	at := toolstest.NewHTTPServer(t, func() (http.Handler, func()) {
		s := newMCPServer(e.report)
		for name, status := range statuses {
			mcp.AddTool(s, &mcp.Tool{Name: name, Description: fmt.Sprint(status)}, func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
				return nil, nil, errors.New("this is answered on the way")
			})
		}
		own = s
		handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
			&mcp.StreamableHTTPOptions{Stateless: stateless, PropagateRequestCancellation: true})
		return refusing(handler), func() {
			for session := range s.Sessions() {
				session.Close()
			}
		}
	})
	source := mcpSource(newMCPTool(t, mcptool.Config{URL: at.URL + "/mcp?key=s3cr3t-key", Headers: map[string]string{"Authorization": "Bearer s3cr3t-token"}}), e)
	source.Stop, source.Start = at.Stop, func() { at.Start(t) }
	source.Change = func() string { grow(own); return "suite_grown" }
	source.Secrets = []string{"s3cr3t"}
	source.Failures = append(source.Failures,
		toolstest.Failure{Title: "503", Probe: toolstest.Probe{Name: "suite_unavailable"}, Class: tools.ErrClass5xx, Delivery: tools.Answered, RetryAfter: 3 * time.Second},
		toolstest.Failure{Title: "502", Probe: toolstest.Probe{Name: "suite_gateway"}, Class: tools.ErrClass5xx, Delivery: tools.DeliveryUnknown},
		toolstest.Failure{Title: "429", Probe: toolstest.Probe{Name: "suite_busy"}, Class: tools.ErrClassTransient, Delivery: tools.NotDelivered, RetryAfter: 7 * time.Second},
		toolstest.Failure{Title: "403", Probe: toolstest.Probe{Name: "suite_forbidden"}, Class: tools.ErrClassPermanent, Delivery: tools.NotDelivered})
	return source
}

// statuses are the tools whose calls are answered with an HTTP status.
var statuses = map[string]int{"unavailable": 503, "gateway": 502, "busy": 429, "forbidden": 403}

// refusing answers calls of some tools before the server sees them.
func refusing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var m struct {
			Method string
			Params struct{ Name string }
		}
		_ = json.Unmarshal(body, &m) // what it is not, the server says
		status, refused := statuses[m.Params.Name]
		if m.Method != "tools/call" || !refused {
			r.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(w, r)
			return
		}
		refuse(w, r, status)
	})
}

// refuse says what it was sent, as some servers do.
func refuse(w http.ResponseWriter, r *http.Request, status int) {
	if wait := map[int]string{429: "7", 503: "3"}[status]; wait != "" {
		w.Header().Set("Retry-After", wait)
	}
	http.Error(w, "no: "+r.URL.String()+" "+r.Header.Get("Authorization"), status)
}
