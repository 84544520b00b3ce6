package schema_test

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolcrib/toolcrib/schema"
)

func ExampleCompile() {
	s, err := schema.Compile(json.RawMessage(`{
		"type": "object",
		"properties": {"city": {"type": "string"}, "days": {"type": "integer", "maximum": 14}},
		"required": ["city"],
		"additionalProperties": false
	}`), nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(s.Check([]byte(`{"city": "Zurich", "days": 3}`)))
	fmt.Println(s.Check([]byte(`{"days": 30, "country": "CH"}`)))
	fmt.Println(s.Check([]byte(`{"city": "Zurich", "city": "Geneva"}`)))
	// Output:
	// <nil>
	// /days: expected a number <= 14; unexpected property "country"; missing required property "city"
	// duplicate object key at offset 19: in the root object
}

func ExampleError() {
	s, err := schema.Compile(json.RawMessage(`{"items": {"type": "string"}}`), nil)
	if err != nil {
		panic(err)
	}
	var invalid *schema.Error
	if err := s.Check([]byte(`["a", 2]`)); errors.As(err, &invalid) {
		v := invalid.Violations[0]
		fmt.Printf("path %s, keyword %s: %s\n", v.Path, v.Keyword, v.Expected)
	}
	// Output:
	// path /1, keyword type: expected string, got number
}

func ExampleFor() {
	type args struct {
		City  string   `json:"city" jsonschema:"The city, as its people spell it"`
		Days  int32    `json:"days" jsonschema:"minimum=1,maximum=14,default=3"`
		Units *string  `json:"units" jsonschema:"enum=metric,enum=imperial"`
		Tags  []string `json:"tags,omitempty"`
	}
	raw, err := schema.For[args](schema.Input)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(raw))
	// Output:
	// {"type":"object","properties":{"city":{"type":"string","description":"The city, as its people spell it"},"days":{"type":"integer","minimum":1,"maximum":14,"default":3},"units":{"type":["string","null"],"enum":["metric","imperial",null]},"tags":{"type":["array","null"],"items":{"type":"string"}}},"required":["city"],"additionalProperties":false}
}

func ExampleDefaults() {
	defaults := schema.NewDefaults(json.RawMessage(`{"properties": {"days": {"default": 3}, "units": {"default": "metric"}}}`))
	fmt.Println(string(defaults.Apply([]byte(`{"days": 5}`))))
	// Output:
	// {"days": 5,"units":"metric"}
}
