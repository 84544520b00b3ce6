package schema_test

import (
	"bytes"
	"encoding/json"
	"testing"

	google "github.com/google/jsonschema-go/jsonschema"
	santhosh "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/toolcrib/toolcrib/schema"
)

// A tool with a nested object and limits, 148 bytes of arguments.
const (
	benchSchema = `{"type":"object","properties":{
		"city":{"type":"string","minLength":1,"maxLength":80},
		"days":{"type":"integer","minimum":1,"maximum":14},
		"units":{"type":"string","enum":["metric","imperial"]},
		"include":{"type":"array","items":{"type":"string"},"maxItems":8},
		"position":{"type":"object","properties":{"lat":{"type":"number","minimum":-90,"maximum":90},"lon":{"type":"number","minimum":-180,"maximum":180}},"required":["lat","lon"],"additionalProperties":false},
		"verbose":{"type":"boolean"}},
		"required":["city"],"additionalProperties":false}`
	benchDoc = `{"city":"Zurich, Switzerland","days":3,"units":"metric","include":["wind","rain","uv index"],"position":{"lat":47.3769,"lon":8.5417},"verbose":true}`
)

// A flat tool of six properties, 146 bytes of arguments.
const (
	flatSchema = `{"type":"object","properties":{
		"owner":{"type":"string"},"repo":{"type":"string"},"title":{"type":"string","minLength":1},
		"body":{"type":"string"},"state":{"enum":["open","closed","all"]},"page":{"type":"integer","minimum":1}},
		"required":["owner","repo"],"additionalProperties":false}`
	flatDoc = `{"owner":"example-organisation","repo":"the-repository","title":"A title of some length","body":"What is to be said about it","state":"open","page":3}`
)

func BenchmarkCheck(b *testing.B) {
	for name, tc := range map[string]struct{ schema, doc string }{
		"flat": {flatSchema, flatDoc}, "nested": {benchSchema, benchDoc}, "any": {"true", benchDoc},
	} {
		b.Run(name, func(b *testing.B) {
			s := mustCompile(b, tc.schema)
			doc := []byte(tc.doc)
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Check(doc); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCheckFails(b *testing.B) {
	s, err := schema.Compile(json.RawMessage(benchSchema), nil)
	if err != nil {
		b.Fatal(err)
	}
	doc := []byte(`{"city":"Zurich","days":"three","position":{"lat":47.3769,"lon":8.5417}}`)
	b.ReportAllocs()
	for b.Loop() {
		if s.Check(doc) == nil {
			b.Fatal("passed")
		}
	}
}

func BenchmarkSanthosh(b *testing.B) {
	parsed, err := santhosh.UnmarshalJSON(bytes.NewReader([]byte(benchSchema)))
	if err != nil {
		b.Fatal(err)
	}
	c := santhosh.NewCompiler()
	if err := c.AddResource("schema:///s.json", parsed); err != nil {
		b.Fatal(err)
	}
	s := c.MustCompile("schema:///s.json")
	b.ReportAllocs()
	for b.Loop() {
		doc, err := santhosh.UnmarshalJSON(bytes.NewReader([]byte(benchDoc)))
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Validate(doc); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGoogle(b *testing.B) {
	var parsed google.Schema
	if err := json.Unmarshal([]byte(benchSchema), &parsed); err != nil {
		b.Fatal(err)
	}
	s, err := parsed.Resolve(nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		var doc any
		if err := json.Unmarshal([]byte(benchDoc), &doc); err != nil {
			b.Fatal(err)
		}
		if err := s.Validate(doc); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkUnmarshal is the cost of decoding the same document, for scale.
func BenchmarkUnmarshal(b *testing.B) {
	var args struct {
		City     string   `json:"city"`
		Days     int      `json:"days"`
		Units    string   `json:"units"`
		Include  []string `json:"include"`
		Position struct{ Lat, Lon float64 }
		Verbose  bool `json:"verbose"`
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := json.Unmarshal([]byte(benchDoc), &args); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := schema.Compile(json.RawMessage(benchSchema), nil); err != nil {
			b.Fatal(err)
		}
	}
}
