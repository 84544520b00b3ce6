package sources

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/mcptool"
	"github.com/toolcrib/toolcrib/tools/toolstest"
)

// controlVariable makes this test binary an MCP server on its standard input and output. It holds the address
// that the server reports to and is told by; when that connection ends, the server ends.
const controlVariable = "SOURCES_TEST_CONTROL"

func TestMain(m *testing.M) {
	if addr := os.Getenv(controlVariable); addr != "" {
		os.Exit(serveChild(addr))
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

// serveChild is the life of the child process.
func serveChild(addr string) int {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s := newMCPServer(func(event string) { fmt.Fprintln(conn, event) })
	go func() {
		orders := bufio.NewScanner(conn)
		for orders.Scan() {
			grow(s)
		}
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
	if event == "waiting" {
		e.waiting <- struct{}{}
	} else {
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
	c := newControl(t)
	source := mcpSource(newMCPTool(t, mcptool.Config{Command: []string{c.program}, Version: version,
		Env: map[string]string{controlVariable: c.listener.Addr().String(), "API_KEY": "s3cr3t-key"}}), c.events)
	source.Stop, source.Start = func() { c.remove(t); c.hangUp() }, func() { c.install(t) }
	source.Change = func() string {
		c.mu.Lock()
		defer c.mu.Unlock()
		fmt.Fprintln(c.conn, "grow")
		return "suite_grown"
	}
	source.Secrets = []string{"s3cr3t"}
	return source
}

// A control is this side of the children of one test.
type control struct {
	events
	listener net.Listener
	program  string // a link to this binary

	mu   sync.Mutex
	conn net.Conn // of the last child
}

func newControl(t *testing.T) *control {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &control{events: newEvents(), listener: listener, program: filepath.Join(t.TempDir(), "server")}
	c.install(t)
	var work sync.WaitGroup
	work.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			c.mu.Lock()
			c.conn = conn
			c.mu.Unlock()
			work.Go(func() { c.listen(conn) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		c.hangUp()
		work.Wait()
	})
	return c
}

func (c *control) listen(conn net.Conn) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		c.report(lines.Text())
	}
}

func (c *control) hangUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		c.conn.Close()
	}
}

func (c *control) install(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, c.program); err != nil {
		t.Fatal(err)
	}
}

func (c *control) remove(t *testing.T) {
	t.Helper()
	if err := os.Remove(c.program); err != nil {
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
	at := newPlace(t, func() (http.Handler, func()) {
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
	source := mcpSource(newMCPTool(t, mcptool.Config{URL: at.url() + "/mcp?key=s3cr3t-key", Headers: map[string]string{"Authorization": "Bearer s3cr3t-token"}}), e)
	source.Stop, source.Start = at.stop, func() { at.start(t) }
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
