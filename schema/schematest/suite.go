// Package schematest runs the JSON-Schema-Test-Suite against anything that
// validates documents.
package schematest

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// suiteModule is the module whose test data holds the suite.
const suiteModule = "github.com/google/jsonschema-go"

// drafts are the folders of the suite that are run, with the dialect that their
// schemas are in when they do not say so themselves.
var drafts = map[string]string{
	"draft2020-12": "https://json-schema.org/draft/2020-12/schema",
	"draft7":       "http://json-schema.org/draft-07/schema#",
}

// allDrafts are those of the suite as its authors publish it.
var allDrafts = map[string]string{
	"draft2020-12": drafts["draft2020-12"],
	"draft2019-09": "https://json-schema.org/draft/2019-09/schema",
	"draft7":       drafts["draft7"],
	"draft6":       "http://json-schema.org/draft-06/schema#",
	"draft4":       "http://json-schema.org/draft-04/schema#",
}

// leftOut are files of optional tests that ask for something else: escapes of
// Unicode classes by their long names, international names, a draft 4 in which
// 1.0 is no integer, and a look into encoded content.
var leftOut = []string{"ecmascript-regex", "idn-email", "idn-hostname", "zeroTerminatedFloats", "content"}

// A Case is one test of the suite.
type Case struct {
	// Schema names its dialect in $schema, unless it is a boolean.
	Schema json.RawMessage
	// Doc is the document to validate.
	Doc json.RawMessage
	// Resources are what the schema may refer to, by absolute URL.
	Resources map[string]json.RawMessage
	// AssertFormat says that the test expects formats to be asserted.
	AssertFormat bool
}

// Suite runs every required test of the suite for draft 2020-12 and draft 7, and
// asks valid whether the document of each satisfies its schema. It needs the go
// command, and the module github.com/google/jsonschema-go in the module cache or
// within reach.
func Suite(t *testing.T, valid func(t *testing.T, c Case) bool) {
	t.Helper()
	root := suiteDir(t)
	for draft, dialect := range drafts {
		t.Run(draft, func(t *testing.T) {
			resources := readRemotes(t, filepath.Join(root, "remotes"), draft, dialect)
			files, err := filepath.Glob(filepath.Join(root, draft, "*.json"))
			if err != nil || len(files) < 20 {
				t.Fatalf("found %d files of the suite: %v", len(files), err)
			}
			total := 0
			for _, file := range files {
				t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
					total += runFile(t, file, dialect, resources, valid)
				})
			}
			t.Logf("%s: %d tests", draft, total)
		})
	}
}

// Whole runs the suite as its authors publish it, below the given folder: the
// required tests of drafts 4 to 2020-12, and the optional ones but for a few
// files.
func Whole(t *testing.T, root string, valid func(t *testing.T, c Case) bool) {
	t.Helper()
	for draft, dialect := range allDrafts {
		t.Run(draft, func(t *testing.T) {
			resources := readRemotes(t, filepath.Join(root, "remotes"), "", dialect)
			total := 0
			for _, folder := range []string{"", "optional", "optional/format"} {
				files, err := filepath.Glob(filepath.Join(root, "tests", draft, folder, "*.json"))
				if err != nil || len(files) == 0 {
					t.Fatalf("found no files of the suite in %s: %v", folder, err)
				}
				asserted := func(t *testing.T, c Case) bool {
					c.AssertFormat = folder == "optional/format"
					return valid(t, c)
				}
				for _, file := range files {
					name := strings.TrimSuffix(filepath.Base(file), ".json")
					if folder != "" && slices.Contains(leftOut, name) {
						continue
					}
					t.Run(filepath.Join(folder, name), func(t *testing.T) {
						total += runFile(t, file, dialect, resources, asserted)
					})
				}
			}
			t.Logf("%s: %d tests", draft, total)
		})
	}
}

type group struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

func runFile(t *testing.T, file, dialect string, resources map[string]json.RawMessage,
	valid func(*testing.T, Case) bool) int {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var groups []group
	if err := json.Unmarshal(raw, &groups); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, g := range groups {
		c := Case{Schema: withDialect(g.Schema, dialect), Resources: resources}
		for _, tc := range g.Tests {
			n++
			t.Run(g.Description+"/"+tc.Description, func(t *testing.T) {
				c.Doc = tc.Data
				if got := valid(t, c); got != tc.Valid {
					t.Errorf("valid = %v, want %v\nschema %s\ndocument %s", got, tc.Valid, c.Schema, c.Doc)
				}
			})
		}
	}
	return n
}

// withDialect adds $schema to a schema that does not have it.
func withDialect(raw json.RawMessage, dialect string) json.RawMessage {
	if _, ok := rawjson.Get(raw, "$schema"); ok || rawjson.KindOf(raw) != rawjson.KindObject {
		return raw
	}
	out, err := rawjson.Set(raw, "$schema", rawjson.Quote(dialect))
	if err != nil {
		return raw
	}
	return out
}

// readRemotes reads the documents that the suite expects at
// http://localhost:1234/, but for those of other drafts than a given one.
func readRemotes(t *testing.T, dir, draft, dialect string) map[string]json.RawMessage {
	t.Helper()
	out := map[string]json.RawMessage{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		of, _, ofDraft := strings.Cut(rel, "/")
		if ofDraft = ofDraft && allDrafts[of] != ""; ofDraft && draft != "" && of != draft {
			return nil
		}
		raw, err := os.ReadFile(path)
		if ofDraft {
			raw = withDialect(raw, allDrafts[of])
		}
		out["http://localhost:1234/"+rel] = withDialect(raw, dialect)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// suiteDir returns where the suite lies, and fetches its module if need be.
func suiteDir(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "mod", "download", "-json", suiteModule).Output()
	var module struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &module); jsonErr != nil || module.Dir == "" {
		t.Fatalf("the test suite in module %s cannot be had: %v %s", suiteModule, err, module.Error)
	}
	return filepath.Join(module.Dir, "jsonschema", "testdata")
}
