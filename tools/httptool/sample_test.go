package httptool_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/schema"
)

// A sampler makes values that fit a schema.
type sampler struct {
	root  map[string]any
	rng   *rand.Rand
	share int // of optional members that are given, in percent
}

const maxSampleDepth = 8

// sampleArgs makes arguments for a tool.
func sampleArgs(t *testing.T, raw json.RawMessage, seed int) string {
	t.Helper()
	args, err := sampled(raw, seed)
	if err != nil {
		t.Fatal(err)
	}
	return args
}

// sampled makes arguments that fit a schema: first with some optional members,
// and with fewer where that does not fit. The error says that it found none.
func sampled(raw json.RawMessage, seed int) (string, error) {
	var root map[string]any
	if err := json.Unmarshal(raw, &root); err != nil {
		return "", err
	}
	compiled, err := schema.Compile(raw, nil)
	if err != nil {
		return "", err
	}
	var args []byte
	for attempt := range 12 {
		s := &sampler{root: root, rng: rand.New(rand.NewPCG(uint64(seed), uint64(attempt))), share: 40 - 5*attempt}
		if args, err = json.Marshal(s.value(root, 0)); err != nil {
			return "", err
		}
		if err = compiled.Check(args); err == nil {
			return string(args), nil
		}
	}
	return "", fmt.Errorf("no arguments found, the last ones were %s: %w", args, err)
}

func (s *sampler) value(schema map[string]any, depth int) any {
	schema = s.flat(schema, depth)
	if v, ok := schema["const"]; ok {
		return v
	}
	if enum, ok := schema["enum"].([]any); ok && len(enum) > 0 {
		return enum[s.rng.IntN(len(enum))]
	}
	switch kind(schema) {
	case "string":
		return s.text(schema)
	case "integer", "number":
		return s.number(schema)
	case "boolean":
		return s.rng.IntN(2) == 0
	case "array":
		return s.array(schema, depth)
	case "null":
		return nil
	case "object":
		return s.object(schema, depth)
	}
	return "any"
}

func kind(schema map[string]any) string {
	switch t := schema["type"].(type) {
	case string:
		return t
	case []any:
		if len(t) > 0 {
			return fmt.Sprint(t[0])
		}
	}
	switch {
	case schema["properties"] != nil || schema["required"] != nil:
		return "object"
	case schema["items"] != nil:
		return "array"
	case schema["pattern"] != nil || schema["format"] != nil || schema["minLength"] != nil:
		return "string"
	}
	return ""
}

// flat follows references, merges allOf, and chooses one of the alternatives.
func (s *sampler) flat(schema map[string]any, depth int) map[string]any {
	for range 20 {
		out := map[string]any{}
		parts := []any{}
		if ref, ok := schema["$ref"].(string); ok {
			name := strings.ReplaceAll(strings.TrimPrefix(ref, "#/$defs/"), "%25", "%")
			parts = append(parts, s.root["$defs"].(map[string]any)[name])
		}
		all, _ := schema["allOf"].([]any)
		parts = append(parts, all...)
		for _, key := range []string{"oneOf", "anyOf"} {
			if list, ok := schema[key].([]any); ok && len(list) > 0 {
				i := s.rng.IntN(len(list))
				if depth > maxSampleDepth/2 {
					i = 0
				}
				parts = append(parts, list[i])
			}
		}
		maps.Copy(out, schema)
		for _, key := range []string{"$ref", "allOf", "oneOf", "anyOf"} {
			delete(out, key)
		}
		if len(parts) == 0 {
			return out
		}
		for _, p := range parts {
			if p, ok := p.(map[string]any); ok {
				merge(out, p)
			}
		}
		schema = out
	}
	return schema
}

// merge lays a schema over another one.
func merge(into, from map[string]any) {
	for key, v := range from {
		switch key {
		case "properties":
			props := map[string]any{}
			old, _ := into[key].(map[string]any)
			maps.Copy(props, old)
			maps.Copy(props, v.(map[string]any))
			into[key] = props
		case "required", "allOf":
			old, _ := into[key].([]any)
			into[key] = slices.Concat(old, v.([]any))
		default:
			into[key] = v
		}
	}
}

func (s *sampler) object(schema map[string]any, depth int) any {
	out := map[string]any{}
	props, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(props)) {
		p, ok := props[name].(map[string]any)
		needed := slices.Contains(required, any(name))
		if p["readOnly"] == true && !needed {
			continue
		}
		if needed || ok && depth < maxSampleDepth && s.rng.IntN(100) < s.share {
			out[name] = s.value(p, depth+1)
		}
	}
	for _, name := range required {
		if name := name.(string); out[name] == nil && props[name] == nil {
			out[name] = "extra"
		}
	}
	least, _ := schema["minProperties"].(float64)
	for i := 0; len(out) < int(least); i++ {
		out[fmt.Sprintf("key%d", i)] = "v"
	}
	return out
}

func (s *sampler) array(schema map[string]any, depth int) any {
	out := []any{}
	items, ok := schema["items"].(map[string]any)
	least, _ := schema["minItems"].(float64)
	n := max(int(least), 1)
	if most, ok := schema["maxItems"].(float64); ok {
		n = min(n, int(most))
	}
	if !ok || depth >= maxSampleDepth && least == 0 {
		return out
	}
	for range n {
		out = append(out, s.value(items, depth+1))
	}
	return out
}

func (s *sampler) number(schema map[string]any) any {
	low, hasLow := schema["minimum"].(float64)
	if x, ok := schema["exclusiveMinimum"].(float64); ok && (!hasLow || x >= low) {
		low, hasLow = x+1, true
	}
	high, hasHigh := schema["maximum"].(float64)
	if x, ok := schema["exclusiveMaximum"].(float64); ok {
		high, hasHigh = x-1, true
	}
	n := float64(s.rng.IntN(100))
	if hasHigh && n > high {
		n = high
	}
	if hasLow && n < low {
		n = low
	}
	if m, ok := schema["multipleOf"].(float64); ok && m >= 1 {
		n = float64(int(n/m)) * m
		for hasLow && n < low {
			n += m
		}
	}
	if kind(schema) == "number" && schema["multipleOf"] == nil && !hasHigh {
		n += 0.5
	}
	return n
}

// texts are samples for formats, and candidates for patterns.
var texts = map[string]string{
	"date-time": "2024-05-06T07:08:09Z", "date": "2024-05-06", "time": "07:08:09Z", "uuid": "123e4567-e89b-12d3-a456-426614174000",
	"email": "a.b@example.com", "uri": "https://example.com/a?b=c", "url": "https://example.com/", "hostname": "h.example.com",
	"ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "byte": "aGVsbG8=", "binary": "bytes", "uri-template": "https://e.com/{x}",
}

var candidates = []string{"abc", "a", "1", "12", "123", "1234", "12345", "A", "ABC", "AB", "abc-def", "2024-05-06", "07:08", "07:08:09",
	"2024-05-06T07:08:09Z", "2024-05-06T07:08:09", "#ff0000", "ff0000", "me", "v1.2.3", "10.0.0.0/8", "192.0.2.1", "a@b.example", "https://example.com",
	"+15551234567", "123e4567-e89b-12d3-a456-426614174000", "1h", "10s", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "0000000000000000000000000000000000000000",
	"AC0123456789abcdef0123456789abcdef", "1.5", "-1", "USD", "en-US", "en", "a/b", "sha256:abc", "*", "0 0 * * *", "abcde12345", "aaaaaaaa", "12345678901", "123456789012"}

func (s *sampler) text(schema map[string]any) any {
	format, _ := schema["format"].(string)
	pattern, _ := schema["pattern"].(string)
	if schema["contentEncoding"] == "base64" {
		return "aGVsbG8="
	}
	if re, err := regexp.Compile(pattern); err == nil && pattern != "" {
		return s.matching(re, schema)
	}
	if text, ok := texts[format]; ok {
		return text
	}
	return s.fitted("a/b c", schema)
}

func (s *sampler) matching(re *regexp.Regexp, schema map[string]any) string {
	for _, p := range regexp.MustCompile(`[A-Za-z]+`).FindAllString(re.String(), -1) {
		for _, digits := range []string{"", "0123456789abcdef0123456789abcdef", "12345"} {
			if text := p + digits; re.MatchString(text) {
				return s.fitted(text, schema)
			}
		}
	}
	for _, text := range candidates {
		if fitted := s.fitted(text, schema); re.MatchString(fitted) {
			return fitted
		}
	}
	return "no sample for " + re.String()
}

func (s *sampler) fitted(text string, schema map[string]any) string {
	if least, ok := schema["minLength"].(float64); ok && len(text) < int(least) {
		text += strings.Repeat("a", int(least)-len(text))
	}
	if most, ok := schema["maxLength"].(float64); ok && len(text) > int(most) {
		text = text[:int(most)]
	}
	return text
}
