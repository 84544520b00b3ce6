// Package docs holds the documentation to the program: what the pages tell a reader to run is run, the code
// and the configuration that they show is read, and what must be described is looked for.
//
// The first line of a fenced block says what is done with it:
//
//	```sh           is run and must succeed; all blocks of a page share a folder
//	```sh serve     is started in the background, until the page ends
//	```sh npm       is run only under the build tag peers
//	```output       is what the block before it prints; … stands for anything
//	```yaml         is a valid configuration; "# NAME.yaml" in its first line saves it in the folder
//	```yaml manifest  is a valid HTTP manifest, and saved likewise
//	```json         is JSON
//	```go           stands in a file below examples/
//	```text         is not looked at
package docs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/internal/peertest"
)

// generated are pages that other tests write and check.
var generated = []string{"conformance.md", "performance.md"}

// block is one fenced block of a page.
type block struct {
	kind string // what follows the fence
	text string
	line int // of the fence, counted from 1
}

// page is one Markdown file.
type page struct {
	name   string // relative to the module's root
	text   string
	blocks []block
}

// pages reads the README, the contributors' page and everything directly below docs.
func pages(t *testing.T) []page {
	t.Helper()
	root := peertest.Root(t)
	names := []string{"README.md", "CONTRIBUTING.md"}
	found, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		if !slices.Contains(generated, filepath.Base(path)) {
			names = append(names, filepath.Join("docs", filepath.Base(path)))
		}
	}
	var out []page
	for _, name := range names {
		out = append(out, readPage(t, name))
	}
	return out
}

func readPage(t *testing.T, name string) page {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(peertest.Root(t), filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	p := page{name: filepath.ToSlash(name), text: string(text)}
	var open *block
	for i, line := range strings.Split(p.text, "\n") {
		kind, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && open == nil:
			open = &block{kind: strings.TrimSpace(kind), line: i + 1}
		case fence:
			p.blocks = append(p.blocks, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		}
	}
	if open != nil {
		t.Fatalf("%s:%d: the block does not end", p.name, open.line)
	}
	return p
}

// file is the name that the first line of a block gives it, or empty.
func (b *block) file() string {
	first, _, _ := strings.Cut(b.text, "\n")
	name, comment := strings.CutPrefix(first, "# ")
	if comment && filepath.Base(name) == name && filepath.Ext(name) == ".yaml" {
		return name
	}
	return ""
}

func TestEveryBlockIsOfAKnownKind(t *testing.T) {
	known := []string{"sh", "sh serve", "sh npm", "output", "yaml", "yaml manifest", "json", "go", "text"}
	for _, p := range pages(t) {
		for i, b := range p.blocks {
			if !slices.Contains(known, b.kind) {
				t.Errorf("%s:%d: a block of kind %q: expected one of %s", p.name, b.line, b.kind, strings.Join(known, ", "))
			}
			if b.kind == "output" && (i == 0 || !strings.HasPrefix(p.blocks[i-1].kind, "sh")) {
				t.Errorf("%s:%d: output that does not follow a block of sh", p.name, b.line)
			}
		}
	}
}
