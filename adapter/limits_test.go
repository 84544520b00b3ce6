package adapter_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/adapter"
	"github.com/toolcrib/toolcrib/schema"
)

// A limit checker reads what a provider would be sent and knows nothing of how
// it was made. Its rules are those that the providers document.
type checker struct {
	found []string
	tool  string
	keys  *regexp.Regexp // of properties
	// per schema
	properties, enums, chars int
}

func (c *checker) fail(format string, args ...any) {
	c.found = append(c.found, c.tool+": "+fmt.Sprintf(format, args...))
}

var (
	openAIName  = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	geminiName  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$`)
	mcpName     = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)
	claudeKey   = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)
	geminiKey   = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,63}$`)
	anyKey      = regexp.MustCompile(``)
	strictWords = words("type description enum const anyOf $ref $defs properties required additionalProperties items " +
		"pattern format multipleOf minimum maximum exclusiveMinimum exclusiveMaximum minItems maxItems")
	strictFormats = words("date-time time date duration email hostname ipv4 ipv6 uuid")
	geminiWords   = words("$id $defs $ref $anchor type format title description enum items prefixItems minItems maxItems " +
		"minimum maximum anyOf oneOf properties additionalProperties required propertyOrdering")
	openAPIWords = words("anyOf default description enum example format items maxItems maxLength maxProperties maximum " +
		"minItems minLength minProperties minimum nullable pattern properties propertyOrdering required title type")
	openAPITypes = words("STRING NUMBER INTEGER BOOLEAN ARRAY OBJECT NULL")
)

func words(s string) []string { return strings.Fields(s) }

// violations returns what a provider would refuse in a request.
func violations(a *adapter.Adapter, request json.RawMessage) []string {
	var body map[string]any
	if err := json.Unmarshal(request, &body); err != nil {
		return []string{err.Error()}
	}
	c := &checker{keys: anyKey}
	switch a.Name() {
	case "openai", "openai-strict":
		c.openAI(list(body["tools"]), func(t map[string]any) map[string]any { return object(t["function"]) })
	case "openai-responses", "openai-responses-strict":
		c.openAI(list(body["tools"]), func(t map[string]any) map[string]any { return t })
	case "anthropic":
		c.keys = claudeKey
		c.anthropic(list(body["tools"]))
	case "gemini":
		c.keys = geminiKey
		for _, t := range list(body["tools"]) {
			c.gemini(list(object(t)["functionDeclarations"]))
		}
	case "bedrock":
		c.keys = claudeKey
		c.bedrock(list(object(body["toolConfig"])["tools"]))
	case "mcp":
		c.mcp(list(body["tools"]))
	default:
		c.fail("no rules for %s", a.Name())
	}
	return c.found
}

func list(v any) []any                    { l, _ := v.([]any); return l }
func object(v any) map[string]any         { o, _ := v.(map[string]any); return o }
func str(v any) string                    { s, _ := v.(string); return s }
func has(o map[string]any, k string) bool { _, ok := o[k]; return ok }

func (c *checker) name(seen map[string]bool, v any, rule *regexp.Regexp) {
	c.tool = str(v)
	if !rule.MatchString(c.tool) {
		c.fail("the name is not one of the provider's")
	}
	if seen[c.tool] {
		c.fail("the name comes twice")
	}
	seen[c.tool] = true
}

func (c *checker) openAI(tools []any, function func(map[string]any) map[string]any) {
	if len(tools) > 128 {
		c.fail("%d tools", len(tools))
	}
	seen := map[string]bool{}
	for _, t := range tools {
		f := function(object(t))
		c.name(seen, f["name"], openAIName)
		root := object(f["parameters"])
		c.plainRoot(root)
		if f["strict"] == true {
			c.strict(root)
			continue
		}
		c.compiles(root)
		c.walk(root, func(s map[string]any) {
			if types(s, "array") && object(s["items"]) == nil {
				c.fail("an array without items")
			}
		})
	}
}

// plainRoot demands an object that says nothing else.
func (c *checker) plainRoot(root map[string]any) {
	if root["type"] != "object" && root["type"] != "OBJECT" {
		c.fail("the root's type is %v", root["type"])
	}
	for _, k := range words("oneOf anyOf allOf enum not $ref const") {
		if has(root, k) {
			c.fail("%s at the root", k)
		}
	}
}

func (c *checker) compiles(root map[string]any) {
	raw, _ := json.Marshal(root)
	if _, err := schema.Compile(raw, nil); err != nil {
		c.fail("not a JSON Schema: %v", err)
	}
}

func types(s map[string]any, name string) bool {
	return s["type"] == name || slices.Contains(list(s["type"]), any(name))
}

func (c *checker) anthropic(tools []any) {
	seen := map[string]bool{}
	for _, t := range tools {
		tool := object(t)
		c.name(seen, tool["name"], openAIName)
		if strings.HasPrefix(str(tool["type"]), "tool_search_tool_") {
			continue
		}
		root := object(tool["input_schema"])
		c.plainRoot(root)
		c.compiles(root)
		c.walk(root, func(map[string]any) {})
		for _, e := range list(tool["input_examples"]) {
			raw, _ := json.Marshal(root)
			compiled, err := schema.Compile(raw, nil)
			doc, _ := json.Marshal(e)
			if err == nil && compiled.Check(doc) != nil {
				c.fail("an example does not satisfy the schema: %v", compiled.Check(doc))
			}
		}
	}
}

func (c *checker) bedrock(tools []any) {
	seen := map[string]bool{}
	for _, t := range tools {
		spec := object(object(t)["toolSpec"])
		c.name(seen, spec["name"], openAIName)
		if str(spec["description"]) == "" {
			c.fail("no description")
		}
		root := object(object(spec["inputSchema"])["json"])
		c.plainRoot(root)
		c.compiles(root)
		c.walk(root, func(map[string]any) {})
	}
}

func (c *checker) mcp(tools []any) {
	seen := map[string]bool{}
	for _, t := range tools {
		c.name(seen, object(t)["name"], mcpName)
		root := object(object(t)["inputSchema"])
		if root["type"] != "object" {
			c.fail("the root's type is %v", root["type"])
		}
		c.compiles(root)
	}
}

func (c *checker) gemini(tools []any) {
	seen := map[string]bool{}
	for _, t := range tools {
		f := object(t)
		c.name(seen, f["name"], geminiName)
		if has(f, "parameters") && has(f, "parametersJsonSchema") {
			c.fail("two schemas")
		}
		if root := object(f["parametersJsonSchema"]); root != nil {
			c.plainRoot(root)
			c.compiles(root)
			c.walk(root, func(s map[string]any) { c.only(s, geminiWords) })
		}
		if root := object(f["parameters"]); root != nil {
			c.plainRoot(root)
			c.walk(root, c.openAPI)
		}
	}
}

func (c *checker) openAPI(s map[string]any) {
	c.only(s, openAPIWords)
	if has(s, "anyOf") {
		if len(s) > 1 {
			c.fail("something beside anyOf: %v", s)
		}
		return
	}
	if !slices.Contains(openAPITypes, str(s["type"])) {
		c.fail("the type is %v", s["type"])
	}
	switch s["type"] {
	case "ARRAY":
		if object(s["items"]) == nil {
			c.fail("an array without items")
		}
	case "OBJECT":
		if len(object(s["properties"])) == 0 {
			c.fail("an object without properties")
		}
	}
	for _, v := range list(s["enum"]) {
		if _, ok := v.(string); !ok || s["type"] != "STRING" {
			c.fail("an enumeration of something else than strings")
		}
	}
	if f := str(s["format"]); has(s, "format") && f != "enum" && f != "date-time" {
		c.fail("the format is %q", f)
	}
}

func (c *checker) only(s map[string]any, known []string) {
	for k := range s {
		if !slices.Contains(known, k) {
			c.fail("the keyword %q", k)
		}
	}
}

// strict holds a schema to what strict mode documents.
func (c *checker) strict(root map[string]any) {
	c.properties, c.enums, c.chars = 0, 0, 0
	c.compiles(root)
	c.nested(root, 0)
	for name, d := range object(root["$defs"]) {
		c.chars += len(name)
		c.nested(object(d), 0)
	}
	c.walk(root, c.strictSchema)
	for what, over := range map[string]bool{
		"properties": c.properties > 5_000, "enumerated values": c.enums > 1_000, "characters": c.chars > 120_000,
	} {
		if over {
			c.fail("too many %s", what)
		}
	}
}

// nested counts how deep objects and arrays stand in one another.
func (c *checker) nested(s map[string]any, depth int) {
	if depth > 10 {
		c.fail("%d levels", depth)
		return
	}
	if has(s, "properties") || has(s, "items") {
		depth++
	}
	for _, p := range object(s["properties"]) {
		c.nested(object(p), depth)
	}
	if items := object(s["items"]); items != nil {
		c.nested(items, depth)
	}
	for _, b := range list(s["anyOf"]) {
		c.nested(object(b), depth)
	}
}

func (c *checker) strictSchema(s map[string]any) {
	c.only(s, strictWords)
	if has(s, "$ref") {
		if len(s) > 1 {
			c.fail("something beside $ref")
		}
		return
	}
	if !has(s, "type") && !has(s, "anyOf") && !has(s, "enum") {
		c.fail("a schema that says nothing")
	}
	if f, ok := s["format"]; ok && !slices.Contains(strictFormats, str(f)) {
		c.fail("the format is %v", f)
	}
	if types(s, "array") && object(s["items"]) == nil {
		c.fail("an array without items")
	}
	values := 0
	for _, v := range list(s["enum"]) {
		values += len(fmt.Sprint(v))
		c.enums++
	}
	if c.chars += values; len(list(s["enum"])) > 250 && values > 15_000 {
		c.fail("a large enumeration")
	}
	if !types(s, "object") {
		return
	}
	properties := object(s["properties"])
	if s["additionalProperties"] != false || len(list(s["required"])) != len(properties) {
		c.fail("an object that is not closed, or whose properties are not all required")
	}
	for _, r := range list(s["required"]) {
		if !has(properties, str(r)) {
			c.fail("%v is required and no property", r)
		}
	}
	for k := range properties {
		c.properties++
		c.chars += len(k)
	}
}

// walk visits every schema and checks the keys of its properties.
func (c *checker) walk(s map[string]any, visit func(map[string]any)) {
	visit(s)
	for k := range object(s["properties"]) {
		if !c.keys.MatchString(k) {
			c.fail("the key %q", k)
		}
	}
	for _, k := range words("properties $defs definitions patternProperties dependentSchemas") {
		for _, v := range object(s[k]) {
			if o := object(v); o != nil {
				c.walk(o, visit)
			}
		}
	}
	for _, k := range words("items additionalProperties not if then else contains propertyNames unevaluatedProperties unevaluatedItems") {
		if o := object(s[k]); o != nil {
			c.walk(o, visit)
		}
	}
	for _, k := range words("anyOf oneOf allOf prefixItems") {
		for _, v := range list(s[k]) {
			if o := object(v); o != nil {
				c.walk(o, visit)
			}
		}
	}
}

// The checker must find what it is for.
func TestCheckerFinds(t *testing.T) {
	openai, _ := adapter.New(adapter.OpenAI, nil)
	bedrock, _ := adapter.New(adapter.Bedrock, nil)
	gemini, _ := adapter.New(adapter.Gemini, nil)
	for _, test := range []struct {
		a    *adapter.Adapter
		body string
	}{
		{openai, `{"tools":[{"function":{"name":"a.b","parameters":{"type":"object"}}}]}`},
		{openai, `{"tools":[{"function":{"name":"a","parameters":{"type":"object","anyOf":[]}}}]}`},
		{openai, `{"tools":[{"function":{"name":"a","parameters":{"type":"object","properties":{"l":{"type":"array"}}}}}]}`},
		{openai, `{"tools":[{"function":{"name":"a","strict":true,"parameters":{"type":"object","properties":{"l":{"type":"string"}},"required":[],"additionalProperties":false}}}]}`},
		{openai, `{"tools":[{"function":{"name":"a","strict":true,"parameters":{"type":"object","properties":{"l":{"type":"string","minLength":1}},"required":["l"],"additionalProperties":false}}}]}`},
		{bedrock, `{"toolConfig":{"tools":[{"toolSpec":{"name":"a","description":"","inputSchema":{"json":{"type":"object"}}}}]}}`},
		{bedrock, `{"toolConfig":{"tools":[{"toolSpec":{"name":"a","description":"x","inputSchema":{"json":{"type":"object","properties":{"$a":{}}}}}}]}}`},
		{gemini, `{"tools":[{"functionDeclarations":[{"name":"a","parameters":{"type":"OBJECT","properties":{"a":{"$ref":"#"}}}}]}]}`},
	} {
		if len(violations(test.a, json.RawMessage(test.body))) == 0 {
			t.Errorf("%s: nothing found in %s", test.a.Name(), test.body)
		}
	}
}
