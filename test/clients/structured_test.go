//go:build peers

package clients

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/internal/peertest"
)

// The TypeScript SDK holds each result to the schema that its tool lists. Results that are kept aside pass too.
func TestSDKClientValidatesResults(t *testing.T) {
	config := filepath.Join(t.TempDir(), "toolcrib.yaml")
	if err := os.WriteFile(config, []byte("tools: {built_in: [text.echo]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	serve := peertest.Start(t, exec.Command(peertest.Build(t, "./cmd/toolcrib"), "serve", "-c", config, "--listen", "127.0.0.1:0"))
	url := serve.Line(t, `^listening on (http://\S+)`)[1] + "/mcp"
	for text, want := range map[string]string{"short": `"text":"short"`, strings.Repeat("a long line\n", 4000): `"toolcrib_artifacts":[{`} {
		report := runSDK(t, sdkJob{URL: url, Call: sdkCall{Name: "text.echo", Arguments: map[string]any{"text": text}}})
		if report.Error != "" || report.Result == nil || !strings.Contains(encode(t, report.Result.StructuredContent), want) {
			t.Errorf("%.20q: %s, %.300s", text, report.Error, encode(t, report.Result))
		}
	}
}
