package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/internal/peertest"
)

// What a page says of this program is run with a binary that is on the PATH, and with a free port.
const (
	fromSource  = "go run ./cmd/toolcrib"
	documentURL = "http://127.0.0.1:7711"
)

// secrets are the variables that the pages' configurations refer to.
var secrets = []string{"GITHUB_TOKEN=secret-1", "CRM_TOKEN=secret-2", "PETS_KEY=secret-3", "TRAVEL_TOKEN=secret-4", "WEATHER_KEY=secret-5"}

func TestCommandsOfThePages(t *testing.T) {
	binary := peertest.Build(t, "./cmd/toolcrib")
	named := standIns(t)
	for _, p := range pages(t) {
		t.Run(filepath.Base(p.name), func(t *testing.T) {
			t.Parallel()
			r := &reader{dir: t.TempDir(), path: filepath.Dir(binary), last: named}
			node, npm := npmPath(t, r.dir)
			if npm {
				r.npm, r.path = true, r.path+string(os.PathListSeparator)+node
			}
			r.follow(t, p)
		})
	}
}

// standIns is a folder of programs that the pages' configurations name and that
// nothing but validation looks for.
func standIns(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "npx"), []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// reader does what a page says, block by block, in a folder of its own.
type reader struct {
	dir    string
	path   string // folders of programs, before those of the environment
	last   string // a folder of programs, behind those of the environment
	npm    bool   // blocks that need npm are run
	server string // the URL of what serves, or empty
}

func (r *reader) follow(t *testing.T, p page) {
	printed, ran := "", false
	for _, b := range p.blocks {
		at := fmt.Sprintf("%s:%d", p.name, b.line)
		switch b.kind {
		case "yaml", "yaml manifest":
			r.save(t, &b)
		case "sh serve":
			r.serve(t, b.text)
		case "sh", "sh npm":
			if ran = b.kind == "sh" || r.npm; ran {
				printed = r.run(t, at, b.text)
			}
		case "output":
			want := r.actual(b.text)
			if ran && !pattern(want).MatchString(printed) {
				t.Errorf("%s: the commands before it print\n%s\nwant\n%s", at, printed, want)
			}
		}
	}
}

func (r *reader) save(t *testing.T, b *block) {
	t.Helper()
	if b.file() == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(r.dir, b.file()), []byte(b.text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// actual is a text of a page with what stands for its words here.
func (r *reader) actual(text string) string {
	text = strings.ReplaceAll(text, fromSource, "toolcrib")
	if r.server != "" {
		text = strings.ReplaceAll(text, documentURL, r.server)
	}
	return text
}

func (r *reader) command(script string) *exec.Cmd {
	cmd := exec.Command("sh", "-e", "-c", r.actual(script))
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "PATH="+strings.Join([]string{r.path, os.Getenv("PATH"), r.last}, string(os.PathListSeparator)), "HOME="+r.dir)
	cmd.Env = append(cmd.Env, secrets...)
	if r.server != "" {
		cmd.Env = append(cmd.Env, "TOOLCRIB_SERVER="+r.server)
	}
	return cmd
}

// serve starts the one command of a block on a free port.
func (r *reader) serve(t *testing.T, line string) {
	t.Helper()
	started := peertest.Start(t, r.command("exec "+strings.TrimSpace(line)+" --listen 127.0.0.1:0"))
	r.server = started.Line(t, `^listening on (http://\S+)`)[1]
}

func (r *reader) run(t *testing.T, at, script string) string {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil && strings.Contains(script, "curl ") {
		t.Skipf("%s and what follows it is left out: there is no curl", at)
	}
	out, err := r.command(script).CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s%s", at, err, script, out)
	}
	return string(out)
}

// pattern matches what a page shows: … stands for anything in a line, and alone for any lines.
func pattern(want string) *regexp.Regexp {
	var b strings.Builder
	for line := range strings.Lines(want) {
		if line == "…\n" {
			b.WriteString(`(?:.*\n)*`)
			continue
		}
		b.WriteString(strings.ReplaceAll(regexp.QuoteMeta(strings.TrimRight(line, "\n")), "…", ".*") + `\n`)
	}
	return regexp.MustCompile(`\A` + b.String() + `\z`)
}

func TestPattern(t *testing.T) {
	for _, c := range []struct {
		want, printed string
		matches       bool
	}{
		{"a.b\n", "a.b\n", true},
		{"a.b\n", "axb\n", false},
		{"took … ms\n", "took 12 ms\n", true},
		{"a\n…\nz\n", "a\nb\nc\nz\n", true},
		{"a\n", "a\nb\n", false},
	} {
		if got := pattern(c.want).MatchString(c.printed); got != c.matches {
			t.Errorf("%q against %q: %t", c.printed, c.want, got)
		}
	}
}
