package docs

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/mcpserver"
	"github.com/toolcrib/toolcrib/skill"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/flow"
	"github.com/toolcrib/toolcrib/turn"
)

// mentions fails the test for every word that a page does not have between backticks.
func mentions(t *testing.T, name string, words []string) {
	t.Helper()
	if len(words) == 0 {
		t.Fatalf("nothing is to be looked for in %s", name)
	}
	text := readPage(t, name).text
	for _, word := range words {
		if !strings.Contains(text, "`"+word+"`") {
			t.Errorf("%s does not mention `%s`", name, word)
		}
	}
}

func TestConfigurationKeys(t *testing.T) {
	var root map[string]any
	if err := json.Unmarshal(gateway.Schema(), &root); err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	collect(root, keys)
	name := "docs/configuration.md"
	var all []string
	for key := range keys {
		all = append(all, key)
	}
	slices.Sort(all)
	text := readPage(t, name).text
	for _, key := range all {
		if !strings.Contains(text, "`"+key+"`") && !strings.Contains(text, "."+key+"`") {
			t.Errorf("%s does not mention `%s`", name, key)
		}
	}

	// A row of a table begins with the key that it describes.
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z0-9_.]+)`").FindAllStringSubmatch(text, -1) {
		if last := row[1][strings.LastIndexByte(row[1], '.')+1:]; !keys[last] {
			t.Errorf("%s describes the key %s, which does not exist", name, row[1])
		}
	}
}

// collect adds the names of all properties of a JSON Schema.
func collect(schema map[string]any, keys map[string]bool) {
	properties, _ := schema["properties"].(map[string]any)
	for key, value := range properties {
		keys[key] = true
		if below, ok := value.(map[string]any); ok {
			collect(below, keys)
		}
	}
	for _, inner := range []string{"items", "additionalProperties"} {
		if below, ok := schema[inner].(map[string]any); ok {
			collect(below, keys)
		}
	}
}

func TestEventTypes(t *testing.T) {
	registry, err := events.NewRegistry(slices.Concat(tools.EventDefinitions(), turn.EventDefinitions(), skill.EventDefinitions(), flow.EventDefinitions())...)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, typ := range registry.Types() {
		names = append(names, string(typ))
	}
	mentions(t, "docs/events.md", names)

	var fields []string
	for _, payload := range []any{
		tools.ToolInvokedPayload{}, tools.ToolCompletedPayload{}, tools.ToolFailedPayload{}, tools.ToolInvalidArgsPayload{},
		tools.ToolPolicyExhaustedPayload{}, tools.ToolDeniedPayload{}, tools.ToolUnknownPayload{}, tools.ToolForgedArgsPayload{},
		tools.CatalogChangedPayload{}, tools.ContextLeakPayload{}, turn.ArgsUnwrappedPayload{}, events.MissedPayload{}, events.Event{},
		flow.StartedPayload{}, flow.NodeEndedPayload{}, flow.CompletedPayload{}, flow.FailedPayload{}, flow.BudgetExceededPayload{},
		skill.StartedPayload{}, skill.StepEndedPayload{}, skill.CompletedPayload{}, skill.FailedPayload{},
	} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(payload)) {
			if !field.Anonymous {
				fields = append(fields, field.Name)
			}
		}
	}
	mentions(t, "docs/events.md", fields)
}

var (
	commandRow = regexp.MustCompile(`(?m)^  ([a-z]+) {2,}\S`)
	flagRow    = regexp.MustCompile(`(?m)^ +(?:-\w, )?    ?--([a-z-]+)|^ +-\w, --([a-z-]+)`)
)

func TestCommandsAndFlags(t *testing.T) {
	binary := peertest.Build(t, "./cmd/toolcrib")
	help := func(args ...string) string {
		out, err := exec.Command(binary, append(args, "--help")...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	_, table, _ := strings.Cut(help(), "Available Commands:")
	var words []string
	for _, row := range commandRow.FindAllStringSubmatch(table, -1) {
		words = append(words, "toolcrib "+row[1])
		for _, flag := range flagRow.FindAllStringSubmatch(help(row[1]), -1) {
			words = append(words, "--"+flag[1]+flag[2])
		}
	}
	slices.Sort(words)
	words = slices.DeleteFunc(slices.Compact(words), func(w string) bool { return w == "toolcrib help" || w == "--help" })
	if len(words) < 15 {
		t.Fatalf("the help lists only %q", words)
	}
	mentions(t, "docs/cli.md", words)
	front := readPage(t, "README.md").text
	for _, word := range words {
		name, command := strings.CutPrefix(word, "toolcrib ")
		if command && !regexp.MustCompile("`"+name+"[` ]").MatchString(front) {
			t.Errorf("README.md does not mention `%s`", name)
		}
	}
}

// The codes of failures, as the sources of the two entrances declare them.
func TestErrorCodes(t *testing.T) {
	read := func(file string) []byte {
		text, err := os.ReadFile(filepath.Join(peertest.Root(t), filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	var codes []string
	for _, m := range regexp.MustCompile(`Code = "([a-z_]+)"`).FindAllSubmatch(read("api/error.go"), -1) {
		codes = append(codes, string(m[1]))
	}
	mentions(t, "docs/errors.md", codes)
	codes = nil
	for _, m := range regexp.MustCompile(`\{tools\.Err\w+, "([a-z_]+)"`).FindAllSubmatch(read("mcpserver/failure.go"), -1) {
		codes = append(codes, string(m[1]))
	}
	mentions(t, "docs/errors.md", codes)

	var sentinels []string
	for _, m := range regexp.MustCompile(`(?m)^\t(Err\w+) += errors\.New`).FindAllSubmatch(read("tools/error.go"), -1) {
		sentinels = append(sentinels, string(m[1]))
	}
	mentions(t, "docs/errors.md", sentinels)

	info, err := json.Marshal(mcpserver.ErrorInfo{RetryAfterMS: 1})
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if err := json.NewDecoder(bytes.NewReader(info)).Decode(&members); err != nil {
		t.Fatal(err)
	}
	for member := range members {
		mentions(t, "docs/errors.md", []string{member})
	}
}

func TestDirectDependencies(t *testing.T) {
	root := peertest.Root(t)
	files, err := filepath.Glob(filepath.Join(root, "*", "*", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	var direct, all []string
	for _, file := range append(files, filepath.Join(root, "go.mod")) {
		for _, r := range required(t, file) {
			all = append(all, r.Mod.Path)
			if !r.Indirect && !strings.HasPrefix(r.Mod.Path, "github.com/toolcrib/") {
				direct = append(direct, r.Mod.Path)
			}
		}
	}
	mentions(t, "docs/dependencies.md", direct)
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)`").FindAllStringSubmatch(readPage(t, "docs/dependencies.md").text, -1) {
		if !slices.Contains(all, row[1]) {
			t.Errorf("docs/dependencies.md lists %s, which no go.mod requires", row[1])
		}
	}
}

// required returns what a go.mod requires.
func required(t *testing.T, file string) []*modfile.Require {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	mod, err := modfile.Parse(file, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	return mod.Require
}

// Whoever begins at the README finds every page, by way of the index at most, and every example.
func TestEveryPageIsLinked(t *testing.T) {
	const front, index = "README.md", "docs/README.md"
	linked := map[string]bool{}
	for _, name := range []string{front, index} {
		for _, m := range link.FindAllStringSubmatch(readPage(t, name).text, -1) {
			linked[path.Join(path.Dir(name), m[1])] = true
		}
	}
	root := os.DirFS(peertest.Root(t))
	for _, pattern := range []string{"docs/*.md", "docs/design/*.md", "examples/*"} {
		found, err := fs.Glob(root, pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d found, %v", pattern, len(found), err)
		}
		for _, name := range found {
			if name != "examples/internal" && !linked[name] && !linked[name+"/main.go"] {
				t.Errorf("neither %s nor %s links %s", front, index, name)
			}
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)#]+)(?:#[^)]*)?\)`)

func TestLinksLeadSomewhere(t *testing.T) {
	for _, p := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(p.text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			path := filepath.Join(peertest.Root(t), filepath.Dir(p.name), m[1])
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", p.name, m[1])
			}
		}
	}
}
