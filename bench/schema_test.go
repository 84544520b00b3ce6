package bench

import (
	"bytes"
	"encoding/json"
	"testing"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/toolcrib/toolcrib/schema"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
)

// BenchmarkSchema compares the check of the arguments of a call with the full
// validator, both from the bytes, as a call brings them.
func BenchmarkSchema(b *testing.B) {
	raw := orderSchema(b)
	checker, err := schema.Compile(raw, nil)
	if err != nil {
		b.Fatal(err)
	}
	validator := compileFull(b, raw)
	full := func() {
		doc, err := santhosh.UnmarshalJSON(bytes.NewReader([]byte(orderArgs)))
		if err == nil {
			err = validator.Validate(doc)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	doc := []byte(orderArgs)
	b.Run("santhosh", func(b *testing.B) { beside(b, full, full) })
	b.Run("check", func(b *testing.B) {
		beside(b, full, func() {
			if err := checker.Check(doc); err != nil {
				b.Fatal(err)
			}
		})
	})
}

// orderSchema is the schema that the tool of the other benchmarks has.
func orderSchema(b *testing.B) json.RawMessage {
	cat := tools.NewCatalog()
	if err := inproc.RegisterFunc(cat, "place_order", place); err != nil {
		b.Fatal(err)
	}
	d, _ := cat.Resolve("place_order")
	return d.Tool.ArgsSchema
}

func compileFull(b *testing.B, raw json.RawMessage) *santhosh.Schema {
	parsed, err := santhosh.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		b.Fatal(err)
	}
	c := santhosh.NewCompiler()
	if err := c.AddResource("schema:///order.json", parsed); err != nil {
		b.Fatal(err)
	}
	s, err := c.Compile("schema:///order.json")
	if err != nil {
		b.Fatal(err)
	}
	return s
}
