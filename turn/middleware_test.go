package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/turn"
)

func with(m ...turn.Middleware) *turn.Options {
	return &turn.Options{Middleware: m, Concurrency: 1}
}

func TestMiddlewareErrors(t *testing.T) {
	no := errors.New("not on Sundays")
	c := newCrib(t).add(tools.Tool{Name: "a"}, nil)
	r := c.execute(with(nil, turn.Before(func(context.Context, *turn.Invocation) error { return no })), call("1", "a", `{}`))[0]
	if r.Status != turn.StatusDenied || !errors.Is(r.Err, no) || r.Text() != `"a" was not run, the call was refused: not on Sundays.` {
		t.Errorf("%s %v: %s", r.Status, r.Err, r.Text())
	}
	r = c.execute(with(turn.After(func(context.Context, *turn.Invocation, *tools.ToolResult) error { return no })), call("1", "a", `{}`))[0]
	if r.Status != turn.StatusFailed || r.Text() != `"a" failed: the call was made, but its result is withheld: not on Sundays.` {
		t.Errorf("%s: %s", r.Status, r.Text())
	}
	r = c.execute(with(func(turn.Handler) turn.Handler {
		return func(context.Context, *turn.Invocation) (tools.ToolResult, error) { panic("secret") }
	}), call("1", "a", `{}`))[0]
	if strings.Contains(r.Text(), "secret") || r.Err == nil {
		t.Errorf("%s: %s", r.Status, r.Text())
	}
	r = c.execute(with(func(turn.Handler) turn.Handler {
		return func(context.Context, *turn.Invocation) (tools.ToolResult, error) {
			return tools.ToolResult{Value: "cached"}, nil
		}
	}), call("1", "a", `{}`))[0]
	if r.Status != turn.StatusCompleted || r.Value != "cached" {
		t.Errorf("%s: %v", r.Status, r.Value)
	}
}

func TestConfirm(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "read", Safety: readOnly}, nil).
		add(tools.Tool{Name: "write", SideEffects: tools.SideEffectWrite, ArgsSchema: object(`"n":{"type":"integer"}`)}, nil).
		add(tools.Tool{Name: "unclassified"}, nil).
		add(tools.Tool{Name: "careful", Safety: tools.Safety{NeedsConfirmation: tools.Yes}}, nil)
	var asked []string
	ask := func(_ context.Context, inv *turn.Invocation) (bool, error) {
		asked = append(asked, inv.Tool.Name+string(inv.Args))
		return string(inv.Args) == `{"n":1}`, nil
	}
	results := c.execute(with(turn.Confirm(ask)), call("1", "read", `{}`), call("2", "write", `{"n":1}`), call("3", "write", `{"n":2}`),
		call("4", "write", `{"n":"x"}`), call("5", "unclassified", ``), call("6", "careful", `{}`))
	want(t, results, turn.StatusCompleted, turn.StatusCompleted, turn.StatusDenied, turn.StatusInvalid, turn.StatusInvalid, turn.StatusDenied)
	if got := strings.Join(asked, " "); got != `write{"n":1} write{"n":2}` {
		t.Errorf("asked about %s", got)
	}
	if !errors.Is(results[2].Err, tools.ErrToolRejected) || !errors.Is(results[5].Err, tools.ErrToolDenied) {
		t.Errorf("%v, %v", results[2].Err, results[5].Err)
	}
	want(t, c.execute(with(turn.Confirm(nil)), call("1", "write", `{"n":1}`), call("2", "read", `{}`)), turn.StatusDenied, turn.StatusCompleted)
	want(t, c.execute(with(turn.Confirm(nil, turn.Named("read"))), call("1", "write", `{"n":1}`), call("2", "read", `{}`)), turn.StatusCompleted, turn.StatusDenied)
	failing := func(context.Context, *turn.Invocation) (bool, error) { return true, errors.New("nobody is there") }
	want(t, c.execute(with(turn.Confirm(failing)), call("1", "write", `{"n":1}`)), turn.StatusDenied)
}

// A turn is not begun for a caller whose every call would be refused.
func TestBeginDemandsTheIdentityThatTheCatalogDoes(t *testing.T) {
	c := newCrib(t, tools.WithRequiredIdentity()).add(tools.Tool{Name: "a"}, nil)
	if _, err := turn.New(c.cat, nil).Begin(t.Context()); !errors.Is(err, tools.ErrIdentityRequired) {
		t.Errorf("without an identity: %v", err)
	}
	if _, err := turn.New(c.cat, nil).Begin(caller()); err != nil {
		t.Errorf("with one: %v", err)
	}
	if _, err := turn.New(newCrib(t).cat, nil).Begin(t.Context()); err != nil {
		t.Errorf("where none is demanded: %v", err)
	}
}

func TestWorkspace(t *testing.T) {
	root := t.TempDir()
	outside := t.TempDir()
	must(t, os.Mkdir(filepath.Join(root, "sub"), 0o700))
	must(t, os.Symlink(outside, filepath.Join(root, "leads-out")))
	must(t, os.Symlink(filepath.Join(root, "sub"), filepath.Join(root, "leads-in")))
	must(t, os.Symlink(filepath.Join(outside, "nothing"), filepath.Join(root, "dangling")))
	loop := filepath.Join(root, "loop")
	must(t, os.Symlink(loop, loop))
	files := tools.Safety{Filesystem: tools.Yes, ReadOnly: tools.Yes}
	own := files
	own.WorkspaceRoot = filepath.Join(root, "sub")
	c := newCrib(t).add(tools.Tool{Name: "files", Safety: files}, nil).add(tools.Tool{Name: "own", Safety: own}, nil).
		add(tools.Tool{Name: "web", Safety: readOnly}, nil).
		add(tools.Tool{Name: "shell", Safety: tools.Safety{Process: tools.Yes, ReadOnly: tools.Yes}}, nil)
	for _, test := range []struct {
		tool string
		args map[string]any
		ok   bool
	}{
		{"files", map[string]any{"path": "sub/new.txt"}, true},
		{"files", map[string]any{"path": ""}, true},
		{"files", map[string]any{"path": root}, true},
		{"files", map[string]any{"path": root + "/sub/../sub/x"}, true},
		{"files", map[string]any{"path": "leads-in/x"}, true},
		{"files", map[string]any{"text": "no path at all"}, true},
		{"files", map[string]any{"url": "https://example.com/etc/passwd"}, true},
		{"files", map[string]any{"path": "/etc/passwd"}, false},
		{"files", map[string]any{"text": "/etc/passwd"}, true},
		{"files", map[string]any{"new_string": "// a comment"}, true},
		{"files", map[string]any{"note": "a\nb/c\n"}, true},
		{"files", map[string]any{"note": "b\n/a"}, false},
		{"files", map[string]any{"note": "b\x00/a"}, false},
		{"files", map[string]any{"code": "// a comment\nx := 1"}, true},
		{"files", map[string]any{"path": "x\n/../../../../../etc/passwd"}, false},
		{"files", map[string]any{"path": "x\ny"}, false},
		{"files", map[string]any{"path": "x\x00"}, false},
		{"files", map[string]any{"path": strings.Repeat("a/../", 900) + "../../../../../etc/passwd"}, false},
		{"files", map[string]any{"path": strings.Repeat("a/../", 900) + "x"}, false},
		{"files", map[string]any{"which": strings.Repeat("a/../", 900) + "../../../../../etc/passwd"}, false},
		{"files", map[string]any{"data": "/9j/" + strings.Repeat("4AAQ", 2000)}, true},
		{"files", map[string]any{"uri": "FILE:///etc/passwd"}, false},
		{"files", map[string]any{"uri": "file:%2e%2e/%2e%2e/x"}, false},
		{"files", map[string]any{"path": "https://example.com/x"}, true},
		{"files", map[string]any{"path": "leads-out/x://y"}, false},
		{"files", map[string]any{"m": map[string]any{"../../x": "y"}}, false},
		{"files", map[string]any{"m": map[string]any{"/etc/passwd": 1}}, false},
		{"files", map[string]any{"m": map[string]any{"sub/x": "y"}}, true},
		{"files", map[string]any{"files": map[string]any{"leads-out/x": "y"}}, false},
		{"files", map[string]any{"which": "/etc/passwd"}, false},
		{"files", map[string]any{"path": root + "-other/x"}, false},
		{"files", map[string]any{"path": "sub/../../x"}, false},
		{"files", map[string]any{"path": `sub\..\..\x`}, false},
		{"files", map[string]any{"path": "~/x"}, false},
		{"files", map[string]any{"uri": "file:///etc/passwd"}, false},
		{"files", map[string]any{"uri": "file://" + root + "/sub/x"}, true},
		{"files", map[string]any{"path": "leads-out/x"}, false},
		{"files", map[string]any{"path": "leads-in/../leads-out"}, false},
		{"files", map[string]any{"path": "dangling"}, false},
		{"files", map[string]any{"path": "loop/x"}, false},
		{"files", map[string]any{"moves": []any{map[string]any{"from_path": "sub", "to_path": "/tmp"}}}, false},
		{"files", map[string]any{"paths": []any{"sub", "leads-out"}}, false},
		{"own", map[string]any{"path": root + "/x"}, false},
		{"own", map[string]any{"path": root + "/sub/x"}, true},
		{"own", map[string]any{"path": "x"}, true},
		{"shell", map[string]any{"cwd": "/"}, false},
		{"web", map[string]any{"path": "/repos/x"}, true},
	} {
		args, err := json.Marshal(test.args)
		must(t, err)
		r := c.execute(with(turn.Workspace(root)), call("1", test.tool, string(args)))[0]
		if (r.Status == turn.StatusCompleted) != test.ok {
			t.Errorf("%s %s: %s %s", test.tool, args, r.Status, r.Text())
		}
	}
	want(t, c.execute(with(turn.Workspace("")), call("1", "files", `{"path":"x"}`)), turn.StatusDenied)
}

func TestRedact(t *testing.T) {
	digits := turn.Removing(regexp.MustCompile(`\d{3}-\d{4}`))
	stars := func(s string) string { return strings.ReplaceAll(s, "secret", "***") }
	m := turn.Redact(map[string]turn.Redaction{"": digits, "pii": stars})
	block := tools.Content{Type: "resource", JSON: json.RawMessage(`{"type":"resource","resource":{"uri":"x:1","text":"a secret 555-1234","blob":"555-1234"},"data":"555-1234"}`)}
	image := tools.ImageContent([]byte("555-1234 secret"), "image/png")
	c := newCrib(t).
		add(tools.Tool{Name: "all", Safety: tools.Safety{Redaction: "pii"}}, func(context.Context, json.RawMessage) (tools.ToolResult, error) {
			return tools.ToolResult{Structured: json.RawMessage(`{"phone":"555-1234","n":9007199254740993, "secret":["a secret"],"data":"555-1234"}`),
				Content: []tools.Content{block, image}, Wire: json.RawMessage(`{"raw":"555-1234"}`)}, nil
		}).
		add(tools.Tool{Name: "text"}, func(context.Context, json.RawMessage) (tools.ToolResult, error) {
			return tools.ToolResult{Value: "call 555-1234, a secret"}, nil
		}).
		add(tools.Tool{Name: "clean"}, func(context.Context, json.RawMessage) (tools.ToolResult, error) {
			return tools.ToolResult{Structured: json.RawMessage(`{"a":1}`), Wire: json.RawMessage(`{"raw":1}`)}, nil
		}).
		add(tools.Tool{Name: "strange", Safety: tools.Safety{Redaction: "gdpr"}}, nil)
	results := c.execute(with(m), call("1", "all", `{}`), call("2", "text", `{}`), call("3", "clean", `{}`), call("4", "strange", `{}`))
	want(t, results, turn.StatusCompleted, turn.StatusCompleted, turn.StatusCompleted, turn.StatusFailed)
	all := results[0]
	if got := string(all.Structured); got != `{"phone":"[redacted]","n":9007199254740993, "secret":["a ***"],"data":"[redacted]"}` || all.Wire != nil || string(all.Value.(json.RawMessage)) != got {
		t.Errorf("%s, %v, %s", got, all.Value, all.Wire)
	}
	if got := string(all.Content[0].JSON); got != `{"type":"resource","resource":{"uri":"x:1","text":"a *** [redacted]","blob":"555-1234"},"data":"555-1234"}` {
		t.Errorf("%s", got)
	}
	if string(all.Content[1].JSON) != string(image.JSON) {
		t.Errorf("%s", all.Content[1].JSON)
	}
	if got := results[1]; got.Value != "call [redacted], a secret" || string(got.Structured) != `"call [redacted], a secret"` {
		t.Errorf("%v %s", got.Value, got.Structured)
	}
	if results[2].Wire == nil {
		t.Error("a result that did not change lost its form")
	}
}

func TestCapResults(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "a"}, nil)
	results := c.execute(with(turn.CapResults(10)), call("1", "a", `"12345678"`), call("2", "a", `"123456789"`))
	want(t, results, turn.StatusCompleted, turn.StatusFailed)
	if text := results[1].Text(); strings.Contains(text, "123456789") || !strings.Contains(text, "11 bytes, and 10 are allowed") {
		t.Errorf("%s", text)
	}
}

func TestStopLoops(t *testing.T) {
	state := "starting"
	c := newCrib(t).
		add(tools.Tool{Name: "watch"}, func(context.Context, json.RawMessage) (tools.ToolResult, error) {
			return tools.ToolResult{Value: state}, nil
		}).
		add(tools.Tool{Name: "fail"}, func(context.Context, json.RawMessage) (tools.ToolResult, error) {
			return tools.ToolResult{}, errors.New("no")
		})
	runner := turn.New(c.cat, with(turn.StopLoops(2)))
	run := runner.NewRun(turn.Usage{})
	try := func(run *turn.Run, name, args string) turn.Status {
		t.Helper()
		tn, err := run.Begin(caller())
		must(t, err)
		results, err := tn.Execute(caller(), []turn.Call{call("", name, args)})
		must(t, err)
		return results[0].Status
	}
	for i, step := range []struct {
		name, args, state string
		want              turn.Status
	}{
		{"watch", `{"a":1,"b":2}`, "starting", turn.StatusCompleted},
		{"watch", `{"a":1,"b":2}`, "running", turn.StatusCompleted},
		{"watch", `{ "a": 1, "b": 2 }`, "running", turn.StatusCompleted},
		{"watch", `{"a":1,"b":2}`, "done", turn.StatusDenied},
		{"watch", `{"a":2}`, "done", turn.StatusCompleted},
		{"fail", `{}`, "", turn.StatusFailed},
		{"fail", `{}`, "", turn.StatusFailed},
		{"fail", `{}`, "", turn.StatusDenied},
	} {
		state = step.state
		if got := try(run, step.name, step.args); got != step.want {
			t.Errorf("step %d: %s, want %s", i, got, step.want)
		}
	}
	if got := try(runner.NewRun(turn.Usage{}), "fail", `{}`); got != turn.StatusFailed {
		t.Errorf("another run: %s", got)
	}
}

func TestRules(t *testing.T) {
	yes, no := turn.Named("a"), turn.Tagged("never")
	tool := &tools.Tool{Name: "a", Tags: []string{"x"}}
	for want, rules := range map[bool][]turn.Rule{
		true:  {yes, turn.Not(no), turn.All(), turn.All(yes, yes), turn.Any(no, yes), turn.Tagged("x")},
		false: {no, turn.Not(yes), turn.Any(), turn.Any(no), turn.All(yes, no), turn.Named()},
	} {
		for i, rule := range rules {
			if rule(tool) != want {
				t.Errorf("rule %d is not %t", i, want)
			}
		}
	}
	c := newCrib(t).add(tools.Tool{Name: "a"}, nil)
	want(t, c.execute(with(turn.Allow()), call("1", "a", `{}`)), turn.StatusDenied)
	want(t, c.execute(with(turn.Deny()), call("1", "a", `{}`)), turn.StatusCompleted)
}

// shelves is a Bounder that takes in what tools keep aside.
type shelves struct {
	shelf
	aside []string
}

func (s *shelves) Offload(_ context.Context, about tools.Offload, r io.Reader) (tools.ArtifactRef, error) {
	content, err := io.ReadAll(r)
	s.aside = append(s.aside, about.Tool+": "+string(content))
	return tools.ArtifactRef{Ref: "art-1", SizeBytes: int64(len(content))}, err
}

// A tool whose result is redacted keeps nothing aside; what is large is stored when
// it has been redacted.
func TestRedactedResultsAreNotKeptAside(t *testing.T) {
	large := func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
		text := "call 555-1234 " + strings.Repeat("x", 200)
		if call := tools.CallFrom(ctx); call.Offloads() {
			ref, err := call.Offload(ctx, tools.Offload{}, strings.NewReader(text))
			return tools.ToolResult{Content: []tools.Content{ref.Link()}, Artifacts: []tools.ArtifactRef{ref}}, err
		}
		raw, err := json.Marshal(text)
		return tools.ToolResult{Structured: raw}, err
	}
	digits := turn.Removing(regexp.MustCompile(`\d{3}-\d{4}`))
	for name, test := range map[string]struct {
		named map[string]turn.Redaction
		aside string
	}{
		"of every tool":  {map[string]turn.Redaction{"": digits, "pii": digits}, ""},
		"of one by name": {map[string]turn.Redaction{"pii": digits}, "plain: call 555-1234"},
	} {
		c := newCrib(t).add(tools.Tool{Name: "plain"}, large).add(tools.Tool{Name: "private", Safety: tools.Safety{Redaction: "pii"}}, large)
		kept := &shelves{shelf: shelf{kept: map[string][]byte{}}}
		opts := with(turn.Redact(test.named))
		opts.Bounder = kept
		want(t, c.execute(opts, call("1", "plain", `{}`), call("2", "private", `{}`)), turn.StatusCompleted, turn.StatusCompleted)
		if got := strings.Join(kept.aside, "|"); !strings.HasPrefix(got, test.aside) || test.aside == "" && got != "" || strings.Contains(got, "private") {
			t.Errorf("%s: kept aside were %.200s", name, got)
		}
		if content := string(kept.kept["art-1"]); !strings.HasPrefix(content, `"call [redacted] xx`) {
			t.Errorf("%s: kept is %.200s", name, content)
		}
	}
}
