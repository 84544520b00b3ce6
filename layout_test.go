package toolcrib_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/toolcrib/toolcrib"

// ground is what nearly everything may know: who calls, what happened, JSON, and the vocabulary of tools.
var ground = []string{"identity", "events", "schema", "internal/rawjson", "tools"}

// imports lists for each package what of this module its code, tests aside, may import. The order is that
// of the layers: a package knows only what stands before its own layer, a stage never knows a stage, and a
// driver never knows a driver.
var imports = map[string][]string{
	"": nil,

	"internal/rawjson":         nil,
	"internal/netguard":        nil,
	"internal/mask":            nil,
	"internal/httpbody":        nil,
	"internal/effort":          nil,
	"internal/jsontemplate":    nil,
	"internal/nearest":         nil,
	"internal/mainpkg":         nil,
	"internal/spread":          nil,
	"internal/crew":            nil,
	"internal/wait":            nil,
	"internal/heap":            nil,
	"internal/loglimit":        nil,
	"internal/disk":            nil,
	"internal/httpfault":       nil,
	"internal/credential":      nil,
	"internal/expr":            {"internal/rawjson"},
	"internal/yamldoc":         nil,
	"identity":                 nil,
	"schema":                   {"internal/rawjson", "internal/effort"},
	"schema/schematest":        {"internal/rawjson"},
	"internal/mcpwire":         {"internal/rawjson", "internal/httpbody"},
	"events":                   {"identity"},
	"tools":                    {"identity", "events", "schema", "internal/rawjson", "internal/spread"},
	"store":                    {"identity"},
	"store/sqlstore":           {"identity", "store", "internal/disk"},
	"store/storetest":          {"identity", "store"},
	"artifacts":                with(ground, "store", "internal/effort", "internal/disk"),
	"registry/stream":          nil,
	"view":                     with(ground, "internal/spread"),
	"tools/search":             with(ground, "tools/search/lexicon"),
	"tools/search/lexicon":     nil,
	"tools/search/lexicon/gen": {"tools/search/lexicon"},
	"tools/search/eval":        {"tools", "tools/search"},
	"adapter/subset":           {"internal/rawjson", "internal/effort"},
	"adapter":                  with(ground, "adapter/subset"),
	"tools/inproc":             ground,
	"turn":                     with(ground, "view", "adapter", "internal/nearest"),
	"tools/auth":               with(ground, "internal/mask", "internal/netguard"),
	"tools/builtin":            with(ground, "view", "artifacts", "tools/inproc", "tools/search"),
	"tools/httptool":           with(ground, "internal/credential", "internal/httpfault", "internal/jsontemplate", "internal/mask", "internal/nearest", "internal/netguard"),
	"tools/mcptool":            with(ground, "internal/httpfault", "internal/mcpwire", "internal/mask", "internal/spread"),
	"tools/a2atool":            with(ground, "internal/credential", "internal/httpfault", "internal/mask", "internal/netguard"),
	"exec":                     with(ground, "internal/expr"),
	"skill":                    with(ground, "internal/expr", "internal/wait", "internal/yamldoc", "exec"),
	"tools/flow":               with(ground, "internal/expr", "internal/wait", "internal/yamldoc", "exec"),
	"tools/flow/runs":          {"identity", "store", "tools/flow"},
	"tools/flow/flowtest":      {"identity", "tools", "tools/flow"},
	"set":                      with(ground, "adapter"),
	"mcpserver":                with(ground, "view", "artifacts", "internal/mcpwire"),
	"api":                      with(ground, "view", "artifacts", "registry", "internal/nearest"),
	"gateway":                  with(ground, "internal/expr", "internal/yamldoc", "exec", "skill", "tools/flow", "tools/flow/runs", "view", "artifacts", "store", "store/sqlstore", "set", "internal/httpbody", "internal/mcpwire", "internal/nearest", "tools/auth", "tools/search", "tools/builtin", "tools/inproc", "tools/httptool", "tools/mcptool", "tools/a2atool", "turn", "mcpserver", "api", "registry", "registry/stream", "registry/stream/connect", "registry/stream/natsserver", "registry/stream/natsstream"),
	"gateway/gatewaytest":      {"gateway"},
	"gateway/demo":             {"gateway", "tools", "tools/builtin", "tools/inproc"},
	"cmd/toolcrib":             {"gateway", "gateway/demo", "adapter", "artifacts", "identity", "events", "tools", "tools/inproc", "mcpserver", "api", "internal/heap", "internal/mcpwire", "internal/nearest", "internal/rawjson", "registry", "registry/provider", "registry/stream", "registry/stream/connect"},
	"internal/oauthtest":       nil,
	"internal/peertest":        {"internal/mainpkg", "internal/disk"},
	"tools/toolstest":          ground,

	"registry/stream/natsstream":  {"registry/stream", "internal/crew", "internal/loglimit"},
	"registry/stream/natsserver":  {"registry/stream", "registry/stream/natsstream", "internal/disk"},
	"registry/stream/redisstream": {"registry/stream", "internal/crew", "internal/loglimit"},
	"registry/stream/connect":     {"registry/stream", "registry/stream/natsstream", "registry/stream/redisstream"},
	"registry/stream/streamtest":  {"registry/stream"},
	"registry":                    with(ground, "internal/crew", "internal/loglimit", "internal/wait", "store", "registry/stream"),
	"registry/provider":           with(ground, "internal/crew", "internal/wait", "registry", "registry/stream"),
}

// testSupport are packages that only tests may import.
var testSupport = []string{"gateway/gatewaytest", "internal/oauthtest", "internal/peertest", "schema/schematest", "tools/flow/flowtest", "tools/toolstest", "store/storetest", "registry/stream/streamtest"}

// testTrees hold tests and their programs. They may import what they test.
var testTrees = []string{"test", "bench", "examples"}

// vague are names that say nothing about what a file or folder holds.
var vague = []string{"util", "utils", "helper", "helpers", "common", "type", "types", "misc"}

func with(base []string, more ...string) []string {
	return append(slices.Clone(base), more...)
}

// source is one parsed Go file of the module.
type source struct {
	path string // slash-separated, relative to the module's root
	file *ast.File
}

func (s source) pkg() string {
	if dir := path.Dir(s.path); dir != "." {
		return dir
	}
	return ""
}

func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// parseModule parses every Go file of the module, whatever its build constraints, and skips nested modules,
// test data, and folders that Go skips.
func parseModule(t *testing.T, fset *token.FileSet) []source {
	t.Helper()
	var sources []source
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skipFolder(name)
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		sources = append(sources, source{path: filepath.ToSlash(name), file: file})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sources
}

func skipFolder(name string) error {
	base := filepath.Base(name)
	if name == "." {
		return nil
	}
	if base == "testdata" || base == "node_modules" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return filepath.SkipDir
	}
	if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
		return filepath.SkipDir
	}
	return nil
}

func inTestTree(pkg string) bool {
	tree, _, _ := strings.Cut(pkg, "/")
	return slices.Contains(testTrees, tree)
}

// ownImports are the packages of this module that a file imports, relative to the module's root.
func ownImports(file *ast.File) []string {
	var own []string
	for _, spec := range file.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		if target == module {
			own = append(own, "")
		} else if rel, ok := strings.CutPrefix(target, module+"/"); ok {
			own = append(own, rel)
		}
	}
	return own
}

func TestImportsPointDown(t *testing.T) {
	seen := map[string]bool{}
	for _, src := range parseModule(t, token.NewFileSet()) {
		pkg := src.pkg()
		seen[pkg] = true
		if inTestTree(pkg) || src.isTest() {
			continue
		}
		allowed, listed := imports[pkg]
		if !listed {
			t.Errorf("%s: package %q is not in the list of layout_test.go", src.path, pkg)
			continue
		}
		for _, target := range ownImports(src.file) {
			if !slices.Contains(allowed, target) {
				t.Errorf("%s imports %q, which package %q may not know", src.path, target, pkg)
			}
			if slices.Contains(testSupport, target) {
				t.Errorf("%s imports %q, which only tests may", src.path, target)
			}
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(imports)) {
		if !seen[pkg] {
			t.Errorf("layout_test.go lists %q, which does not exist", pkg)
		}
	}
}

// Whoever looks for a package's place finds it in the page on the layout.
func TestPageOnTheLayoutHasEveryPackage(t *testing.T) {
	const page = "docs/design/layout.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(string(text))
	for _, pkg := range slices.Sorted(maps.Keys(imports)) {
		if pkg != "" && !slices.Contains(words, pkg) {
			t.Errorf("%s does not mention %s", page, pkg)
		}
	}
}

// Listing a package above itself would let two packages know each other, which Go refuses only directly.
func TestListedImportsAreLayers(t *testing.T) {
	var visit func(pkg string, above []string)
	visit = func(pkg string, above []string) {
		if slices.Contains(above, pkg) {
			t.Fatalf("the listed imports go round: %v, %s", above, pkg)
		}
		for _, target := range imports[pkg] {
			visit(target, append(slices.Clone(above), pkg))
		}
	}
	for pkg := range imports {
		visit(pkg, nil)
	}
}

func TestNoInitFunctions(t *testing.T) {
	fset := token.NewFileSet()
	for _, src := range parseModule(t, fset) {
		for _, decl := range src.file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s: an init function; compose in the gateway instead", fset.Position(fn.Pos()))
			}
		}
	}
}

// A test waits for the thing itself, or for the fake time of a testing/synctest bubble.
func TestTestsDoNotSleep(t *testing.T) {
	fset := token.NewFileSet()
	for _, src := range parseModule(t, fset) {
		if !src.isTest() && !inTestTree(src.pkg()) && !slices.Contains(testSupport, src.pkg()) {
			continue
		}
		for _, call := range sleeps(src.file) {
			t.Errorf("%s: time.Sleep outside a synctest bubble; wait for the thing itself", fset.Position(call))
		}
	}
}

// sleeps finds the calls of time.Sleep that do not stand inside an argument of a call to package synctest.
func sleeps(file *ast.File) []token.Pos {
	var found []token.Pos
	ast.Inspect(file, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		if isSelector(call.Fun, "synctest", "") {
			return false
		}
		if isSelector(call.Fun, "time", "Sleep") {
			found = append(found, call.Pos())
		}
		return true
	})
	return found
}

// isSelector reports whether expr is pkg.name; an empty name stands for any.
func isSelector(expr ast.Expr, pkg, name string) bool {
	selector, ok := expr.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	ident, ok := selector.X.(*ast.Ident)
	return ok && ident.Name == pkg && (name == "" || selector.Sel.Name == name)
}

func TestNamesSaySomething(t *testing.T) {
	for _, src := range parseModule(t, token.NewFileSet()) {
		base := strings.TrimSuffix(strings.TrimSuffix(path.Base(src.path), ".go"), "_test")
		for _, name := range append(strings.Split(src.pkg(), "/"), base) {
			if slices.Contains(vague, name) {
				t.Errorf("%s: the name %q says nothing about what is in it", src.path, name)
			}
		}
	}
}
