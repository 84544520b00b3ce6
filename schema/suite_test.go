package schema_test

import (
	"testing"

	"github.com/toolcrib/toolcrib/schema"
	"github.com/toolcrib/toolcrib/schema/schematest"
)

func TestSuite(t *testing.T) {
	schematest.Suite(t, func(t *testing.T, c schematest.Case) bool {
		s, err := schema.Compile(c.Schema, &schema.Options{Resources: c.Resources})
		if err != nil {
			t.Fatalf("%v\nschema %s", err, c.Schema)
		}
		return s.Check(c.Doc) == nil
	})
}
