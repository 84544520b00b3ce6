package large

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcrib/toolcrib/internal/peertest"
)

var megabytes = flag.Int("megabytes", 210, "size of the largest result")

const (
	inFlight = 64
	// others is the size of the results beside the largest.
	others     = 4 << 20
	maxProcess = 200 << 20
	// roleVariable makes a process of this test binary a server on its pipes.
	roleVariable = "LARGE_TEST_ROLE"
)

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) != "" {
		if err := newServer().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

type sizeArgs struct {
	Bytes int `json:"bytes"`
}

// newServer returns a server of the Go SDK whose tool answers with as much text as it is asked for, once all calls are there.
func newServer() *mcp.Server {
	var all sync.WaitGroup
	all.Add(inFlight)
	s := mcp.NewServer(&mcp.Implementation{Name: "large", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "text"}, func(_ context.Context, _ *mcp.CallToolRequest, args sizeArgs) (*mcp.CallToolResult, any, error) {
		all.Done()
		all.Wait()
		const row = "a row of \"text\", é\n"
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat(row, args.Bytes/len(row)+1)}}}, nil, nil
	})
	return s
}

// overHTTP serves a server over streamable HTTP.
func overHTTP(t *testing.T, opts *mcp.StreamableHTTPOptions) string {
	t.Helper()
	s := newServer()
	ts := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, opts))
	t.Cleanup(ts.Close)
	return fmt.Sprintf("url: %s", ts.URL)
}

// overSSE serves a server over the transport of revision 2024-11-05, on which all answers share a stream.
func overSSE(t *testing.T) string {
	t.Helper()
	s := newServer()
	ts := httptest.NewServer(mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(ts.Close)
	return fmt.Sprintf("transport_mode: sse, url: %s", ts.URL)
}

// One result of far more than the gateway may have, with sixty-three others of 4 MiB at the same time, never makes it large,
// whichever way they come.
func TestLargeResultsOfMCPServers(t *testing.T) {
	skipWhereUnmeasured(t)
	for name, reach := range map[string]func(t *testing.T) string{
		"stdio": func(*testing.T) string {
			return fmt.Sprintf("command: [%q], env: {%s: server}", os.Args[0], roleVariable)
		},
		"http, events": func(t *testing.T) string { return overHTTP(t, nil) },
		"http, json":   func(t *testing.T) string { return overHTTP(t, &mcp.StreamableHTTPOptions{JSONResponse: true}) },
		"sse":          overSSE,
	} {
		t.Run(name, func(t *testing.T) { measure(t, reach(t)) })
	}
}

func skipWhereUnmeasured(t *testing.T) {
	t.Helper()
	switch _, err := os.Stat("/proc/self/status"); {
	case testing.Short(), raceDetector:
		t.Skip("a short run leaves half a gigabyte alone, and the race detector takes minutes for it")
	case err != nil:
		t.Skip("only Linux tells how large a process was")
	}
}

// measure makes the calls through a gateway in front of a server, and looks at the size of the gateway.
func measure(t *testing.T, server string) {
	t.Helper()
	dir := peertest.Roomy(t)
	config := filepath.Join(dir, "toolcrib.yaml")
	text := "tools:\n  mcp_servers:\n  - {name: up, policy: {timeout_ms: 300000}, " + server + "}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := peertest.Start(t, exec.Command(peertest.Build(t, "./cmd/toolcrib"), "serve", "-c", config, "--listen", "127.0.0.1:0", "--data", filepath.Join(dir, "data")))
	url := p.Line(t, `^listening on (http://\S+)`)[1]
	client := mcp.NewClient(&mcp.Implementation{Name: "large-test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url + "/mcp", DisableStandaloneSSE: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	var calls sync.WaitGroup
	for i := range inFlight {
		size := others
		if i == 0 {
			size = *megabytes << 20
		}
		calls.Go(func() { call(t, session, size) })
	}
	calls.Wait()
	peak := memory(t, p.PID(), "VmHWM")
	t.Logf("the gateway had %d MiB at most, for a result of %d MiB and %d of %d", peak>>20, *megabytes, inFlight-1, others>>20)
	if peak > maxProcess {
		t.Errorf("the gateway had %d MiB at most, and may have %d", peak>>20, maxProcess>>20)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "data", "scratch")); err != nil || len(left) > 0 {
		t.Errorf("left on the disk: %v, %v", left, err)
	}
}

// call makes one call, whose result must be a preview of an artifact of at least so many bytes.
func call(t *testing.T, session *mcp.ClientSession, size int) {
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "up_text", Arguments: sizeArgs{size}})
	if err != nil {
		t.Errorf("%d bytes: %v", size, err)
		return
	}
	shown, links := 0, 0
	for _, c := range res.Content {
		switch c := c.(type) {
		case *mcp.TextContent:
			shown += len(c.Text)
			if !strings.HasPrefix(c.Text, "a row of \"text\", é\n") {
				t.Errorf("%d bytes: shown is %.200q", size, c.Text)
			}
		case *mcp.ResourceLink:
			links++
			if c.Size == nil || *c.Size < int64(size) || !strings.HasPrefix(c.URI, "artifact://") {
				t.Errorf("%d bytes: %+v", size, c)
			}
		}
	}
	if res.IsError || links != 1 || shown > 32<<10 || shown == 0 {
		t.Errorf("%d bytes: %d links, %d bytes shown, failed: %v", size, links, shown, res.IsError)
	}
}

var statusLine = regexp.MustCompile(`(?m)^(\w+):\s+(\d+) kB$`)

// memory reads a figure of a process, in bytes.
func memory(t *testing.T, pid int, what string) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range statusLine.FindAllStringSubmatch(string(status), -1) {
		if m[1] == what {
			kb, err := strconv.Atoi(m[2])
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	t.Fatalf("no %s in %s", what, status)
	return 0
}
