package mcpwire_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// roleEnv makes the test binary run as one of the child processes of the
// tests instead.
const roleEnv = "MCPWIRE_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		os.Exit(runRole(role))
	}
	goleak.VerifyTestMain(m)
}

// child returns a transport that runs this binary in a role.
func child(t testing.TB, role string) *mcpwire.ChildTransport {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &mcpwire.ChildTransport{
		Command:    []string{exe},
		Env:        []string{roleEnv + "=" + role, "PATH=" + os.Getenv("PATH")},
		CloseGrace: 5 * time.Second,
	}
}

func runRole(role string) int {
	ctx := context.Background()
	switch role {
	case "server":
		if err := mcpwire.NewServer(echo{}, nil).ServeStdio(ctx, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	case "sdk":
		if err := sdkServer().Run(ctx, &mcp.StdioTransport{}); err != nil {
			return 1
		}
	case "noisy":
		fmt.Println("npm WARN this server talks")
		fmt.Println("{not json either}")
		fmt.Println()
		fmt.Fprintln(os.Stderr, strings.Repeat("e", 20_000))
		fmt.Fprintln(os.Stderr, "ready")
		_ = mcpwire.NewServer(echo{}, nil).ServeStdio(ctx, os.Stdin, os.Stdout)
	case "stubborn": // ignores both the end of its input and SIGTERM
		signal.Ignore(syscall.SIGTERM)
		grandchild := exec.Command("sleep", "3600")
		if err := grandchild.Start(); err != nil {
			return 1
		}
		fmt.Fprintln(os.Stderr, grandchild.Process.Pid)
		go func() { _ = mcpwire.NewServer(echo{}, nil).ServeStdio(ctx, os.Stdin, os.Stdout) }()
		select {}
	case "orphan": // starts a child and leaves the closing to its own death
		t := &mcpwire.ChildTransport{
			Command: []string{os.Args[0]},
			Env:     []string{roleEnv + "=server"},
		}
		c, err := mcpwire.Connect(ctx, t, nil)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		pid, err := c.Call(ctx, "test/pid", nil, nil)
		fmt.Println(string(pid), err)
		select {}
	case "client":
		return conformanceClientRole()
	case "relay":
		return relayRole()
	case "crash":
		return crashRole()
	}
	return 0
}

// crashRole is a server of the stateful era that ends on a first request it
// does not know.
func crashRole() int {
	var first struct{ Method string }
	if err := json.NewDecoder(os.Stdin).Decode(&first); err != nil || first.Method != "initialize" {
		return 3
	}
	fmt.Println(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"crash","version":"1"}}}`)
	_, _ = os.Stdin.Read(make([]byte, 1<<16))
	return 4
}

// echo is the handler of most tests.
type echo struct{}

func (echo) Describe(context.Context, *mcpwire.Session) (*mcpwire.Description, error) {
	return &mcpwire.Description{
		Capabilities: json.RawMessage(`{"tools":{"listChanged":true},"logging":{}}`),
		Instructions: "echo",
	}, nil
}

const echoTools = `{"tools":[{"name":"echo","inputSchema":{"type":"object"},"future":{"n":9007199254740993}}],"ttlMs":0,"cacheScope":"private"}`

func (echo) ServeMCP(ctx context.Context, r *mcpwire.Request) (json.RawMessage, error) {
	switch r.Method {
	case "tools/list":
		return json.RawMessage(echoTools), nil
	case "tools/call":
		return callTool(ctx, r)
	case "logging/setLevel":
		return nil, nil
	case "test/pid":
		return json.RawMessage(fmt.Sprint(`{"pid":`, os.Getpid(), `}`)), nil
	case "subscriptions/listen":
		if err := r.Notify(ctx, mcpwire.NotifySubscribed, json.RawMessage(`{"notifications":{"toolsListChanged":true}}`)); err != nil {
			return nil, err
		}
		if err := r.Notify(ctx, "notifications/tools/list_changed", nil); err != nil {
			return nil, err
		}
		<-ctx.Done()
		return nil, nil
	}
	if r.Notification {
		return nil, nil
	}
	return nil, mcpwire.Errorf(mcpwire.CodeMethodNotFound, "method not found: %s", r.Method)
}

func callTool(ctx context.Context, r *mcpwire.Request) (json.RawMessage, error) {
	raw, _ := rawjson.Get(r.Params, "name")
	args, _ := rawjson.Get(r.Params, "arguments")
	name, _ := rawjson.Unquote(raw)
	switch name {
	case "echo":
		text, _ := json.Marshal(string(args))
		return json.RawMessage(`{"content":[{"type":"text","text":` + string(text) + `},{"type":"hologram","x":9007199254740993}],"structuredContent":` + string(args) + `,"zz":1}`), nil
	case "progress":
		for i := 1; i <= 3; i++ {
			if err := r.Progress(ctx, json.RawMessage(fmt.Sprintf(`{"progress":%d,"total":3}`, i))); err != nil {
				return nil, err
			}
		}
		return textResult("done"), nil
	case "log":
		if err := r.Notify(ctx, "notifications/message", json.RawMessage(`{"level":"info","data":"hello"}`)); err != nil {
			return nil, err
		}
		return textResult("logged"), nil
	case "ask":
		answer, err := r.Call(ctx, "elicitation/create", json.RawMessage(`{"message":"name?","requestedSchema":{"type":"object","properties":{}}}`))
		if err != nil {
			return nil, err
		}
		return textResult(string(answer)), nil
	case "wait":
		if err := r.Notify(ctx, "notifications/message", json.RawMessage(`{"level":"info","data":"waiting"}`)); err != nil {
			return nil, err
		}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	case "fail":
		return nil, mcpwire.NewError(-32042, "URL elicitation required", map[string]any{"elicitations": []any{}})
	case "big":
		return json.RawMessage(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 50<<20) + `"}]}`), nil
	}
	return nil, mcpwire.Errorf(mcpwire.CodeInvalidParams, "unknown tool")
}

func textResult(text string) json.RawMessage {
	quoted, _ := json.Marshal(text)
	return json.RawMessage(`{"content":[{"type":"text","text":` + string(quoted) + `}]}`)
}

// sdkServer is the other implementation's server.
func sdkServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, &mcp.ServerOptions{Instructions: "be kind"})
	type in struct {
		Text string `json:"text"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(ctx context.Context, r *mcp.CallToolRequest, a in) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: a.Text}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "progress"}, func(ctx context.Context, r *mcp.CallToolRequest, _ in) (*mcp.CallToolResult, any, error) {
		for i := 1; i <= 3; i++ {
			_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i)})
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, r *mcp.CallToolRequest, _ in) (*mcp.CallToolResult, any, error) {
		answer, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "name?"})
		if err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: answer.Action}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, r *mcp.CallToolRequest, a in) (*mcp.CallToolResult, any, error) {
		_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1})
		<-ctx.Done()
		return nil, nil, ctx.Err()
	})
	return s
}
