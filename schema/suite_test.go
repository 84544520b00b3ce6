package schema_test

import (
	"os"
	"testing"

	"github.com/toolcrib/toolcrib/schema"
	"github.com/toolcrib/toolcrib/schema/schematest"
)

func TestSuite(t *testing.T) { schematest.Suite(t, valid) }

// suiteEnv names a checkout of the JSON-Schema-Test-Suite.
const suiteEnv = "TOOLCRIB_SCHEMA_SUITE"

func TestWholeSuite(t *testing.T) {
	dir := os.Getenv(suiteEnv)
	if dir == "" {
		t.Skipf("left out: drafts 4, 6 and 2019-09, and optional tests; set %s to a checkout of the JSON-Schema-Test-Suite", suiteEnv)
	}
	schematest.Whole(t, dir, valid)
}

func valid(t *testing.T, c schematest.Case) bool {
	t.Helper()
	s, err := schema.Compile(c.Schema, &schema.Options{Resources: c.Resources, AssertFormat: c.AssertFormat})
	if err != nil {
		t.Fatalf("%v\nschema %s", err, c.Schema)
	}
	return s.Check(c.Doc) == nil
}
