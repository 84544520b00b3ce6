package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/toolcrib/toolcrib/tools"
)

// banner tells a person who just started the demonstration what there is and
// how to use it.
func banner(list []tools.Tool, url string) string {
	var b strings.Builder
	b.WriteString("\nTools:\n")
	byTransport := map[tools.TransportKind][]string{}
	for _, t := range list {
		if t.Kind == tools.KindMeta {
			continue // those are for models
		}
		byTransport[t.Transport] = append(byTransport[t.Transport], t.Name)
	}
	for _, transport := range slices.Sorted(maps.Keys(byTransport)) {
		fmt.Fprintf(&b, "  %-10s %s\n", transport, strings.Join(byTransport[transport], ", "))
	}
	fmt.Fprintf(&b, `
Call one from another terminal:
  %s call text.echo '{"text":"hello"}' --server %s

Claude Code:
  claude mcp add --transport http toolcrib %[2]s/mcp
  or in .mcp.json: {"mcpServers":{"toolcrib":{"type":"http","url":"%[2]s/mcp"}}}
Cursor, in .cursor/mcp.json:
  {"mcpServers":{"toolcrib":{"url":"%[2]s/mcp"}}}
VS Code, in .vscode/mcp.json:
  {"servers":{"toolcrib":{"type":"http","url":"%[2]s/mcp"}}}

Ctrl-C ends it.
`, program(), url)
	return b.String()
}

const commandPackage = "github.com/toolcrib/toolcrib/cmd/toolcrib"

// program is how a person starts this program again in another terminal.
func program() string {
	self, err := os.Executable()
	if err != nil {
		return "toolcrib"
	}
	if goRan(self) {
		if b := readBuild(); b.Revision == "" && b.Version != "devel" {
			return "go run " + commandPackage + "@" + b.Version
		}
		return "go run ./cmd/toolcrib"
	}
	if found, err := exec.LookPath("toolcrib"); err == nil && sameFile(found, self) {
		return "toolcrib"
	}
	return quoted(self)
}

// goCacheEntry is the folder in which the go command keeps a built program.
var goCacheEntry = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9a-f]{64}-d$`)
})

// goRan reports whether an executable is one that go run made.
func goRan(path string) bool {
	dir := filepath.Dir(path)
	if goCacheEntry().MatchString(filepath.Base(dir)) {
		return true
	}
	return slices.ContainsFunc(strings.Split(filepath.ToSlash(dir), "/"), func(part string) bool {
		return strings.HasPrefix(part, "go-build")
	})
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return cmp.Or(errX, errY) == nil && os.SameFile(x, y)
}

// quoted makes a path one word of a shell.
func quoted(path string) string {
	if strings.ContainsAny(path, " '\"$`\\&;()<>|*?[]#~!") {
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}
