package docs

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/tools/httptool"
)

func TestConfigurationsAreValid(t *testing.T) {
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			var err error
			switch b.kind {
			case "yaml":
				_, err = gateway.Parse(p.name, []byte(b.text))
			case "yaml manifest":
				known := func(string) (string, error) { return "secret", nil }
				_, err = httptool.NewManifest(httptool.ManifestConfig{File: p.name, Content: []byte(b.text), Secret: known})
			case "json":
				if !json.Valid([]byte(b.text)) {
					t.Errorf("%s:%d: this is not JSON", p.name, b.line)
				}
			}
			if err != nil {
				t.Errorf("%s:%d: lines count from the block on:\n%v", p.name, b.line, err)
			}
		}
	}
}

// Code in a page stands in an example too, where it is compiled and tested. Indentation does not count.
func TestCodeStandsInAnExample(t *testing.T) {
	code := examples(t)
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.kind == "go" && !strings.Contains(code, flat(b.text)) {
				t.Errorf("%s:%d: no file below examples/ holds this code", p.name, b.line)
			}
		}
	}
}

// examples is the code of all examples.
func examples(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(filepath.Join(peertest.Root(t), "examples"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		all.WriteString(flat(string(text)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// flat removes what indentation adds.
func flat(code string) string {
	var b strings.Builder
	for line := range strings.Lines(code) {
		b.WriteString(strings.TrimSpace(line) + "\n")
	}
	return b.String()
}
