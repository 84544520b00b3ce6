//go:build peers

// Package a2a calls an agent that nobody here wrote: one on the JavaScript SDK of the protocol.
package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/a2atool"
)

// start runs the agent and returns its address.
func start(t *testing.T, binding, mode string) (*peertest.Process, string) {
	t.Helper()
	peertest.NPM(t, "@a2a-js/sdk/package.json")
	script, err := filepath.Abs(filepath.Join("testdata", "agent.cjs"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(peertest.Node(t), script, binding, mode)
	cmd.Env = append(os.Environ(), peertest.PeersEnv+"="+peertest.PeersDir(t))
	process := peertest.Start(t, cmd)
	return process, process.Line(t, `^ready (\S+)$`)[1]
}

// each runs a test against the agent over each binding, with its stream and without.
func each(t *testing.T, f func(t *testing.T, agent *peertest.Process, cat tools.LiveCatalog)) {
	for _, binding := range []string{"JSONRPC", "HTTP+JSON"} {
		for _, mode := range []string{"streaming", "polling"} {
			t.Run(binding+" "+mode, func(t *testing.T) {
				process, url := start(t, binding, mode)
				f(t, process, catalog(t, url))
			})
		}
	}
}

func catalog(t *testing.T, url string) tools.LiveCatalog {
	t.Helper()
	peer, err := a2atool.New(a2atool.Config{Name: "js", URL: url, AllowInsecureLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = peer.Close(context.Background()) })
	list, err := peer.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cat := tools.NewCatalog().(tools.LiveCatalog)
	if refused := cat.SwapSource(peer.SourceID(), list).Refused; len(refused) > 0 {
		t.Fatalf("refused: %v", refused)
	}
	return cat
}

// caller is what calls; answer is its answer to questions, and empty for one that cannot be asked.
type caller struct {
	answer string
	heard  func()

	mu    sync.Mutex
	notes []string
}

func (c *caller) Progress(_ context.Context, p tools.ProgressNote) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes = append(c.notes, p.Message)
	if c.heard != nil && p.Message == "waiting" {
		c.heard()
	}
	return nil
}

func (c *caller) Log(context.Context, tools.LogNote) error { return nil }

func (c *caller) Ask(context.Context, tools.Question) (tools.Answer, error) {
	if c.answer == "" {
		return tools.Answer{}, tools.ErrAskUnsupported
	}
	return tools.Answer{Result: json.RawMessage(c.answer)}, nil
}

func (c *caller) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.notes)
}

func (c *caller) on(ctx context.Context) context.Context {
	ctx = identity.With(ctx, identity.Identity{TenantID: "t", UserID: "u", SessionID: "s"})
	return tools.WithEntrance(ctx, tools.Entrance{Peer: c, Capabilities: tools.Capabilities{ElicitForm: c.answer != ""}})
}

func call(t *testing.T, c *caller, cat tools.ToolCatalog, args string) tools.ToolResult {
	t.Helper()
	result, err := tools.Invoke(c.on(t.Context()), cat, "js_act", json.RawMessage(args))
	if err != nil {
		t.Fatalf("%s: %v", args, err)
	}
	return result
}

func TestMessageAndConversation(t *testing.T) {
	each(t, func(t *testing.T, _ *peertest.Process, cat tools.LiveCatalog) {
		first := call(t, &caller{}, cat, `{"message":"echo one"}`)
		second := call(t, &caller{}, cat, `{"message":"echo two"}`)
		if first.Text() != "echo: one" || second.Text() != "echo: two" {
			t.Errorf("got %q and %q", first.Text(), second.Text())
		}
		const id = "a2a-protocol.org/context_id"
		if first.Meta[id] == nil || first.Meta[id] != second.Meta[id] {
			t.Errorf("the conversation did not go on: %v, %v", first.Meta, second.Meta)
		}
	})
}

func TestProgressIsStreamed(t *testing.T) {
	each(t, func(t *testing.T, process *peertest.Process, cat tools.LiveCatalog) {
		c := &caller{}
		if result := call(t, c, cat, `{"message":"long work"}`); result.Text() != "long done" {
			t.Errorf("got %+v", result)
		}
		if strings.HasSuffix(t.Name(), "polling") {
			return // what happens between two questions is not seen
		}
		if got := c.all(); !slices.Equal(got, []string{"submitted", "step 1", "step 2", "step 3", "long done"}) {
			t.Errorf("progress %q", got)
		}
	})
}

func TestQuestionIsAnswered(t *testing.T) {
	each(t, func(t *testing.T, _ *peertest.Process, cat tools.LiveCatalog) {
		c := &caller{answer: `{"action":"accept","content":{"answer":"Berne"}}`}
		if result := call(t, c, cat, `{"message":"ask me"}`); result.IsError || result.Text() != "answer: Berne" {
			t.Errorf("got %+v", result)
		}
	})
}

func TestQuestionGoesOnInTheNextCall(t *testing.T) {
	each(t, func(t *testing.T, _ *peertest.Process, cat tools.LiveCatalog) {
		if result := call(t, &caller{}, cat, `{"message":"ask me"}`); !strings.HasPrefix(result.Text(), "Which city?") {
			t.Fatalf("got %+v", result)
		}
		if result := call(t, &caller{}, cat, `{"message":"Basle"}`); result.Text() != "answer: Basle" {
			t.Errorf("got %+v", result)
		}
	})
}

func TestFailedTask(t *testing.T) {
	each(t, func(t *testing.T, _ *peertest.Process, cat tools.LiveCatalog) {
		if result := call(t, &caller{}, cat, `{"message":"fail it"}`); !result.IsError || result.Text() != "no luck" {
			t.Errorf("got %+v", result)
		}
	})
}

func TestCancelReachesTheAgent(t *testing.T) {
	each(t, func(t *testing.T, process *peertest.Process, cat tools.LiveCatalog) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := &caller{heard: cancel}
		_, err := tools.Invoke(c.on(ctx), cat, "js_act", json.RawMessage(`{"message":"wait here"}`))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		id := process.Line(t, `^waits (\S+)$`)[1]
		process.Line(t, `^cancelled `+id+`$`)
	})
}

func TestPartsComeBack(t *testing.T) {
	each(t, func(t *testing.T, _ *peertest.Process, cat tools.LiveCatalog) {
		result := call(t, &caller{}, cat, `{"message":"parts","data":{"n":42,"deep":[{"x":true}]},
			"files":[{"name":"p.png","mime":"image/png","bytes":"iVBORw=="},{"name":"r","uri":"https://files.example/r.pdf","mime":"application/pdf"}]}`)
		var kinds []string
		for _, c := range result.Content {
			kinds = append(kinds, c.Type)
		}
		if !slices.Equal(kinds, []string{"text", "image", "resource_link"}) {
			t.Fatalf("got %v: %+v", kinds, result)
		}
		if string(result.Structured) != `{"deep":[{"x":true}],"n":42}` || !strings.Contains(string(result.Content[1].JSON), "iVBORw==") {
			t.Errorf("got %s and %s", result.Structured, result.Content[1].JSON)
		}
	})
}

// A connection that was open when its agent died breaks on the next call: that
// message may have left, and the error says so. The call after it finds nobody,
// and nothing left.
func TestStoppedAgent(t *testing.T) {
	process, url := start(t, "JSONRPC", "streaming")
	cat := catalog(t, url)
	process.Stop()
	for range 2 {
		_, err := tools.Invoke((&caller{}).on(t.Context()), cat, "js_act", json.RawMessage(`{"message":"echo x"}`))
		var te *tools.Error
		if !errors.As(err, &te) || te.Class != tools.ErrClassTransient {
			t.Fatalf("got %v", err)
		}
		if !te.OutcomeUnknown {
			if !te.Retryable {
				t.Errorf("a message that never left may be sent again: %v", err)
			}
			return
		}
	}
	t.Error("an agent that is gone was reached twice")
}
