package mcptool

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/tools"
	"go.uber.org/goleak"
)

// childMode names the environment variable that turns the test binary into a
// server on its standard input and output.
const childMode = "MCPTOOL_TEST_CHILD"

func TestMain(m *testing.M) {
	switch mode := os.Getenv(childMode); mode {
	case "":
		goleak.VerifyTestMain(m)
	case "sdk":
		os.Exit(serveSDK())
	case "asking":
		os.Exit(serveAsking())
	default:
		os.Exit(newRawServer(mode, os.Stdout).serve(os.Stdin))
	}
}

// childConfig describes a server that is this test binary in the given mode.
func childConfig(t *testing.T, mode string) *Config {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &Config{Name: "odd", Command: []string{self}, Env: map[string]string{childMode: mode}}
}

// start returns a server that is closed when the test ends.
func start(t *testing.T, cfg *Config) *Server {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(testLog{t}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// testLog writes to the test's log.
type testLog struct{ t *testing.T }

func (l testLog) Write(b []byte) (int, error) {
	l.t.Log(string(b))
	return len(b), nil
}

// discover returns the server's tools by their source names.
func discover(t *testing.T, s *Server) map[string]tools.ToolDescriptor {
	t.Helper()
	list, err := s.Discover(t.Context())
	if err != nil {
		t.Fatalf("Discover: %v", err)
	}
	out := map[string]tools.ToolDescriptor{}
	for _, d := range list {
		out[d.Tool.SourceName] = d
	}
	return out
}

// invoke calls a tool and fails the test when the call fails.
func invoke(t *testing.T, d tools.ToolDescriptor, args string) tools.ToolResult {
	t.Helper()
	r, err := d.Invoke(t.Context(), json.RawMessage(args))
	if err != nil {
		t.Fatalf("%s: %v", d.Tool.Name, err)
	}
	return r
}

// catalogOf puts the server's tools into a catalog.
func catalogOf(t *testing.T, s *Server) tools.LiveCatalog {
	t.Helper()
	cat := tools.NewCatalog().(tools.LiveCatalog)
	swap(t, cat, s)
	return cat
}

func swap(t *testing.T, cat tools.LiveCatalog, s *Server) tools.Changes {
	t.Helper()
	list, err := s.Discover(t.Context())
	if err != nil {
		t.Fatalf("Discover: %v", err)
	}
	return cat.SwapSource(s.SourceID(), list)
}

// A recorder is the peer of a call; it keeps what reaches the caller.
type recorder struct {
	mu       sync.Mutex
	progress []tools.ProgressNote
	logs     []tools.LogNote
	onNote   func()
}

func (r *recorder) Progress(_ context.Context, p tools.ProgressNote) error {
	r.mu.Lock()
	r.progress = append(r.progress, p)
	r.mu.Unlock()
	if r.onNote != nil {
		r.onNote()
	}
	return nil
}

func (r *recorder) Log(_ context.Context, l tools.LogNote) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logs = append(r.logs, l)
	return nil
}

func (r *recorder) Ask(context.Context, tools.Question) (tools.Answer, error) {
	return tools.Answer{}, tools.ErrAskUnsupported
}

func (r *recorder) notes() ([]tools.ProgressNote, []tools.LogNote) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.progress, r.logs
}

// eventually waits until something that nobody announces is so.
func eventually(t *testing.T, so func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(time.Minute); !so(); {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("it was not so for a minute")
		}
	}
}
