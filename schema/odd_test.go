package schema_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/toolcrib/toolcrib/schema"
)

// TestOddSchemas holds the kinds of schemas that servers in the field publish.
func TestOddSchemas(t *testing.T) {
	raw, err := os.ReadFile("testdata/odd.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases map[string]struct {
		Schema         json.RawMessage
		Valid, Invalid []json.RawMessage
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := schema.Compile(tc.Schema, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, doc := range tc.Valid {
				if err := s.Check(doc); err != nil {
					t.Errorf("%s refused: %v", doc, err)
				}
			}
			for _, doc := range tc.Invalid {
				if s.Check(doc) == nil {
					t.Errorf("%s passed", doc)
				}
			}
		})
	}
}
