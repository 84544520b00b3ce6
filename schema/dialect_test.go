package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

var allDrafts = []Draft{Draft4, Draft6, Draft7, Draft2019, Draft2020}

// TestMetaSchemas: every meta-schema compiles, and satisfies itself.
func TestMetaSchemas(t *testing.T) {
	for _, draft := range allDrafts {
		meta := metaSchema(draft)
		if err := meta.Check(meta.Raw()); err != nil {
			t.Errorf("draft %d: %v", draft, err)
		}
		if meta.Check([]byte(`{"type":"text"}`)) == nil || meta.Check([]byte(`{"properties":{"a":{"minLength":-1}}}`)) == nil {
			t.Errorf("draft %d lets anything pass", draft)
		}
	}
	err := fs.WalkDir(metaFiles, "meta", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".json") {
			return err
		}
		text, err := metaFiles.ReadFile(path)
		if err != nil {
			return err
		}
		for _, key := range []string{"$id", "id"} {
			if v, ok := rawjson.Get(text, key); ok {
				url, _ := rawjson.Unquote(v)
				if _, found := metaText(strings.TrimSuffix(url, "#")); !found {
					t.Errorf("%s is not found under %s", path, url)
				}
				return nil
			}
		}
		t.Errorf("%s has no id", path)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestMetaSchemasConcurrently makes the meta-schemas from several sides at once.
func TestMetaSchemasConcurrently(t *testing.T) {
	var wg sync.WaitGroup
	for range 4 {
		for _, draft := range allDrafts {
			wg.Go(func() {
				s, err := Compile([]byte(`{"dependencies":{"a":["b"]}}`), &Options{Draft: draft})
				if err != nil || s.Check([]byte(`{"a":1,"b":2}`)) != nil || s.Check([]byte(`{"a":1}`)) == nil {
					t.Errorf("draft %d: %v", draft, err)
				}
			})
		}
	}
	wg.Wait()
}

// own are meta-schemas of somebody's own.
var own = map[string]json.RawMessage{
	"http://x.test/shapes": []byte(`{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"http://x.test/shapes",
		"$vocabulary":{"https://json-schema.org/draft/2020-12/vocab/core":true,"https://json-schema.org/draft/2020-12/vocab/applicator":true,"http://x.test/vocab":false},
		"$dynamicAnchor":"meta","required":["title"]}`),
	"http://x.test/dates":   []byte(`{"$schema":"https://json-schema.org/draft/2020-12/schema","$vocabulary":{"https://json-schema.org/draft/2020-12/vocab/format-assertion":true}}`),
	"http://x.test/unknown": []byte(`{"$schema":"https://json-schema.org/draft/2020-12/schema","$vocabulary":{"http://x.test/vocab":true}}`),
	"http://x.test/self":    []byte(`{"$schema":"http://x.test/self"}`),
	"http://x.test/old":     []byte(`{"$schema":"http://json-schema.org/draft-04/schema#","required":["title"]}`),
	"http://x.test/bad":     []byte(`{"properties":{"a":{"type":7}}}`),
	"http://x.test/items":   []byte(`{"items":[{"type":"string"}],"$schema":"http://json-schema.org/draft-07/schema#"}`),
}

func TestDialects(t *testing.T) {
	for _, tc := range []struct{ schema, doc, want string }{
		{`{"$schema":"http://x.test/shapes","title":"","type":"object","properties":{"a":false}}`, `[1]`, ""},
		{`{"$schema":"http://x.test/shapes","title":"","type":"object","properties":{"a":false}}`, `{"a":1}`, "/a: no value is allowed here"},
		{`{"$schema":"http://x.test/shapes"}`, `1`, `invalid schema: missing required property "title"`},
		{`{"$schema":"http://x.test/dates","format":"date"}`, `"noon"`, `expected the format "date"`},
		{`{"$schema":"http://x.test/unknown"}`, `1`, `invalid schema: the vocabulary "http://x.test/vocab" is not known`},
		{`{"$schema":"http://x.test/self"}`, `1`, `invalid schema: $schema "http://x.test/self" leads back to itself`},
		{`{"$schema":"http://x.test/old#","title":"","exclusiveMinimum":true,"minimum":1}`, `1`, "expected a number > 1"},
		{`{"$ref":"http://x.test/bad"}`, `1`, `invalid schema at /properties/a/type: resource "http://x.test/bad": expected string or array, got number`},
		{`{"$ref":"http://x.test/bad#/properties"}`, `1`, `invalid schema at /properties/a/type: resource "http://x.test/bad": expected string or array, got number`},
		{`{"items":{"$ref":"http://x.test/items"}}`, `[[1]]`, "/0/0: expected string, got number"},
		{`{"$defs":{"a":{"$schema":"http://json-schema.org/draft-07/schema#","$id":"http://x.test/a","items":[{"type":"string"}]}},"$ref":"http://x.test/a"}`, `[1]`, "/0: expected string, got number"},
		{`{"$defs":{"a":{"$schema":"http://json-schema.org/draft-07/schema#","$id":"http://x.test/a","items":[{"type":7}]}}}`, `1`, `invalid schema at /$defs/a/items/0/type: expected string or array, got number`},
		{`{"$defs":{"a":{"$schema":"http://x.test/none","$id":"a"}}}`, `1`, `invalid schema at /$defs/a: $schema "http://x.test/none" is not among the given resources, and nothing is loaded from elsewhere`},
		{`{"$defs":{"a":{"$id":"a"},"b":{"$id":"a"}}}`, `1`, `invalid schema at /$defs/b: a second schema with the id "a"`},
		{`{"$defs":{"a":{"$anchor":"a"},"b":{"$dynamicAnchor":"a"}}}`, `1`, `invalid schema at /$defs/b: a second anchor "a"`},
		{`{"$ref":"http://x.test/items#/items/1"}`, `1`, `invalid schema: $ref "http://x.test/items#/items/1" points to nothing`},
		{`{"$ref":"http://x.test/items#/items"}`, `1`, `invalid schema at /items: resource "http://x.test/items": expected boolean or object, got array`},
	} {
		s, err := Compile([]byte(tc.schema), &Options{Resources: own})
		if err == nil {
			err = s.Check([]byte(tc.doc))
		}
		if got := fmt.Sprint(err); err == nil && tc.want != "" || err != nil && got != tc.want {
			t.Errorf("%s on %s:\ngot  %v\nwant %s", tc.schema, tc.doc, err, tc.want)
		}
	}
	_, err := Compile([]byte(`{"contains":true}`), &Options{Resources: map[string]json.RawMessage{"http://x.test/": []byte(`{"a":`)}})
	if !errors.Is(err, ErrCompile) || !strings.Contains(fmt.Sprint(err), `resource "http://x.test/"`) {
		t.Errorf("a resource that is no JSON: %v", err)
	}
}

// TestDeepSchemas: what every vocabulary of a meta-schema looks at, on every
// level, over text that would take long to scan as often.
func TestDeepSchemas(t *testing.T) {
	const levels = 120
	long := strings.Repeat("x", 1_000_000)
	nested := strings.Repeat(`{"not":`, levels) + `{"$id":"http://x.test/z","enum":["` + long + `"]}` + strings.Repeat("}", levels)
	foreign := `{}`
	for i := range levels {
		draft := []string{"http://json-schema.org/draft-07/schema", "https://json-schema.org/draft/2020-12/schema"}[i%2]
		foreign = fmt.Sprintf(`{"$id":"http://x.test/%d","$schema":%q,"default":%q,"not":%s}`, i, draft, long[:10_000], foreign)
	}
	for _, raw := range []string{nested, foreign} {
		if _, err := Compile([]byte(raw), nil); err != nil {
			t.Error(err)
		}
	}
	wrong := strings.Replace(nested, `"enum":[`, `"type":[`, 1)
	if _, err := Compile([]byte(wrong), nil); !errors.Is(err, ErrCompile) || len(fmt.Sprint(err)) > 1000 {
		t.Errorf("%.200v", err)
	}
}
