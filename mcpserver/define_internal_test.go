package mcpserver

import (
	"encoding/json"
	"testing"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// sameName checks that a definition of which only the name is different is
// written as if every member were looked for.
func sameName(t *testing.T, definition string) {
	t.Helper()
	tool := tools.Tool{Name: "new_name", Definition: json.RawMessage(definition)}
	tool.Description = plainText(readPublished(tool.Definition).description)
	members := []rawjson.Member{{Key: "name", Value: []byte(`"new_name"`)}}
	if readPublished(tool.Definition).input == nil {
		members = append(members, rawjson.Member{Key: "inputSchema", Value: anyObject})
	}
	want, wantErr := rawjson.SetAll(tool.Definition, members...)
	got, err := redefine(tool)
	if (err == nil) != (wantErr == nil) || string(got) != string(want) {
		t.Fatalf("%q:\ngot  %q %v\nwant %q %v", definition, got, err, want, wantErr)
	}
}

var definitions = []string{
	`{"name":"a","inputSchema":{}}`, `{"inputSchema":{},"name":"a"}`, ` { "name" : "a" , "inputSchema" : { } } `, `{"name":"a","name":"b","inputSchema":{}}`,
	`{"n\u0061me":"a","inputSchema":{}}`, `{"inputSchema":{}}`, `{"name":7,"inputSchema":{}}`, `{"name":"a"}`, `{}`, ``, `[]`, `{"name":"a","inputSchema":{}`,
	`{"name":"a","inputSchema":{}} x`, `{"name":"a","inputSchema":{},}`, `{"title":"t","description":"d","annotations":{"title":"u","readOnlyHint":true},"name":"a","inputSchema":{"name":"inner"}}`,
}

func TestDefinitionsUnderAnotherName(t *testing.T) {
	for _, d := range definitions {
		sameName(t, d)
	}
}

func FuzzDefinitionsUnderAnotherName(f *testing.F) {
	for _, d := range definitions {
		f.Add(d)
	}
	f.Fuzz(sameName)
}

// TestNoSchemaOfResultsWhereNoneIsListed: also where its key is written with
// escapes.
func TestNoSchemaOfResultsWhereNoneIsListed(t *testing.T) {
	for _, d := range []string{`{"name":"a","inputSchema":{}}`, `{"name":"a","inputSchema":{},"outputSchema":{}}`, `{"name":"a","output\u0053chema":{},"inputSchema":{}}`} {
		def := defineBounded(tools.Tool{Name: "a", Definition: json.RawMessage(d)})
		if string(def) != `{"name":"a","inputSchema":{}}` {
			t.Errorf("%s is listed as %s", d, def)
		}
	}
}
