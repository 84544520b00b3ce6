package mcptool

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/tools"
)

func TestServerThatListsTooMuch(t *testing.T) {
	t.Parallel()
	s := start(t, childConfig(t, "crowd"))
	list, err := s.Discover(t.Context())
	if err != nil || len(list) != maxEntries {
		t.Fatalf("%d tools, %v", len(list), err)
	}
	refused := s.Refused()
	if len(refused) != 1 || refused[0].Name != "odd (end of tools/list)" || !strings.Contains(refused[0].Err.Error(), "more than 10000 entries") {
		t.Errorf("refused: %v", refused)
	}
}

func TestMessageBeyondTheLimit(t *testing.T) {
	t.Parallel()
	cfg := childConfig(t, "plain")
	if s := start(t, cfg); s.cfg.MaxMessageBytes != 64<<20 {
		t.Errorf("the default is %d", s.cfg.MaxMessageBytes)
	}
	cfg.MaxMessageBytes = 10_000
	big := discover(t, start(t, cfg))["big"]
	invoke(t, big, `{"n":9000}`)
	_, err := big.Invoke(t.Context(), []byte(`{"n":20000}`))
	var te *tools.Error
	if !errors.As(err, &te) || te.Class != tools.ErrClassPermanent || !strings.Contains(te.Message, "larger than 10000 bytes") {
		t.Errorf("got %v", err)
	}
}

// What a server says of itself and of its tools may hold what it was given.
func TestSecretsInWhatAServerLists(t *testing.T) {
	t.Parallel()
	var log peertest.Log
	cfg := childConfig(t, "leaky")
	cfg.Env["API_TOKEN"] = "s3cr3t-value"
	cfg.Logger = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s := start(t, cfg)
	discover(t, s)
	refused := s.Refused()
	if len(refused) != 1 || !errors.Is(refused[0].Err, tools.ErrToolDuplicateName) {
		t.Fatalf("refused: %v", refused)
	}
	for what, text := range map[string]string{"name": refused[0].Name, "reason": refused[0].Err.Error(), "log": log.String()} {
		if strings.Contains(text, "s3cr3t") || !strings.Contains(text, "[hidden]") {
			t.Errorf("%s: %s", what, text)
		}
	}
	if !strings.Contains(log.String(), `name\":\"[hidden]`) {
		t.Errorf("the server's info is not in the log: %s", log.String())
	}
}
