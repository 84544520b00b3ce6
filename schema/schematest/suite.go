// Package schematest runs the JSON-Schema-Test-Suite against anything that
// validates documents.
package schematest

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
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

// A Case is one test of the suite.
type Case struct {
	// Schema names its dialect in $schema, unless it is a boolean.
	Schema json.RawMessage
	// Doc is the document to validate.
	Doc json.RawMessage
	// Resources are what the schema may refer to, by absolute URL.
	Resources map[string]json.RawMessage
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
// http://localhost:1234/, but for those of other drafts.
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
		if strings.HasPrefix(rel, "draft") && !strings.HasPrefix(rel, draft+"/") {
			return nil
		}
		raw, err := os.ReadFile(path)
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
