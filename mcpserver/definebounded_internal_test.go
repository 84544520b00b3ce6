package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/schema"
	"github.com/toolcrib/toolcrib/tools"
)

// What is listed of a schema allows what it allowed, and what stands in for a
// result that is kept aside; and nothing else that it did not.
func TestBoundedSchemas(t *testing.T) {
	for name, c := range map[string]struct{ schema, good, bad string }{
		"required":   {`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`, `{"a":9007199254740993}`, `{}`},
		"optional":   {`{"type":"object","properties":{"a":{"type":"integer"}}}`, `{}`, `{"a":"b"}`},
		"references": {`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"r":{"type":"object","required":["id"]}},"properties":{"rows":{"type":"array","items":{"$ref":"#/$defs/r"}}},"required":["rows"],"x-fastmcp-wrap-result":true}`, `{"rows":[{"id":1}]}`, `{"rows":[{}]}`},
		"itself":     {`{"type":"object","properties":{"next":{"$ref":"#"},"n":{"type":"integer"}},"required":["n"]}`, `{"n":1,"next":{"n":2}}`, `{"n":1,"next":{}}`},
		"draft 7":    {`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","definitions":{"s":{"type":"string"}},"properties":{"a":{"$ref":"#/definitions/s"}},"required":["a"],"title":"t"}`, `{"a":"b"}`, `{"a":1}`},
		"of nothing": {`{"type":"object","required":["a"]}`, `{"a":1}`, `{"b":1}`},
	} {
		tool := tools.Tool{OutSchema: json.RawMessage(c.schema)}
		listed, err := schema.Compile(boundedSchema(&tool), nil)
		if err != nil {
			t.Errorf("%s: %s: %v", name, boundedSchema(&tool), err)
			continue
		}
		kept := tools.ToolResult{Content: []tools.Content{tools.TextContent("a preview")}, Artifacts: []tools.ArtifactRef{{Ref: "art-1", MIME: "text/plain", SizeBytes: 9}}}
		standIn(&tool, &kept)
		if want := `{"toolcrib_artifacts":[{"ref":"art-1","mime":"text/plain","size_bytes":9}],"toolcrib_preview":"a preview"}`; string(kept.Structured) != want {
			t.Errorf("%s: %s stands in, want %s", name, kept.Structured, want)
		}
		for doc, valid := range map[string]bool{c.good: true, c.bad: false, string(kept.Structured): true, `[]`: false} {
			if err := listed.Check([]byte(doc)); (err == nil) != valid {
				t.Errorf("%s: %s: %v, want valid: %v", name, doc, err, valid)
			}
		}
	}
}

func TestSchemasThatAreNotListed(t *testing.T) {
	for _, c := range []tools.Tool{
		{}, {OutSchema: json.RawMessage(`true`)}, {OutSchema: json.RawMessage(`{"type":"array"}`)}, {OutSchema: json.RawMessage(`{"type":["object","null"]}`)},
		{OutSchema: json.RawMessage(`{"type":"object","maxProperties":1}`)}, {OutSchema: json.RawMessage(`{"type":"object","oneOf":[{"required":["a"]}]}`)},
		{OutSchema: json.RawMessage(`{"type":"object","properties":{"toolcrib_artifacts":{}}}`)},
		{OutSchema: json.RawMessage(`{"type":"object","properties":{"toolcrib_preview":{"type":"integer"}}}`)}, {OutSchema: json.RawMessage(`{"type":"object","properties":[]}`)},
		{OutSchema: json.RawMessage(`{"type":"object"}`), Kind: tools.KindMeta},
	} {
		if got := boundedSchema(&c); got != nil {
			t.Errorf("%s is listed as %s", c.OutSchema, got)
		}
		c.Name = "t"
		if def := string(defineBounded(c)); strings.Contains(def, "outputSchema") {
			t.Errorf("%s: %s", c.OutSchema, def)
		}
		res := tools.ToolResult{Artifacts: []tools.ArtifactRef{{Ref: "art-1"}}}
		if standIn(&c, &res); res.Structured != nil {
			t.Errorf("%s: %s stands in", c.OutSchema, res.Structured)
		}
	}
}

func TestNothingStandsInForWhatIsThere(t *testing.T) {
	tool := tools.Tool{OutSchema: json.RawMessage(`{"type":"object"}`)}
	refs := []tools.ArtifactRef{{Ref: "art-1"}}
	for _, res := range []tools.ToolResult{{}, {Artifacts: refs, IsError: true}, {Artifacts: refs, Structured: json.RawMessage(`{"a":1}`)}} {
		before := string(res.Structured)
		if standIn(&tool, &res); string(res.Structured) != before {
			t.Errorf("%s stands in for %q", res.Structured, before)
		}
	}
	long := tools.ToolResult{Artifacts: refs, Content: []tools.Content{tools.TextContent(strings.Repeat("é", maxKeptPreview))}}
	if standIn(&tool, &long); len(long.Structured) > maxKeptPreview+200 || !json.Valid(long.Structured) || strings.Contains(string(long.Structured), "\ufffd") {
		t.Errorf("%d bytes: %.100s", len(long.Structured), long.Structured)
	}
}
