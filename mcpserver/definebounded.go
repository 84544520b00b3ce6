package mcpserver

import (
	"bytes"
	"encoding/json"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// A tool that lists a schema of its results must give structured content that
// conforms to it. Where large results are kept aside, that of a result may be
// gone. So the schema that is listed allows for two further members in its place,
// which say where it is kept, and such a result has them.
const (
	keptMember    = "toolcrib_artifacts"
	previewMember = "toolcrib_preview"
	// maxKeptPreview bounds the text in the second, which is shown as content too.
	maxKeptPreview = 2 << 10
)

var (
	keptSchema    = []byte(`{"type":"array","items":{"type":"object"},"description":"in place of a result that is too large; artifact_fetch reads it by ref"}`)
	previewSchema = []byte(`{"type":"string"}`)
)

// defineBounded encodes a tool object for clients that get large results in part.
// A schema of results that cannot allow for that is left out, and so are those of
// tools that are there to reach others.
func defineBounded(t tools.Tool) []byte {
	if t.OutSchema = boundedSchema(&t); t.OutSchema != nil {
		return define(t, t.OutSchema)
	}
	def := define(t, nil)
	if !mayHave(def, "outputSchema") {
		return def
	}
	bare, err := rawjson.Delete(def, "outputSchema")
	if err != nil {
		return def // which has none
	}
	return bare
}

// boundedSchema returns the schema of a tool's results as it is listed where large
// ones are kept aside, or nil. It changes only the members of a root that says
// nothing else of the object than which members there are, so that every reference
// in it still leads to where it did.
func boundedSchema(t *tools.Tool) json.RawMessage {
	if t.Kind == tools.KindMeta || rawjson.KindOf(t.OutSchema) != rawjson.KindObject || !describesObject(t.OutSchema) {
		return nil
	}
	properties, required := json.RawMessage("{}"), json.RawMessage(nil)
	for it := rawjson.Object(t.OutSchema); it.Next(); {
		switch key := it.Key(); {
		case key == "properties":
			properties = it.Value()
		case key == "required":
			required = it.Value()
		case !saysNoMore(key):
			return nil
		}
	}
	if rawjson.KindOf(properties) != rawjson.KindObject || required != nil && rawjson.KindOf(required) != rawjson.KindArray {
		return nil
	}
	for _, ours := range []string{keptMember, previewMember} {
		if _, taken := rawjson.Get(properties, ours); taken {
			return nil
		}
	}
	schema, err := allowKept(t.OutSchema, properties, required)
	if err != nil {
		return nil
	}
	return schema
}

// saysNoMore reports whether a keyword of the root may stand beside the members
// that are added.
func saysNoMore(key string) bool {
	switch key {
	case "type", "additionalProperties", "$schema", "$id", "$defs", "definitions", "title", "description", "$comment":
		return true
	}
	return len(key) > 2 && key[:2] == "x-"
}

func allowKept(schema, properties, required json.RawMessage) (json.RawMessage, error) {
	properties, err := rawjson.SetAll(properties, rawjson.Member{Key: keptMember, Value: keptSchema}, rawjson.Member{Key: previewMember, Value: previewSchema})
	if err != nil {
		return nil, err
	}
	changes := []rawjson.Member{{Key: "properties", Value: properties}}
	if rawjson.Len(required) > 0 {
		if schema, err = rawjson.Delete(schema, "required"); err != nil {
			return nil, err
		}
		either := append([]byte(`[{"required":`), required...)
		changes = append(changes, rawjson.Member{Key: "anyOf", Value: append(either, `},{"required":["`+keptMember+`"]}]`...)})
	}
	return rawjson.SetAll(schema, changes...)
}

// standIn puts what the listed schema allows for in the place of structured
// content that is kept aside.
func standIn(t *tools.Tool, res *tools.ToolResult) {
	if res.IsError || res.Structured != nil || len(res.Artifacts) == 0 || boundedSchema(t) == nil {
		return
	}
	refs, err := json.Marshal(res.Artifacts)
	if err != nil {
		return // which texts and numbers never give
	}
	shown := []byte(res.Text())
	if len(shown) > maxKeptPreview {
		shown = bytes.ToValidUTF8(shown[:maxKeptPreview], nil)
	}
	out := append(append([]byte(`{"`+keptMember+`":`), refs...), `,"`+previewMember+`":`...)
	res.Structured = append(rawjson.AppendQuoted(out, string(shown)), '}')
}
