package mcptool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/tools"
)

// Whatever a server answers is in Wire byte for byte, and the views agree.
func TestResultsCrossWhole(t *testing.T) {
	t.Parallel()
	say := discover(t, start(t, childConfig(t, "plain")))["say"]
	for name, tc := range map[string]struct {
		result  string
		types   []string
		value   any
		isError bool
		meta    map[string]any
	}{
		"text": {`{"content":[{"type":"text","text":"a\u00e9 \"q\""}]}`, []string{"text"}, "aé \"q\"", false, nil},
		"two texts": {`{"content":[{"type":"text","text":"a"},{"text":"b","type":"text"}]}`, []string{"text", "text"},
			"a\nb", false, nil},
		"unknown block": {`{"content":[{"type":"hologram","depth":9007199254740993,"x":{"y":[null]}}],"later":1e400}`,
			[]string{"hologram"}, nil, false, nil},
		"structured": {`{ "content" : [ ], "structuredContent" : {"id": 9007199254740993, "$k": 1.0} }`, nil,
			json.RawMessage(`{"id": 9007199254740993, "$k": 1.0}`), false, nil},
		"array":           {`{"structuredContent":[1,2]}`, nil, json.RawMessage(`[1,2]`), false, nil},
		"null structured": {`{"structuredContent":null,"content":[{"type":"text","text":"t"}]}`, []string{"text"}, "t", false, nil},
		"error":           {`{"isError":true,"content":[{"type":"text","text":"no"}]}`, []string{"text"}, "no", true, nil},
		"mixed": {`{"content":[{"type":"text","text":"t"},{"type":"image","data":"AA==","mimeType":"image/png","annotations":{"priority":0.5}}]}`,
			[]string{"text", "image"}, nil, false, nil},
		"meta": {`{"_meta":{"n":9007199254740993,"o":{"p":true}}}`, nil, nil, false,
			map[string]any{"n": json.Number("9007199254740993"), "o": map[string]any{"p": true}}},
		"untyped block": {`{"content":[{"text":"t"},17]}`, []string{"", ""}, nil, false, nil},
		"empty":         {`{}`, nil, nil, false, nil},
		"old":           {`{"toolResult":"from 2024"}`, nil, nil, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := invoke(t, say, `{"result":`+tc.result+`}`)
			if got := string(r.Wire); got != tc.result {
				t.Errorf("Wire = %s\nwant   %s", got, tc.result)
			}
			var types []string
			for _, c := range r.Content {
				types = append(types, c.Type)
			}
			if !slices.Equal(types, tc.types) {
				t.Errorf("types = %q, want %q", types, tc.types)
			}
			if diff := cmp.Diff(tc.value, r.Value); diff != "" {
				t.Errorf("Value: %s", diff)
			}
			if diff := cmp.Diff(tc.meta, r.Meta); diff != "" {
				t.Errorf("Meta: %s", diff)
			}
			if r.IsError != tc.isError {
				t.Errorf("IsError = %v", r.IsError)
			}
		})
	}
}

func TestAnswersThatAreNoResult(t *testing.T) {
	t.Parallel()
	say := discover(t, start(t, childConfig(t, "plain")))["say"]
	for _, result := range []string{`[1]`, `"text"`, `null`, `{"resultType":"input_required","inputRequests":{}}`} {
		_, err := say.Invoke(t.Context(), json.RawMessage(`{"result":`+result+`}`))
		var te *tools.Error
		if !errors.As(err, &te) || te.Class != tools.ErrClassPermanent || te.Delivery != tools.Answered {
			t.Errorf("%s: %#v", result, err)
		}
	}
}

func TestArgumentsCrossAsTheyAre(t *testing.T) {
	t.Parallel()
	echo := discover(t, start(t, childConfig(t, "plain")))["echo"]
	for _, args := range []string{
		`{}`, `{"a":9007199254740993,"b":1.0,"c":1e400}`, `{ "$odd key/~" : "\u0041", "" : [ ] }`, `{"z":1,"a":2}`,
	} {
		if got := invoke(t, echo, args).Value; got != args {
			t.Errorf("%s arrived as %s", args, got)
		}
	}
	if got := invoke(t, echo, "").Value; got != "{}" {
		t.Errorf("no arguments arrived as %s", got)
	}
}

func TestLargeResult(t *testing.T) {
	t.Parallel()
	size := 50 << 20
	if raceDetector { // which takes half a minute for it
		size = 5 << 20
	}
	big := discover(t, start(t, childConfig(t, "plain")))["big"]
	r := invoke(t, big, `{"n":`+strconv.Itoa(size)+`}`)
	if s, ok := r.Value.(string); !ok || len(s) != size || len(r.Wire) < size {
		t.Errorf("got a %T, and %d bytes in all", r.Value, len(r.Wire))
	}
}

func TestServersErrorIsKept(t *testing.T) {
	t.Parallel()
	fail := discover(t, start(t, childConfig(t, "plain")))["fail"]
	for _, tc := range []struct {
		error string
		code  int64
		class tools.ErrorClass
		data  string
	}{
		{`{"code":-32602,"message":"bad city","data":{"n":9007199254740993}}`, -32602, tools.ErrClassPermanent, `{"n":9007199254740993}`},
		{`{"code":-32601,"message":"gone"}`, -32601, tools.ErrClassPermanent, ``},
		{`{"code":-32603,"message":"database"}`, -32603, tools.ErrClass5xx, ``},
		{`{"code":-32042,"message":"visit","data":{"elicitations":[]}}`, -32042, tools.ErrClassPermanent, `{"elicitations":[]}`},
		{`{"code":7,"message":"own"}`, 7, tools.ErrClassPermanent, ``},
	} {
		_, err := fail.Invoke(t.Context(), json.RawMessage(`{"error":`+tc.error+`}`))
		var te *tools.Error
		var rpc *RPCError
		if !errors.As(err, &te) || !errors.As(err, &rpc) {
			t.Fatalf("%s: %#v", tc.error, err)
		}
		if rpc.Code != tc.code || string(rpc.Data) != tc.data || !strings.Contains(te.Message, rpc.Message) {
			t.Errorf("%s: %+v, %q", tc.error, rpc, te.Message)
		}
		if te.Class != tc.class || te.Delivery != tools.Answered || te.Tool != "odd_fail" {
			t.Errorf("%s: %+v", tc.error, te)
		}
	}
}

func TestProgressInOrder(t *testing.T) {
	t.Parallel()
	cat := catalogOf(t, start(t, childConfig(t, "plain")))
	var rec recorder
	ctx := tools.WithEntrance(t.Context(), tools.Entrance{Peer: &rec, Meta: json.RawMessage(`{"progressToken":"the caller's","k":1}`)})
	if _, err := tools.Invoke(ctx, cat, "odd_count", json.RawMessage(`{"n":300}`)); err != nil {
		t.Fatal(err)
	}
	notes, _ := rec.notes()
	if len(notes) != 300 {
		t.Fatalf("%d notes", len(notes))
	}
	for i, n := range notes {
		if n.Progress != float64(i+1) || n.Total != 9 || n.Message != "step "+strconv.Itoa(i+1) {
			t.Fatalf("note %d: %+v", i, n)
		}
		if !bytes.Contains(n.Raw, []byte("9007199254740993")) {
			t.Fatalf("raw note: %s", n.Raw)
		}
	}
}

func TestCancellationReachesTheServer(t *testing.T) {
	t.Parallel()
	s := start(t, childConfig(t, "plain"))
	cat := catalogOf(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	rec := recorder{onNote: cancel} // the server has begun
	_, err := tools.Invoke(tools.WithEntrance(ctx, tools.Entrance{Peer: &rec}), cat, "odd_hang", nil)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error = %v", err)
	}
	notes, _ := rec.notes()
	var token struct{ ProgressToken json.Number }
	if len(notes) != 1 || json.Unmarshal(notes[0].Raw, &token) != nil {
		t.Fatalf("notes: %+v", notes)
	}
	got, err := tools.Invoke(t.Context(), cat, "odd_cancelled", nil)
	if err != nil || got.Value == nil || got.Value != token.ProgressToken.String() {
		t.Errorf("the server saw a cancellation of %v, want %s (%v)", got.Value, token.ProgressToken, err)
	}
}

func TestNoiseIsCounted(t *testing.T) {
	t.Parallel()
	s := start(t, childConfig(t, "noisy"))
	if got := invoke(t, discover(t, s)["noise"], "{}").Value; got != "quiet again" {
		t.Errorf("Value = %v", got)
	}
	if n := s.Status().Noise; n != 5 {
		t.Errorf("Noise = %d, want 5", n)
	}
}

func TestChildEnvironment(t *testing.T) {
	t.Setenv("MCPTOOL_SECRET_OF_THE_PARENT", "1")
	t.Setenv("LANG", "C")
	t.Setenv("TMPDIR", "/tmp")
	cfg := childConfig(t, "plain")
	cfg.Env["TMPDIR"] = "/var/tmp"
	env := strings.Split(invoke(t, discover(t, start(t, cfg))["env"], "{}").Value.(string), "\n")
	slices.Sort(env)
	want := []string{"HOME=" + os.Getenv("HOME"), "LANG=C", childMode + "=plain", "PATH=" + os.Getenv("PATH"), "TMPDIR=/var/tmp"}
	if diff := cmp.Diff(want, env); diff != "" {
		t.Error(diff)
	}
}

// However many calls race, there is one child.
func TestOneChildForAll(t *testing.T) {
	t.Parallel()
	cfg := childConfig(t, "plain")
	cfg.Env["STARTED"] = filepath.Join(t.TempDir(), "pids")
	s := start(t, cfg)
	pid := s.describe(definition{name: "pid"})
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, err := pid.Invoke(t.Context(), nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if pids := startedPIDs(t, cfg); len(pids) != 1 {
		t.Errorf("children: %v", pids)
	}
}

func startedPIDs(t *testing.T, cfg *Config) []string {
	t.Helper()
	b, err := os.ReadFile(cfg.Env["STARTED"])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(b))
}

// A call whose child dies is told that its outcome is unknown; the next one
// finds a new child, and the owner of the tools is told to look again.
func TestCrashAndRestart(t *testing.T) {
	t.Parallel()
	s := start(t, childConfig(t, "plain"))
	changed := make(chan struct{}, 16)
	s.OnChange(func() { changed <- struct{}{} })
	found := discover(t, s)
	first := invoke(t, found["pid"], "{}").Value

	_, err := found["crash"].Invoke(t.Context(), nil)
	var te *tools.Error
	if !errors.As(err, &te) || te.Delivery != tools.DeliveryUnknown || te.Class != tools.ErrClassTransient {
		t.Fatalf("crash: %#v", err)
	}
	if !strings.Contains(te.Message, `"odd"`) {
		t.Errorf("message: %s", te.Message)
	}
	if second := invoke(t, found["pid"], "{}").Value; second == first {
		t.Errorf("still child %v", second)
	}
	if n := s.Status().Restarts; n != 1 {
		t.Errorf("Restarts = %d", n)
	}
	await(t, changed)
}

func await[T any](t *testing.T, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(time.Minute):
		t.Fatal("nothing happened for a minute")
		panic("unreachable")
	}
}

func TestListChangedSwapsOnce(t *testing.T) {
	t.Parallel()
	s := start(t, childConfig(t, "plain"))
	changed := make(chan struct{}, 64)
	s.OnChange(func() { changed <- struct{}{} })
	cat := catalogOf(t, s)
	if _, err := tools.Invoke(t.Context(), cat, "odd_grow", json.RawMessage(`{"n":20}`)); err != nil {
		t.Fatal(err)
	}
	await(t, changed)
	ch := swap(t, cat, s)
	if len(ch.Added) != 20 || len(ch.Removed)+len(ch.Refused) > 0 {
		t.Errorf("changes: %+v", ch)
	}
	if _, ok := cat.Resolve("odd_extra19"); !ok {
		t.Error("no new tool")
	}
	if n := len(changed); n > 3 {
		t.Errorf("told %d times more", n)
	}
}

func TestStderrIsLabelledAndBounded(t *testing.T) {
	t.Parallel()
	var log peertest.Log
	cfg := childConfig(t, "talkative")
	cfg.Env["API_TOKEN"] = "s3cr3t-value"
	cfg.Logger = slog.New(slog.NewJSONHandler(&log, nil))
	s := start(t, cfg)
	discover(t, s)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := log.String()
	if strings.Contains(got, "s3cr3t") || !strings.Contains(got, "token is [hidden]") {
		t.Errorf("the token: %.400s", got)
	}
	if n := strings.Count(got, "stderr of the server"); n < 100 || n > 1000 {
		t.Errorf("%d lines of 5001 in the log", n)
	}
	for line := range strings.Lines(got) {
		if !strings.Contains(line, `"server":"odd"`) {
			t.Errorf("unlabelled: %s", line)
		}
	}
}

func TestChildThatEndsAtOnce(t *testing.T) {
	t.Parallel()
	cfg := childConfig(t, "broken")
	cfg.Env["API_TOKEN"] = "s3cr3t-value"
	s := start(t, cfg)
	err := s.Connect(t.Context())
	var te *tools.Error
	if !errors.As(err, &te) || te.Delivery != tools.NotDelivered {
		t.Fatalf("Connect: %#v", err)
	}
	for _, want := range []string{`"odd"`, "API_TOKEN is not valid: [hidden]"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say %q", err, want)
		}
	}
	if st := s.Status(); st.Connected || !strings.Contains(st.LastError, "API_TOKEN") {
		t.Errorf("Status: %+v", st)
	}
	_, err = s.describe(definition{name: "pid"}).Invoke(t.Context(), nil)
	if !errors.As(err, &te) || te.Delivery != tools.NotDelivered || strings.Contains(te.Message, "API_TOKEN") {
		t.Errorf("a model is shown %v", err)
	}
}

func TestCommandThatIsNotThere(t *testing.T) {
	t.Parallel()
	s := start(t, &Config{Name: "odd", Command: []string{"/nowhere/mcp-server"}})
	err := s.Connect(t.Context())
	var te *tools.Error
	if !errors.As(err, &te) || te.Class != tools.ErrClassPermanent || !strings.Contains(err.Error(), "/nowhere/mcp-server") {
		t.Errorf("Connect: %#v", err)
	}
}

func TestHandshakeThatHangs(t *testing.T) {
	t.Parallel()
	cfg := childConfig(t, "mute")
	cfg.Version = "2025-06-18"
	cfg.ConnectTimeout = 300 * time.Millisecond
	cfg.Env["STARTED"] = filepath.Join(t.TempDir(), "pids")
	s := start(t, cfg)
	err := s.Connect(t.Context())
	var te *tools.Error
	if !errors.As(err, &te) || te.Class != tools.ErrClassTimeout || te.Delivery != tools.NotDelivered {
		t.Errorf("Connect: %#v", err)
	}
	expectGone(t, cfg)
}

func TestCloseEndsAStubbornChild(t *testing.T) {
	t.Parallel()
	cfg := childConfig(t, "stubborn")
	cfg.Env["STARTED"] = filepath.Join(t.TempDir(), "pids")
	s := start(t, cfg)
	discover(t, s)
	for range 3 {
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	expectGone(t, cfg)
	if _, err := s.Discover(t.Context()); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("Discover after Close: %v", err)
	}
}

func expectGone(t *testing.T, cfg *Config) {
	t.Helper()
	for _, p := range startedPIDs(t, cfg) {
		pid, _ := strconv.Atoi(p)
		if peertest.Alive(pid) {
			t.Errorf("child %d is left", pid)
		}
	}
}

func TestListsThatDoNotEnd(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]int{"circle": 3, "endless": maxPages, "same": 1} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := start(t, childConfig(t, mode))
			list, err := s.Discover(t.Context())
			if err != nil || len(list) != want {
				t.Fatalf("%d tools, %v", len(list), err)
			}
			refused := s.Refused()
			if len(refused) == 0 || !strings.Contains(refused[len(refused)-1].Name, "end of tools/list") {
				t.Errorf("refused: %v", refused)
			}
		})
	}
}
