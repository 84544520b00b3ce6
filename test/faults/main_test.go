package faults

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/gateway/gatewaytest"
	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/test/control"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/toolstest"
)

var (
	cycles    = flag.Int("cycles", 100, "how often TestNothingLeftAfterCycles connects and disconnects")
	calls     = flag.Int("calls", 2000, "how many calls TestManyCallsLeaveNothing makes")
	megabytes = flag.Int("megabytes", 64, "size of the result of TestLargeResult")
)

const patience = peertest.Patience

// modeVariable says what kind of child a process of this test binary is.
const modeVariable = "FAULTS_TEST_CHILD"

func TestMain(m *testing.M) {
	switch mode := os.Getenv(modeVariable); mode {
	case "":
		os.Exit(m.Run())
	case "grandchild":
		grandchild()
	case "daemonizer":
		os.Exit(daemonizer())
	case "founder":
		os.Exit(founder())
	case "elder":
		os.Exit(elder())
	default:
		os.Exit(serveChild(mode))
	}
}

// child is the configuration of a server that is this test binary, with further keys. Under the race detector a process
// would take a second to end.
func child(name, mode string, desk *control.Desk, more string) string {
	return fmt.Sprintf("{name: %s, command: [%q], env: {GORACE: atexit_sleep_ms=0, %s: %s, %s: '%s'}%s}", name, os.Args[0], modeVariable, mode, control.Variable, desk.Addr(), more)
}

func bounded(t testing.TB) context.Context { return peertest.Bounded(t) }

// A gate is a gateway under test.
type gate struct {
	*gateway.Gateway
	log *peertest.Log
}

// open starts a gateway with these MCP servers and waits for their first attempts. It is closed when the test ends.
func open(t testing.TB, servers ...string) *gate {
	t.Helper()
	return openWith(t, "", servers...)
}

func openWith(t testing.TB, top string, servers ...string) *gate {
	t.Helper()
	cfg := gatewaytest.Parse(t, top+"\ntools:\n  mcp_servers:\n  - "+strings.Join(servers, "\n  - ")+"\n")
	log := &peertest.Log{}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the gateway's log:\n%s", log)
		}
	})
	return &gate{gatewaytest.Open(t, cfg, &gateway.Options{Logger: log.Logger(slog.LevelInfo)}), log}
}

// call calls a tool as the local caller.
func (g *gate) call(t testing.TB, name, args string) (tools.ToolResult, error) {
	t.Helper()
	return tools.Invoke(g.LocalContext(bounded(t)), g.Catalog(), name, json.RawMessage(args))
}

// text calls a tool and returns the text of its result.
func (g *gate) text(t testing.TB, name, args string) string {
	t.Helper()
	res, err := g.call(t, name, args)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return res.Text()
}

// later calls a tool in the background and returns how that ends.
func (g *gate) later(t testing.TB, name, args string) <-chan outcome {
	t.Helper()
	done := make(chan outcome, 1)
	go func() {
		res, err := g.call(t, name, args)
		done <- outcome{res, err}
	}()
	return done
}

type outcome struct {
	tools.ToolResult
	err error
}

func receive[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	return peertest.Receive(t, from)
}

func await(t testing.TB, what string, done func() bool) {
	t.Helper()
	if !toolstest.Await(patience, done) {
		t.Fatalf("within %s it did not happen: %s", patience, what)
	}
}

func (g *gate) has(t testing.TB, name string) bool {
	t.Helper()
	_, ok := g.Catalog().Resolve(name)
	return ok
}

func (g *gate) state(name string) string {
	for _, s := range g.Sources() {
		if s.Name == name {
			return s.State
		}
	}
	return "absent"
}
