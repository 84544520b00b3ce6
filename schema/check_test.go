package schema_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/toolcrib/toolcrib/schema"
)

func mustCompile(t testing.TB, raw string) *schema.Schema {
	t.Helper()
	s, err := schema.Compile(json.RawMessage(raw), nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	return s
}

func TestMessages(t *testing.T) {
	secret := "s3cr3t"
	for _, tc := range []struct{ schema, doc, want string }{
		{`{"type":"string"}`, `5`, `expected string, got number`},
		{`{"type":["string","null"]}`, `5`, `expected string or null, got number`},
		{`{"properties":{"a":{"items":{"type":"object","required":["b"]}}}}`, `{"a":[{}]}`, `/a/0: missing required property "b"`},
		{`{"properties":{"a/b":{"type":"integer"}}}`, `{"a/b":1.5}`, `/a~1b: expected integer, got number`},
		{`{"enum":["a",1,null,{"x":2}]}`, `"` + secret + `"`, `expected one of "a", 1, null, {"x":2}`},
		{`{"const":"a"}`, `"` + secret + `"`, `expected the constant "a"`},
		{`{"additionalProperties":false}`, `{"x\n":1}`, `unexpected property "x\n"`},
		{`{"minLength":2}`, `"é"`, `expected at least 2 characters`},
		{`{"maxLength":1}`, `"s3cr3t"`, `expected at most 1 character`},
		{`{"pattern":"^a"}`, `"s3cr3t"`, `expected a match for the pattern "^a"`},
		{`{"minimum":0.5}`, `0.25`, `expected a number >= 0.5`},
		{`{"exclusiveMaximum":9007199254740993}`, `9007199254740993`, `expected a number < 9007199254740993`},
		{`{"multipleOf":0.01}`, `0.015`, `expected a multiple of 0.01`},
		{`{"minItems":1}`, `[]`, `expected at least 1 item`},
		{`{"uniqueItems":true}`, `[1,1.0]`, `expected items that all differ`},
		{`{"contains":{"type":"null"}}`, `[1]`, `expected at least 1 matching the schema under "contains"`},
		{`{"items":false}`, `[1]`, `/0: no value is allowed here`},
		{`{"propertyNames":{"maxLength":1}}`, `{"ab":1}`, `property name not allowed: "ab"`},
		{`{"anyOf":[{"type":"string"},{"type":"null"}]}`, `1`, `expected string or null, got number`},
		{`{"anyOf":[{"type":"object","required":["a"]},{"type":"null"}]}`, `{}`, `missing required property "a"`},
		{`{"oneOf":[{"minimum":1},{"minimum":2}]}`, `0`, `expected a match for exactly one of 2 alternatives, got none`},
		{`{"oneOf":[{"minimum":1},{"minimum":2}]}`, `5`, `expected a match for exactly one alternative, got more than one`},
		{`{"not":{"type":"string"}}`, `"s3cr3t"`, `expected a value that the schema under "not" does not accept`},
		{`{"anyOf":[false,false]}`, `1`, `expected a match for at least one of 2 alternatives, got none`},
		{`{"enum":["a"],"const":"b"}`, `"b"`, `no value is allowed here`},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, `missing required property "b"`},
		{`{"if":{"required":["a"]},"then":{"required":["b"]}}`, `{"a":1}`, `missing required property "b"`},
		{`{"properties":{"a":{}},"unevaluatedProperties":false}`, `{"b":"s3cr3t"}`, `/b: no value is allowed here`},
		{`{"properties":{"a":{"unevaluatedItems":false,"prefixItems":[{"type":"string"}]}}}`, `{"a":[1]}`, `/a/0: expected string, got number`},
	} {
		err := mustCompile(t, tc.schema).Check([]byte(tc.doc))
		if fmt.Sprint(err) != tc.want {
			t.Errorf("%s on %s:\ngot  %v\nwant %v", tc.schema, tc.doc, err, tc.want)
		}
		var invalid *schema.Error
		if !errors.As(err, &invalid) || !errors.Is(err, schema.ErrInvalid) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %T %v", tc.schema, err, err)
		}
	}
}

func TestErrorsAreBounded(t *testing.T) {
	s := mustCompile(t, `{"type":"object","additionalProperties":{"type":"string"},"propertyNames":{"maxLength":3}}`)
	var doc strings.Builder
	doc.WriteString("{")
	for i := range 1000 {
		fmt.Fprintf(&doc, `"%d%s":[1],`, i, strings.Repeat(`\u00e9"`[:6], 1_000))
	}
	err := s.Check([]byte(strings.TrimSuffix(doc.String(), ",") + "}"))
	var invalid *schema.Error
	if !errors.As(err, &invalid) || len(invalid.Violations) != schema.MaxViolations {
		t.Fatalf("%T with the wrong number of violations", err)
	}
	if n := len(err.Error()); n > 2500 {
		t.Errorf("message of %d bytes", n)
	}
}

func TestDocumentErrors(t *testing.T) {
	for _, schemaText := range []string{``, `true`, `{}`, `{"type":"object","properties":{"a":{"type":"integer"}}}`, `{"unevaluatedProperties":false}`,
		`{"anyOf":[{"type":"object"},true]}`, `{"$ref":"#/$defs/t","$defs":{"t":{"properties":{"n":{"$ref":"#/$defs/t"}}}}}`} {
		s := mustCompile(t, schemaText)
		for doc, want := range map[string]string{
			``:                                     "malformed JSON at offset 0: unexpected end of input",
			`{"a":1`:                               "malformed JSON at offset 6: unexpected end of input",
			`{"a":1} x`:                            "malformed JSON at offset 8: unexpected data after the value",
			"{\"b\":\"\xff\"}":                     "malformed JSON at offset 6: invalid UTF-8",
			`{"a":1,"a":1}`:                        "duplicate object key at offset 7: in the root object",
			`{"a":1,"\u0061":1}`:                   "duplicate object key at offset 7: in the root object",
			`{"x":[{"k":1,"k":2}]}`:                "duplicate object key at offset 13: in the object at /x/0",
			`{"n":{"n":{"n":1,"n":`:                "duplicate object key at offset 17: in the object at /n/n",
			`[` + "\x00" + `]`:                     "malformed JSON at offset 1: expected a value",
			strings.Repeat(`[`, 2e5):               "malformed JSON at offset 1000: nested too deeply",
			`{"n":` + strings.Repeat(`{"n":`, 2e5): "malformed JSON at offset 5000: nested too deeply",
		} {
			err := s.Check([]byte(doc))
			if fmt.Sprint(err) != want {
				t.Errorf("%s: got %v, want %s", schemaText, err, want)
			}
			if errors.Is(err, schema.ErrMalformed) == errors.Is(err, schema.ErrDuplicateKey) || errors.Is(err, schema.ErrInvalid) {
				t.Errorf("%T matches the wrong sentinel", err)
			}
		}
	}
}

func TestCompileErrors(t *testing.T) {
	for raw, want := range map[string]string{
		`{"type":5}`:                            "invalid schema at /type: ",
		`{"properties":{"a":{"minimum":"1"}}}`:  "invalid schema at /properties/a/minimum: expected number, got string",
		`{"$ref":"#/$defs/gone"}`:               `invalid schema: $ref "#/$defs/gone" points to nothing`,
		`{"$ref":"#gone"}`:                      `invalid schema: $ref "#gone" points to nothing`,
		`{"$ref":"https://example.com/x.json"}`: `invalid schema: $ref "https://example.com/x.json" is not among the given resources, and nothing is loaded from elsewhere`,
		`{"$ref":"other.json"}`:                 `invalid schema: $ref "other.json" is not among the given resources, and nothing is loaded from elsewhere`,
		`{"$ref":"file:///etc/passwd"}`:         `invalid schema: $ref "file:///etc/passwd" is not among the given resources, and nothing is loaded from elsewhere`,
		`{"pattern":"("}`:                       "invalid schema at /pattern: ",
		`{"type":"object"`:                      "invalid schema: malformed JSON at offset 16: unexpected end of input",
		`{"type":"object","type":"array"}`:      "invalid schema: duplicate object key at offset 17: in the root object",
		`{"a":{"maximum":1e999999999}}`:         "invalid schema at /a/maximum: number out of range",
		`[]`:                                    "invalid schema",
		`null`:                                  "invalid schema",
		`{"$schema":"http://example.com/mine"}`: "invalid schema: ",
		strings.Repeat(`{"items":`, 2000):       "invalid schema: malformed JSON",
		`{"allOf":[` + strings.Repeat(`{},`, schema.MaxSchemaObjects) + `{}]}`: "invalid schema: more than 20000 objects",
		`{"description":"` + strings.Repeat("x", schema.MaxSchemaBytes) + `"}`: "invalid schema: larger than 4194304 bytes",
	} {
		_, err := schema.Compile(json.RawMessage(raw), nil)
		if err == nil || !strings.HasPrefix(err.Error(), want) || !errors.Is(err, schema.ErrCompile) {
			t.Errorf("%.80s: got %v, want %s", raw, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), "schema:///") || len(err.Error()) > 400) {
			t.Errorf("%.80s: message not fit for a reader: %v", raw, err)
		}
	}
}

// TestNumbers holds the corners of exact arithmetic.
func TestNumbers(t *testing.T) {
	for _, tc := range []struct {
		schema, doc string
		valid       bool
	}{
		{`{"type":"integer"}`, `1.0`, true},
		{`{"type":"integer"}`, `1e400`, true},
		{`{"type":"integer"}`, `10e-1`, true},
		{`{"type":"integer"}`, `1e-1`, false},
		{`{"type":"integer"}`, `0e-999999999999999999999999`, true},
		{`{"type":"integer"}`, `1e999999999999999999999999`, true},
		{`{"type":"integer"}`, `1e-999999999999999999999999`, false},
		{`{"type":"integer"}`, `-0.0`, true},
		{`{"maximum":9007199254740992}`, `9007199254740993`, false},
		{`{"maximum":9007199254740992}`, `9007199254740992.0`, true},
		{`{"maximum":18446744073709551615}`, `18446744073709551615`, true},
		{`{"maximum":18446744073709551615}`, `18446744073709551616`, false},
		{`{"minimum":-9223372036854775808}`, `-9223372036854775808`, true},
		{`{"minimum":-9223372036854775808}`, `-9223372036854775809`, false},
		{`{"maximum":1e400}`, `1e400`, true},
		{`{"maximum":1e400}`, `10.1e399`, false},
		{`{"minimum":90}`, `89.9999999999`, false},
		{`{"minimum":-90}`, `-90.0000001`, false},
		{`{"minimum":-90}`, `-90.0`, true},
		{`{"exclusiveMinimum":0}`, `-0.1`, false},
		{`{"exclusiveMinimum":0}`, `0.1`, true},
		{`{"exclusiveMinimum":0}`, `1e-400`, true},
		{`{"exclusiveMaximum":0}`, `-1e-400`, true},
		{`{"minimum":0.1}`, `0.10000000000000000000000000001`, true},
		{`{"minimum":0.1}`, `0.09999999999999999999999999999`, false},
		{`{"multipleOf":0.01}`, `1e999999999`, true},
		{`{"multipleOf":0.01}`, `1e-999999999`, false},
		{`{"multipleOf":3}`, `1e999999999`, false},
		{`{"multipleOf":3}`, `3e999999999999999999999`, true},
		{`{"multipleOf":0.0001}`, `0.0075`, true},
		{`{"multipleOf":0.0001}`, `0.00751`, false},
		{`{"multipleOf":1e-8}`, `12391239123`, true},
		{`{"multipleOf":0.123456789}`, `1e308`, false},
		{`{"multipleOf":7}`, `-14`, true},
		{`{"const":1}`, `1.0`, true},
		{`{"const":1.0}`, `1`, true},
		{`{"const":-0.0}`, `0`, true},
		{`{"enum":[100]}`, `1e2`, true},
		{`{"enum":[1e2]}`, `100`, true},
		{`{"enum":[9007199254740993]}`, `9007199254740992`, false},
		{`{"enum":[999999999999999999]}`, `999999999999999999`, true},
		{`{"enum":[{"a":1.0,"b":[2]}]}`, `{"b":[2.0],"a":1}`, true},
		{`{"uniqueItems":true}`, `[1,true,"1",[1],{"a":1},[true]]`, true},
		{`{"uniqueItems":true}`, `["a","\u0061"]`, false},
		{`{"uniqueItems":true}`, `[{"a":1,"b":2},{"b":2,"a":1}]`, false},
		{`{"unevaluatedItems":{"multipleOf":3}}`, `[1e999999999]`, false},
	} {
		err := mustCompile(t, tc.schema).Check([]byte(tc.doc))
		if (err == nil) != tc.valid {
			t.Errorf("%s on %s: %v", tc.schema, tc.doc, err)
		}
	}
}

func TestPatterns(t *testing.T) {
	for _, tc := range []struct {
		pattern, text string
		want          bool
	}{
		{`^\d+$`, "12", true},
		{`^\d$`, "\u0663", false},
		{`^\w$`, "é", false},
		{`^\s$`, "\u00a0", true},
		{`^\S$`, "\u2003", false},
		{`^.$`, "\u2028", false},
		{`^a$`, "a\n", false},
		{`^[^]$`, "x", true},
		{`^(?!foo)`, "foobar", false},
		{`^(?!foo)`, "bar", true},
		{`(a)\1`, "aa", true},
		{`(?=a)a$`, "a\n", false},
		{`(?=.).$`, "\u2028", false},
		{`(?=\s)\s$`, "\u3000", true},
		{`^[\S](?!b)$`, "\ufeff", false},
		{`(?=\d)\d`, "\u0663", false},
		{`^\u00e9$`, "é", true},
		{`^\/x\-y$`, "/x-y", true},
		{`^a{1,2000}$`, "aaa", true},
		{`^[[:alpha:]]$`, "b", false},
		{`^\p{Lu}`, "É", true},
		{`^\cA$`, "\x01", true},
		{`^[\s\d]+$`, "1 2", true},
		{`^(?<year>\d{4})$`, "2024", true},
	} {
		p, err := json.Marshal(tc.pattern)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := json.Marshal(tc.text)
		if err != nil {
			t.Fatal(err)
		}
		s := mustCompile(t, `{"pattern":`+string(p)+`}`)
		if got := s.Check(doc) == nil; got != tc.want {
			t.Errorf("%s on %q: %v", tc.pattern, tc.text, got)
		}
	}
}

// TestBounds feeds what a checker without bounds would not finish before the
// test times out.
func TestBounds(t *testing.T) {
	branching := `{"$defs":{"t":{"anyOf":[{"properties":{"a":{"$ref":"#/$defs/t"}},"required":["x"]},{"properties":{"a":{"$ref":"#/$defs/t"}},"required":["y"]},{"type":"null"}]}},"$ref":"#/$defs/t"}`
	for name, tc := range map[string]struct{ schema, doc string }{
		"alternatives multiply": {branching, strings.Repeat(`{"a":`, 500) + "1" + strings.Repeat("}", 500)},
		"backtracking":          {`{"items":{"pattern":"^(?=(a+)+$)(a+)+$"}}`, `["` + strings.Repeat(strings.Repeat("a", 40)+`b","`, 50) + `"]`},
		"self reference":        {`{"$ref":"#"}`, `1`},
		"mutual reference":      {`{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"$ref":"#/$defs/a"}}}`, `1`},
		"long number":           {`{"multipleOf":0.3}`, strings.Repeat("7", 1_000_000)},
	} {
		t.Run(name, func(t *testing.T) {
			if err := mustCompile(t, tc.schema).Check([]byte(tc.doc)); !errors.Is(err, schema.ErrInvalid) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestFormatIsAnAnnotation(t *testing.T) {
	for _, dialect := range []string{"", `"$schema":"http://json-schema.org/draft-07/schema#",`, `"$schema":"http://json-schema.org/draft-04/schema#",`} {
		raw := json.RawMessage(`{` + dialect + `"properties":{"d":{"format":"date-time"},"i":{"format":"regex"}}}`)
		doc := []byte(`{"d":"yesterday","i":"("}`)
		if err := mustCompile(t, string(raw)).Check(doc); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
		s, err := schema.Compile(raw, &schema.Options{AssertFormat: true})
		if err != nil {
			t.Fatal(err)
		}
		want := `/d: expected the format "date-time"; /i: expected the format "regex"`
		if err := s.Check(doc); fmt.Sprint(err) != want {
			t.Errorf("asserted: %v", err)
		}
	}
}

func TestCheckAllocatesNothing(t *testing.T) {
	for name, tc := range map[string]struct{ schema, doc string }{
		"typical":   {benchSchema, benchDoc},
		"anything":  {`true`, benchDoc},
		"escapes":   {benchSchema, `{"c\u0069ty":"Z\u00fcrich","units":"m\u0065tric"}`},
		"nullable":  {`{"properties":{"a":{"anyOf":[{"type":"integer","minimum":5},{"type":"null"}]}}}`, `{"a":null,"b":{"c":[1,2]}}`},
		"recursive": {`{"$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}},"required":["v"]}},"$ref":"#/$defs/n"}`, `{"v":1,"next":{"v":2,"next":{"v":3}}}`},
		"unique":    {`{"uniqueItems":true,"items":{"pattern":"^[a-z]+$"}}`, `["a","b","c"]`},
	} {
		s, doc := mustCompile(t, tc.schema), []byte(tc.doc)
		if n := testing.AllocsPerRun(200, func() {
			if err := s.Check(doc); err != nil {
				t.Fatal(err)
			}
		}); n != 0 && !raceEnabled {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestRepeatedViolationsStayCheap(t *testing.T) {
	s := mustCompile(t, `{"propertyNames":{"maxLength":3}}`)
	var doc strings.Builder
	doc.WriteString(`{"a":1`)
	for i := range 100_000 {
		fmt.Fprintf(&doc, `,"%s%d":1`, strings.Repeat("k", 80), i)
	}
	doc.WriteString("}")
	if err := s.Check([]byte(doc.String())); !errors.Is(err, schema.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

func TestCheckConcurrently(t *testing.T) {
	s := mustCompile(t, benchSchema)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 200 {
				good := s.Check([]byte(benchDoc))
				bad := s.Check(fmt.Appendf(nil, `{"city":%d}`, i))
				if good != nil || fmt.Sprint(bad) != "/city: expected string, got number" {
					t.Errorf("%v, %v", good, bad)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestRawAndTrivial(t *testing.T) {
	given := []byte(` {"type":"object"} `)
	s, err := schema.Compile(given, nil)
	if err != nil {
		t.Fatal(err)
	}
	given[2] = 'x'
	if !bytes.Equal(s.Raw(), []byte(`{"type":"object"}`)) || s.Trivial() {
		t.Errorf("%s %v", s.Raw(), s.Trivial())
	}
	for _, raw := range []string{``, `true`, `{}`, `{"description":"anything","$comment":"x"}`} {
		if !mustCompile(t, raw).Trivial() {
			t.Errorf("%q is not trivial", raw)
		}
	}
	if mustCompile(t, `false`).Trivial() {
		t.Error("false is trivial")
	}
}

func TestLargeDocument(t *testing.T) {
	size := 10_000_000
	if testing.Short() || raceEnabled {
		size /= 20
	}
	s := mustCompile(t, `{"type":"object","properties":{"blob":{"type":"string"}}}`)
	doc := []byte(`{"blob":"` + strings.Repeat("0123456789", size) + `","rest":[` + strings.Repeat(`{"a":1},`, 100_000) + `0]}`)
	if err := s.Check(doc); err != nil {
		t.Fatal(err)
	}
}
