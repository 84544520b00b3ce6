package gateway_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"golang.org/x/tools/txtar"

	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/schema"
)

// The schema accepts what Parse accepts, and refuses what it says of single
// keys.
func TestSchemaAgreesWithParse(t *testing.T) {
	compiled, err := schema.Compile(gateway.Schema(), nil)
	if err != nil {
		t.Fatal(err)
	}
	good, _ := filepath.Glob("testdata/good/*.yaml")
	for _, file := range good {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := compiled.Check(asJSON(t, text)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	for _, name := range []string{"unknown_keys", "wrong_types", "bad_values", "required", "root"} {
		archive, err := txtar.ParseFile("testdata/bad/" + name + ".txtar")
		if err != nil {
			t.Fatal(err)
		}
		if compiled.Check(asJSON(t, archive.Files[0].Data)) == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func asJSON(t *testing.T, text []byte) []byte {
	t.Helper()
	out, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSchemaDescribesEveryKey(t *testing.T) {
	var walk func(path string, s map[string]any)
	walk = func(path string, s map[string]any) {
		for _, inner := range []string{"items", "additionalProperties"} {
			if next, ok := s[inner].(map[string]any); ok {
				walk(path+"[]", next)
			}
		}
		properties, _ := s["properties"].(map[string]any)
		for key, value := range properties {
			next := value.(map[string]any)
			if text, _ := next["description"].(string); !strings.HasSuffix(text, ".") {
				t.Errorf("%s.%s has no description", path, key)
			}
			walk(path+"."+key, next)
		}
	}
	var root map[string]any
	if err := json.Unmarshal(gateway.Schema(), &root); err != nil {
		t.Fatal(err)
	}
	walk("", root)
}
