package adapter_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// A generator makes values that a provider's schema describes, as a model that
// reads the schema and the descriptions would. It reads JSON Schema and the
// dialect of OpenAPI.
type generator struct {
	rand *rand.Rand
	root map[string]any
	left int // values that may still be made before everything is kept short
}

func newGenerator(seed uint64, root map[string]any) *generator {
	return &generator{rand: rand.New(rand.NewPCG(seed, 7)), root: root, left: 400}
}

// value returns a value, and false when it finds none.
func (g *generator) value(s map[string]any, depth int) (any, bool) {
	g.left--
	s = g.flat(s, 0)
	if s == nil || depth > 60 {
		return nil, false
	}
	if c, ok := s["const"]; ok {
		return c, true
	}
	if values := list(s["enum"]); len(values) > 0 {
		return values[g.rand.IntN(len(values))], true
	}
	switch kind := g.kind(s, depth); kind {
	case "null":
		return nil, true
	case "boolean":
		return g.rand.IntN(2) == 0, true
	case "integer", "number":
		return g.number(s, kind), true
	case "array":
		return g.array(s, depth)
	case "object":
		return g.object(s, depth)
	default:
		return g.text(s), true
	}
}

// flat follows references and picks a branch of each union.
func (g *generator) flat(s map[string]any, depth int) map[string]any {
	if depth > 40 || s == nil {
		return nil
	}
	out := maps.Clone(s)
	for _, k := range []string{"$ref", "allOf", "anyOf", "oneOf"} {
		delete(out, k)
	}
	merge := func(v any) bool {
		part := g.flat(object(v), depth+1)
		if part == nil {
			return v == true
		}
		return join(out, part)
	}
	if ref, ok := s["$ref"].(string); ok && !merge(g.resolve(ref)) {
		return nil
	}
	for _, v := range list(s["allOf"]) {
		if !merge(v) {
			return nil
		}
	}
	for _, k := range []string{"anyOf", "oneOf"} {
		if branches := list(s[k]); len(branches) > 0 && !merge(branches[g.pick(branches)]) {
			return nil
		}
	}
	return out
}

// pick prefers what ends soon once enough was made.
func (g *generator) pick(branches []any) int {
	if g.left < 0 {
		for i, b := range branches {
			if t := object(b)["type"]; t == "null" || t == "string" || t == "STRING" {
				return i
			}
		}
	}
	return g.rand.IntN(len(branches))
}

// join lays what another schema says over one.
func join(out, part map[string]any) bool {
	for k, v := range part {
		have, both := out[k]
		switch {
		case !both:
			out[k] = v
		case k == "properties":
			properties := maps.Clone(object(have))
			for name, p := range object(v) {
				if other, twice := properties[name]; twice {
					p = map[string]any{"allOf": []any{other, p}}
				}
				properties[name] = p
			}
			out[k] = properties
		case k == "required":
			out[k] = append(slices.Clone(list(have)), list(v)...)
		case k == "type":
			both := slices.DeleteFunc(typeList(have), func(t string) bool { return !slices.Contains(typeList(v), t) })
			if len(both) == 0 {
				return false
			}
			out[k] = anys(both)
		case k == "minimum" || k == "minLength" || k == "minItems":
			out[k] = max(have.(float64), v.(float64))
		case k == "maximum" || k == "maxLength" || k == "maxItems":
			out[k] = min(have.(float64), v.(float64))
		}
	}
	return true
}

func anys(list []string) []any {
	var out []any
	for _, s := range list {
		out = append(out, s)
	}
	return out
}

func typeList(v any) []string {
	if s, ok := v.(string); ok {
		return []string{strings.ToLower(s)}
	}
	var out []string
	for _, t := range list(v) {
		out = append(out, strings.ToLower(str(t)))
	}
	return out
}

func (g *generator) resolve(ref string) any {
	var at any = g.root
	for _, token := range strings.Split(strings.TrimPrefix(strings.TrimPrefix(ref, "#"), "/"), "/") {
		if token == "" {
			break
		}
		token = strings.NewReplacer("~1", "/", "~0", "~", "%20", " ", "%24", "$").Replace(token)
		if l, ok := at.([]any); ok {
			var n int
			if _, err := fmt.Sscan(token, &n); err != nil || n >= len(l) {
				return nil
			}
			at = l[n]
			continue
		}
		at = object(at)[token]
	}
	return at
}

func (g *generator) kind(s map[string]any, depth int) string {
	kinds := typeList(s["type"])
	if s["nullable"] == true {
		kinds = append(kinds, "null")
	}
	switch {
	case len(kinds) > 0 && (g.left < 0 || depth > 20) && slices.Contains(kinds, "null"):
		return "null"
	case len(kinds) > 0:
		return kinds[g.rand.IntN(len(kinds))]
	case has(s, "properties") || has(s, "required"):
		return "object"
	case has(s, "items") || has(s, "prefixItems"):
		return "array"
	}
	return []string{"string", "integer", "boolean", "null"}[g.rand.IntN(4)]
}

func (g *generator) number(s map[string]any, kind string) any {
	low, high := -50.0, 1000.0
	if v, ok := s["minimum"].(float64); ok {
		low = v
		high = max(high, v+10)
	}
	if v, ok := s["exclusiveMinimum"].(float64); ok {
		low = max(low, v+1e-3)
		high = max(high, v+10)
	}
	if v, ok := s["maximum"].(float64); ok {
		high = v
		low = min(low, high)
	}
	if v, ok := s["exclusiveMaximum"].(float64); ok {
		high = v - 1e-3
		low = min(low, high)
	}
	n := low + g.rand.Float64()*(high-low)
	if step, ok := s["multipleOf"].(float64); ok && step > 0 {
		n = float64(int(n/step)) * step
	}
	if kind == "integer" {
		return json.Number(fmt.Sprintf("%d", int64(n)))
	}
	return json.Number(fmt.Sprintf("%.3f", n))
}

// text returns a text: one that holds JSON where the description asks for it.
func (g *generator) text(s map[string]any) string {
	description := str(s["description"])
	switch {
	case strings.HasSuffix(description, "JSON text: an object."):
		return []string{`{}`, `{"a":1}`, `{"deep":{"list":[1,"x",null]}}`}[g.rand.IntN(3)]
	case strings.HasSuffix(description, "JSON text: an array."):
		return []string{`[]`, `[1,"x"]`, `[{"a":null}]`}[g.rand.IntN(3)]
	case strings.Contains(description, "JSON text: any JSON value"):
		return []string{`{"a":1}`, `[1]`, `12.50`, `"text"`, `null`, `true`}[g.rand.IntN(6)]
	}
	if pattern, ok := s["pattern"].(string); ok {
		if made, ok := matching(pattern, g.rand.IntN(1<<20)); ok {
			return made
		}
	}
	if made, ok := formats[str(s["format"])]; ok {
		return made
	}
	low, high := 0, 12
	if v, ok := s["minLength"].(float64); ok {
		low, high = int(v), int(v)+5
	}
	if v, ok := s["maxLength"].(float64); ok {
		high = min(high, int(v))
	}
	out := make([]rune, low+g.rand.IntN(max(high-low, 0)+1))
	for i := range out {
		out[i] = []rune("abcdefg XYZ019_-./\"\\äß€")[g.rand.IntN(23)]
	}
	return string(out)
}

// matching returns a text that matches a pattern that package regexp knows.
func matching(pattern string, seed int) (made string, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return rapid.StringMatching(pattern).Example(seed), true
}

var formats = map[string]string{
	"date-time": "2026-01-02T03:04:05Z", "date": "2026-01-02", "time": "03:04:05Z", "duration": "P1D", "email": "a@example.com",
	"hostname": "example.com", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "uuid": "123e4567-e89b-42d3-a456-426614174000",
	"uri": "https://example.com/a",
}

func (g *generator) array(s map[string]any, depth int) (any, bool) {
	prefix := list(s["prefixItems"])
	low, high := len(prefix), len(prefix)+2
	if v, ok := s["minItems"].(float64); ok {
		low = int(v)
		high = max(high, low)
	}
	if v, ok := s["maxItems"].(float64); ok {
		high = min(high, int(v))
	}
	if s["items"] == false {
		high = min(high, len(prefix))
	}
	if g.left < 0 || depth > 12 {
		high = low
	}
	n := low
	if high > low {
		n += g.rand.IntN(high - low + 1)
	}
	out := []any{}
	keys := map[string]bool{}
	for i := range n {
		e := object(s["items"])
		if i < len(prefix) {
			e = object(prefix[i])
		}
		if e == nil {
			e = map[string]any{}
		}
		v, ok := g.value(e, depth+1)
		if !ok {
			return nil, false
		}
		if pair := object(v); len(pair) == 2 && has(pair, "key") && has(pair, "value") {
			if key := fmt.Sprint(pair["key"]); keys[key] {
				continue // "no key comes twice"
			} else {
				keys[key] = true
			}
		}
		out = append(out, v)
	}
	return out, true
}

func (g *generator) object(s map[string]any, depth int) (any, bool) {
	out := map[string]any{}
	properties := object(s["properties"])
	required := list(s["required"])
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		needed := slices.Contains(required, any(name))
		if properties[name] == false || !needed && (g.left < 0 || depth > 12 || g.rand.IntN(2) == 0) {
			continue
		}
		p := object(properties[name])
		if p == nil {
			p = map[string]any{}
		}
		v, ok := g.value(p, depth+1)
		switch {
		case ok:
			out[name] = v
		case needed:
			return nil, false
		}
	}
	if more := object(s["additionalProperties"]); more != nil {
		for range g.rand.IntN(3) {
			key, _ := g.value(map[string]any{"type": "string", "minLength": 1.0}, depth)
			if _, taken := properties[key.(string)]; taken {
				continue
			}
			if v, ok := g.value(more, depth+1); ok {
				out[key.(string)] = v
			}
		}
	}
	return out, true
}
