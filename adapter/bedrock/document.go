package bedrock

import (
	"bytes"
	"encoding/json"

	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/document"
	smithy "github.com/aws/smithy-go/document"
)

// documentOf returns JSON as a document of the SDK. Numbers keep every digit.
func documentOf(raw json.RawMessage) (document.Interface, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return document.NewLazyDocument(plain(v)), nil
}

// plain returns a decoded value with the SDK's type of numbers.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		return smithy.Number(v)
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case map[string]any:
		for key, e := range v {
			v[key] = plain(e)
		}
	}
	return v
}
