package gateway_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/toolcrib/toolcrib/gateway"
)

var update = flag.Bool("update", false, "rewrite the expected errors of testdata/bad")

// Each file of testdata/bad is a configuration and the exact faults that are
// found in it, some only when the gateway starts.
func TestBadConfigs(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test data: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(archive.Files) != 2 || archive.Files[1].Name != "faults" {
				t.Fatal("expected a configuration and its faults")
			}
			got := faultsOf(archive.Files[0]) + "\n"
			if *update {
				archive.Files[1].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(archive.Files[1].Data), got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func faultsOf(file txtar.File) string {
	cfg, err := gateway.Parse(file.Name, file.Data)
	if err == nil {
		err = cfg.Unavailable()
	}
	if err == nil {
		return "none"
	}
	return err.Error()
}

func TestGoodConfigs(t *testing.T) {
	files, err := filepath.Glob("testdata/good/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test data: %v", err)
	}
	for _, file := range files {
		if _, err := gateway.Load(file); err != nil {
			t.Errorf("%v", err)
		}
	}
}

func TestEmptyConfigs(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing\n", "---\n", "tools:\n", "{}\n", "tools: {}\n", "tools:\n  built_in:\n", "\ufefftools: {}\r\n"} {
		if _, err := gateway.Parse("t.yaml", []byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAnchorsAndMerges(t *testing.T) {
	cfg, err := gateway.Parse("t.yaml", []byte(`
tools:
  mcp_servers:
    - &base
      name: a
      command: [run, a]
      policy: &p {max_attempts: 2, timeout_ms: 5}
    - <<: *base
      name: b
      policy: {<<: *p, timeout_ms: 7}
    - <<: [{exclude: [x]}, *base]
      name: c
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []gateway.MCPServer{
		{Name: "a", Command: []string{"run", "a"}, Policy: &gateway.Policy{MaxAttempts: 2, TimeoutMS: 5}},
		{Name: "b", Command: []string{"run", "a"}, Policy: &gateway.Policy{MaxAttempts: 2, TimeoutMS: 7}},
		{Name: "c", Command: []string{"run", "a"}, Policy: &gateway.Policy{MaxAttempts: 2, TimeoutMS: 5}, Exclude: []string{"x"}},
	}
	if diff := cmp.Diff(want, cfg.Tools.MCPServers); diff != "" {
		t.Error(diff)
	}
}

// bombs are files whose reading must end at once.
func bombs() map[string]string {
	var aliases strings.Builder
	aliases.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x]\n")
	for i := range 20 {
		n, p := string(rune('b'+i)), string(rune('a'+i))
		aliases.WriteString(n + "0: &" + n + "0 [" + strings.Repeat("*"+p+"0,", 9) + "]\n")
	}
	return map[string]string{
		"aliases":   aliases.String(),
		"merges":    "a: &a {x: 1, <<: *a}\n",
		"itself":    "a: &a [*a]\n",
		"brackets":  strings.Repeat("[", 100_000),
		"braces":    strings.Repeat("{a: ", 30_000),
		"dashes":    strings.Repeat("- ", 100_000),
		"questions": strings.Repeat("? ", 100_000),
		"indents":   indents(1400),
		"huge":      strings.Repeat("# comment\n", 200_000),
		"keys":      strings.Repeat("tools: {}\n", 20_000),
		"twice":     strings.Repeat("tools: {}\n", 5_000),
	}
}

func indents(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func TestBombs(t *testing.T) {
	for name, text := range bombs() {
		t.Run(name, func(t *testing.T) {
			_, err := gateway.Parse("t.yaml", []byte(text))
			var faults gateway.ConfigErrors
			if !errors.As(err, &faults) {
				t.Fatalf("err = %v, want ConfigErrors", err)
			}
			if len(err.Error()) > 20_000 {
				t.Errorf("the error is %d bytes long", len(err.Error()))
			}
		})
	}
}

func TestManyFaultsAreCounted(t *testing.T) {
	_, err := gateway.Parse("t.yaml", []byte("tools:\n  built_in:\n"+strings.Repeat("    - nope\n", 60)))
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 51 || lines[50] != "… and 10 more" {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}

// No value of the file that could be a secret appears in a fault.
func TestFaultsHoldNoSecrets(t *testing.T) {
	const canary = "s3cr3t-c4n4ry"
	for _, text := range []string{
		"tools: {openapi: [{name: a, document: d, auth: {kind: bearer, secret: CANARY}}]}",
		"tools: {openapi: [{name: a, document: d, auth: {kind: bearer, secret: {CANARY: 1}}}]}",
		"tools: {openapi: [{name: a, document: d, auth: {kind: bearer, secret: [CANARY]}}]}",
		"tools: {openapi: [{name: a, document: 'https://me:CANARY@host/', headers: {X-Api-Key: CANARY}}]}",
		"tools: {mcp_servers: [{name: a, url: 'https://CANARY@host/', headers: {Authorization: Bearer CANARY}}]}",
		"tools: {mcp_servers: [{name: a, url: CANARY, headers: {Authorization: '${CANARY'}}]}",
		"tools: {mcp_servers: [{name: a, command: [x], env: {API_KEY: CANARY, B: '${A B} CANARY'}}]}",
		"tools: {mcp_servers: [{name: a, command: [x], env: {API_KEY: 'CANARY\n",
		"tools: {mcp_servers: [{name: a, command: [x], env: {API_KEY: \"CANARY\\q\"}}]}",
		"a: CANARY: CANARY\n",
		"tools:\n  mcp_servers:\n  - name: a\n    headers:\n      Authorization: Bearer CANARY\n     x: y\n",
	} {
		text = strings.ReplaceAll(text, "CANARY", canary)
		_, err := gateway.Parse("t.yaml", []byte(text))
		if err == nil {
			t.Errorf("%s: no fault", text)
		} else if strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range bombs() {
		f.Add([]byte(text[:min(len(text), 2000)]))
	}
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.txtar"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			if data, err := os.ReadFile(file); err == nil {
				f.Add(data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg, err := gateway.Parse("t.yaml", data)
		if (cfg == nil) == (err == nil) {
			t.Fatalf("cfg %v, err %v", cfg, err)
		}
		if err == nil {
			_ = cfg.Unavailable()
		}
	})
}
