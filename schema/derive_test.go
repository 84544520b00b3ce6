//lint:file-ignore SA5008 Odd struct tags are what is tested here.

package schema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/schema"
)

type (
	node struct {
		Value int     `json:"value"`
		Next  *node   `json:"next,omitempty"`
		Kids  []*node `json:"kids"`
	}
	tree   []tree
	mutual struct {
		Other map[string]other `json:"other"`
	}
	other struct {
		Back *mutual `json:"back"`
	}
	pair[A, B any] struct {
		First  A `json:"first"`
		Second B `json:"second"`
		More   *pair[A, B]
	}
	base struct {
		ID   string `json:"id"`
		Kind string `json:"kind"`
	}
	Exported struct {
		ID    string `json:"id"`
		Extra int    `json:"extra"`
	}
	left  struct{ ID, Kind string }
	right struct {
		ID    string
		Extra int
	}
	conflict struct {
		left
		right
	}
	shadow struct {
		base
		Kind int `json:"kind"`
	}
	withPointer struct {
		*Exported
		Own bool `json:"own"`
	}
	hidden struct {
		*base
	}
	money struct{ cents int64 }
	level int
	color struct{ name string }
	loop  *loop
)

func (m money) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, `"%d.%02d"`, m.cents/100, m.cents%100), nil
}
func (m *money) UnmarshalJSON(b []byte) error {
	var whole, part int64
	_, err := fmt.Sscanf(string(b), `"%d.%02d"`, &whole, &part)
	m.cents = whole*100 + part
	return err
}
func (money) JSONSchema() json.RawMessage {
	return json.RawMessage(`{"type":"string","pattern":"^\\d+\\.\\d\\d$"}`)
}

func (l level) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "L%d", int(l)), nil }
func (l *level) UnmarshalText(b []byte) error {
	_, err := fmt.Sscanf(string(b), "L%d", (*int)(l))
	return err
}

func (c *color) MarshalText() ([]byte, error) { return []byte(c.name), nil }

func TestDerive(t *testing.T) {
	const (
		anyInt  = `{"type":"integer"}`
		fullInt = `{"type":"integer","minimum":-9223372036854775808,"maximum":9223372036854775807}`
		str     = `{"type":"string"}`
	)
	for name, tc := range map[string]struct {
		value         any
		input, output string
	}{
		"scalars": {struct {
			A bool    `json:"a"`
			B int8    `json:"b"`
			C uint64  `json:"c"`
			D float64 `json:"d"`
			E string  `json:"e"`
		}{}, `{"type":"object","properties":{"a":{"type":"boolean"},"b":{"type":"integer","minimum":-128,"maximum":127},"c":{"type":"integer","minimum":0,"maximum":18446744073709551615},"d":{"type":"number"},"e":{"type":"string"}},"required":["a","b","c","d","e"],"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{"type":"boolean"},"b":{"type":"integer","minimum":-128,"maximum":127},"c":{"type":"integer","minimum":0},"d":{"type":"number"},"e":{"type":"string"}},"required":["a","b","c","d","e"],"additionalProperties":false}`},
		"optional": {struct {
			A string            `json:"a,omitempty"`
			B []int             `json:"b,omitempty"`
			C *int              `json:"c"`
			D time.Time         `json:"d,omitzero"`
			E map[string]string `json:"e"`
		}{}, `{"type":"object","properties":{"a":` + str + `,"b":{"type":["array","null"],"items":` + fullInt + `},"c":{"type":["integer","null"],"minimum":-9223372036854775808,"maximum":9223372036854775807},"d":{"type":"string","format":"date-time"},"e":{"type":["object","null"],"additionalProperties":` + str + `}},"required":["e"],"additionalProperties":false}`,
			`{"type":"object","properties":{"a":` + str + `,"b":{"type":"array","items":` + anyInt + `},"c":{"type":["integer","null"]},"d":{"type":"string","format":"date-time"},"e":{"type":["object","null"],"additionalProperties":` + str + `}},"required":["c","e"],"additionalProperties":false}`},
		"special": {struct {
			A []byte
			B [2]byte
			C json.RawMessage
			D json.Number
			E time.Duration
			F netip.Addr
			G level
			H map[level]bool
			I money
			J *big.Int
		}{}, `{"type":"object","properties":{"A":{"type":["string","null"],"contentEncoding":"base64"},"B":{"type":"array","items":{"type":"integer","minimum":0,"maximum":255},"minItems":2,"maxItems":2},"C":{},"D":{"type":"number"},"E":{"type":"integer","description":"nanoseconds","minimum":-9223372036854775808,"maximum":9223372036854775807},"F":` + str + `,"G":` + str + `,"H":{"type":["object","null"],"additionalProperties":{"type":"boolean"}},"I":{"type":"string","pattern":"^\\d+\\.\\d\\d$"},"J":{}},"required":["A","B","C","D","E","F","G","H","I"],"additionalProperties":false}`,
			`{"type":"object","properties":{"A":{"type":["string","null"],"contentEncoding":"base64"},"B":{"type":"array","items":{"type":"integer","minimum":0,"maximum":255},"minItems":2,"maxItems":2},"C":{},"D":{"type":"number"},"E":{"type":"integer","description":"nanoseconds"},"F":` + str + `,"G":` + str + `,"H":{"type":["object","null"],"additionalProperties":{"type":"boolean"}},"I":{"type":"string","pattern":"^\\d+\\.\\d\\d$"},"J":{}},"required":["A","B","C","D","E","F","G","H","I","J"],"additionalProperties":false}`},
		"conflict": {conflict{},
			`{"type":"object","properties":{"Kind":` + str + `,"Extra":` + fullInt + `},"required":["Kind","Extra"],"additionalProperties":false}`,
			`{"type":"object","properties":{"Kind":` + str + `,"Extra":` + anyInt + `},"required":["Kind","Extra"],"additionalProperties":false}`},
		"shadow": {shadow{},
			`{"type":"object","properties":{"id":` + str + `,"kind":` + fullInt + `},"required":["id","kind"],"additionalProperties":false}`,
			`{"type":"object","properties":{"id":` + str + `,"kind":` + anyInt + `},"required":["id","kind"],"additionalProperties":false}`},
		"embedded pointer": {withPointer{},
			`{"type":"object","properties":{"id":` + str + `,"extra":` + fullInt + `,"own":{"type":"boolean"}},"required":["own"],"additionalProperties":false}`,
			`{"type":"object","properties":{"id":` + str + `,"extra":` + anyInt + `,"own":{"type":"boolean"}},"required":["own"],"additionalProperties":false}`},
		"tagged": {struct {
			Exported `json:"base"`
			Hidden   string `json:"-"`
			Dash     string `json:"-,"`
			secret   string
			Bad      string `json:"a\\b"`
		}{}, `{"type":"object","properties":{"base":{"type":"object","properties":{"id":` + str + `,"extra":` + fullInt + `},"required":["id","extra"],"additionalProperties":false},"-":` + str + `,"Bad":` + str + `},"required":["base","-","Bad"],"additionalProperties":false}`,
			`{"type":"object","properties":{"base":{"type":"object","properties":{"id":` + str + `,"extra":` + anyInt + `},"required":["id","extra"],"additionalProperties":false},"-":` + str + `,"Bad":` + str + `},"required":["base","-","Bad"],"additionalProperties":false}`},
		"recursive": {node{},
			`{"type":"object","properties":{"value":` + fullInt + `,"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]},"kids":{"type":["array","null"],"items":{"anyOf":[{"$ref":"#"},{"type":"null"}]}}},"required":["value","kids"],"additionalProperties":false}`,
			`{"type":"object","properties":{"value":` + anyInt + `,"next":{"$ref":"#"},"kids":{"type":["array","null"],"items":{"anyOf":[{"$ref":"#"},{"type":"null"}]}}},"required":["value","kids"],"additionalProperties":false}`},
		"recursive below a slice": {[]node{},
			`{"type":["array","null"],"items":{"$ref":"#/$defs/node"},"$defs":{"node":{"type":"object","properties":{"value":` + fullInt + `,"next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]},"kids":{"type":["array","null"],"items":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}}},"required":["value","kids"],"additionalProperties":false}}}`, ``},
		"recursive slice": {tree{},
			`{"$ref":"#/$defs/tree","$defs":{"tree":{"type":["array","null"],"items":{"$ref":"#/$defs/tree"}}}}`,
			`{"$ref":"#/$defs/tree","$defs":{"tree":{"type":["array","null"],"items":{"$ref":"#/$defs/tree"}}}}`},
		"mutual": {mutual{},
			`{"type":"object","properties":{"other":{"type":["object","null"],"additionalProperties":{"type":"object","properties":{"back":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"additionalProperties":false}}},"required":["other"],"additionalProperties":false}`, ``},
		"generic": {map[string]pair[int, *time.Time]{},
			`{"type":["object","null"],"additionalProperties":{"$ref":"#/$defs/pair_int__time.Time"},"$defs":{"pair_int__time.Time":{"type":"object","properties":{"first":` + fullInt + `,"second":{"type":["string","null"],"format":"date-time"},"More":{"anyOf":[{"$ref":"#/$defs/pair_int__time.Time"},{"type":"null"}]}},"required":["first"],"additionalProperties":false}}}`, ``},
		"quoted": {struct {
			A int     `json:",string"`
			B *uint   `json:",string"`
			C string  `json:",string"`
			D bool    `json:",string"`
			E []int   `json:",string"`
			F float64 `json:",string"`
		}{}, `{"type":"object","properties":{"A":{"type":"string","pattern":"^(0|-?[1-9][0-9]*)$"},"B":{"type":["string","null"],"pattern":"^(0|[1-9][0-9]*)$"},"C":{"type":"string","contentMediaType":"application/json"},"D":{"type":"string","enum":["true","false"]},"E":{"type":["array","null"],"items":` + fullInt + `},"F":{"type":"string","pattern":"^-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?$"}},"required":["A","C","D","E","F"],"additionalProperties":false}`, ``},
		"pointer with text": {map[uint8]*color{},
			``, `{"type":["object","null"],"propertyNames":{"pattern":"^(0|[1-9][0-9]*)$"},"additionalProperties":{"type":["string","null"]}}`},
		"empty": {struct{}{}, `{"type":"object","additionalProperties":false}`, `{"type":"object","additionalProperties":false}`},
		"root pointer": {(*Exported)(nil),
			`{"type":"object","properties":{"id":` + str + `,"extra":` + fullInt + `},"required":["id","extra"],"additionalProperties":false}`,
			`{"type":["object","null"],"properties":{"id":` + str + `,"extra":` + anyInt + `},"required":["id","extra"],"additionalProperties":false}`},
	} {
		t.Run(name, func(t *testing.T) {
			for dir, want := range map[schema.Direction]string{schema.Input: tc.input, schema.Output: tc.output} {
				got, err := schema.Of(reflect.TypeOf(tc.value), dir)
				if err != nil {
					t.Fatal(err)
				}
				if want != "" && string(got) != want {
					t.Errorf("direction %d\ngot  %s\nwant %s", dir, got, want)
				}
				if _, err := schema.Compile(got, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestTags(t *testing.T) {
	type args struct {
		A string   `json:"a" jsonschema:"required,title=The A,description=one\\, two,minLength=1,maxLength=9,pattern=^[a-z]{1\\,3}$,format=email,example=ab,example=c"`
		B int      `json:"b" jsonschema:"minimum=1,exclusiveMaximum=9,multipleOf=2,enum=2,enum=4,default=2"`
		C []string `json:"c" jsonschema:"minItems=1,maxItems=3,uniqueItems=true,enum=x,enum=y,default=x,default=y"`
		D float64  `json:"d,omitempty" jsonschema:"nullable,deprecated,readOnly,writeOnly=false"`
		E string   `json:"e" jsonschema:"The place, in English"`
		F bool     `json:"f" jsonschema:"optional" jsonschema_description:"whether, or not"`
		G *string  `json:"g" jsonschema:"required,enum=x"`
		H []int    `json:"h" jsonschema:"minimum=1,default=[1\\,2]"`
		I struct{} `json:"i" jsonschema:"default={},maxProperties=0"`
	}
	got, err := schema.For[args](schema.Output)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"object","properties":{` +
		`"a":{"type":"string","title":"The A","description":"one, two","minLength":1,"maxLength":9,"pattern":"^[a-z]{1,3}$","format":"email","examples":["ab","c"]},` +
		`"b":{"type":"integer","minimum":1,"exclusiveMaximum":9,"multipleOf":2,"enum":[2,4],"default":2},` +
		`"c":{"type":["array","null"],"items":{"type":"string","enum":["x","y"]},"uniqueItems":true,"minItems":1,"maxItems":3,"default":["x","y"]},` +
		`"d":{"type":["number","null"],"readOnly":true,"deprecated":true},` +
		`"e":{"type":"string","description":"The place, in English"},` +
		`"f":{"type":"boolean","description":"whether, or not"},` +
		`"g":{"type":["string","null"],"enum":["x",null]},` +
		`"h":{"type":["array","null"],"items":{"type":"integer","minimum":1},"default":[1,2]},` +
		`"i":{"type":"object","additionalProperties":false,"maxProperties":0,"default":{}}` +
		`},"required":["a","b","c","e","f","g","h","i"],"additionalProperties":false}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	in, err := schema.For[args](schema.Input)
	if err != nil || !strings.Contains(string(in), `"required":["a","e","g"]`) {
		t.Errorf("%s, %v", in, err)
	}
	if doc := schema.NewDefaults(in).Apply([]byte(`{"a":"x","b":4,"h":null}`)); string(doc) != `{"a":"x","b":4,"h":null,"c":["x","y"],"i":{}}` {
		t.Errorf("with defaults: %s", doc)
	}
}

func TestDefaultsAtEveryLevel(t *testing.T) {
	type window struct {
		From  string `json:"from"`
		Hours int    `json:"hours,omitempty" jsonschema:"default=4"`
	}
	type tree struct {
		Size     int     `json:"size,omitempty" jsonschema:"default=1"`
		Children []*tree `json:"children,omitempty"`
	}
	type args struct {
		Kind   string            `json:"kind,omitempty" jsonschema:"default=parcel"`
		Window window            `json:"window"`
		P      *window           `json:"p,omitempty"`
		List   []window          `json:"list,omitempty"`
		Map    map[string]window `json:"map,omitempty"`
		Tree   *tree             `json:"tree,omitempty"`
	}
	raw, err := schema.For[args](schema.Input)
	if err != nil {
		t.Fatal(err)
	}
	defaults := schema.NewDefaults(raw)
	for doc, want := range map[string]string{
		`{"window":{"from":"x"}}`: `{"window":{"from":"x","hours":4},"kind":"parcel"}`,
		`{"kind":"k","window":{"from":"x","hours":0},"p":{"from":"y"},"list":[{"from":"a"},{"from":"b","hours":2},{"from":"c"}],"map":{"m":{"from":"z"}}}`: `{"kind":"k","window":{"from":"x","hours":0},"p":{"from":"y","hours":4},"list":[{"from":"a","hours":4},{"from":"b","hours":2},{"from":"c","hours":4}],"map":{"m":{"from":"z","hours":4}}}`,
		`{"kind":"k","window":{"hours":1},"p":null,"tree":{"children":[{"size":2},{"children":[{}]}]}}`:                                                    `{"kind":"k","window":{"hours":1},"p":null,"tree":{"children":[{"size":2},{"children":[{"size":1}],"size":1}],"size":1}}`,
	} {
		if got := string(defaults.Apply([]byte(doc))); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", doc, got, want)
		}
	}
	for _, doc := range []string{`[]`, `null`, `7`} {
		if got := string(defaults.Apply([]byte(doc))); got != doc {
			t.Errorf("%s became %s", doc, got)
		}
	}
	if d := schema.NewDefaults(json.RawMessage(`{"properties":{"a":{"$ref":"#"}}}`)); d != nil || string(d.Apply([]byte(`{}`))) != `{}` {
		t.Error("a schema without defaults has some")
	}
}

type describer struct{}

func (describer) JSONSchema() json.RawMessage { return json.RawMessage(`{"type":5}`) }

type refDescriber struct{}

func (refDescriber) JSONSchema() json.RawMessage {
	return json.RawMessage(`{"$defs":{"a":{}},"items":[{"$ref":"#/$defs/a"}][0]}`)
}

type panicDescriber struct{}

func (panicDescriber) JSONSchema() json.RawMessage { panic("no") }

type embedsDescriber struct {
	EmbeddedDescriber
	More int
}
type EmbeddedDescriber struct{}

func (EmbeddedDescriber) JSONSchema() json.RawMessage { return json.RawMessage(`{"type":"string"}`) }

func TestDeriveErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		value       any
		unsupported bool
		want        string
	}{
		"any":            {struct{ A any }{}, true, ".A: interface {}: use json.RawMessage for any JSON"},
		"any in a map":   {struct{ A map[string]any }{}, true, ".A[]: interface {}: use json.RawMessage"},
		"any in a slice": {struct{ A [][]any }{}, true, ".A[][]: interface {}"},
		"interface":      {struct{ A fmt.Stringer }{}, true, ".A: fmt.Stringer: use json.RawMessage"},
		"marshaler":      {struct{ A json.Marshaler }{}, true, ".A: json.Marshaler: use json.RawMessage"},
		"chan":           {struct{ A chan int }{}, true, ".A: chan int"},
		"func":           {struct{ B struct{ A func() } }{}, true, ".B.A: func()"},
		"complex":        {struct{ A complex64 }{}, true, ".A: complex64"},
		"uintptr":        {struct{ A uintptr }{}, true, ".A: uintptr"},
		"keys":           {struct{ A map[float64]int }{}, true, ".A: map[float64]int: encoding/json has no form for its keys"},
		"hidden pointer": {hidden{}, true, ".ID: string: encoding/json cannot set"},
		"pointer loop":   {loop(nil), true, "schema_test.loop"},
		"unknown key": {struct {
			A int `jsonschema:"min=3"`
		}{}, false, `.A: tag: unknown item "min=3"`},
		"unescaped comma": {struct {
			A int `jsonschema:"description=a, b"`
		}{}, false, `.A: tag: unknown item " b"`},
		"wrong type": {struct {
			A string `jsonschema:"minimum=3"`
		}{}, false, ".A: tag: minimum: is for a number, and this is string"},
		"wrong flag": {struct {
			A string `jsonschema:"uniqueItems"`
		}{}, false, ".A: tag: uniqueItems is for an array"},
		"bad flag": {struct {
			A string `jsonschema:"required=maybe"`
		}{}, false, ".A: tag: required is true or false"},
		"bad number": {struct {
			A int `jsonschema:"minimum=x"`
		}{}, false, `.A: tag: minimum: expected a number, got "x"`},
		"bad count": {struct {
			A string `jsonschema:"minLength=-1"`
		}{}, false, `.A: tag: minLength: expected a count, got "-1"`},
		"out of range": {struct {
			A uint8 `jsonschema:"minimum=-1"`
		}{}, false, ".A: tag: minimum: -1 is outside the range 0 to 255"},
		"bad multiple": {struct {
			A int `jsonschema:"multipleOf=0"`
		}{}, false, ".A: tag: multipleOf: expected a number above 0"},
		"bad pattern": {struct {
			A string `jsonschema:"pattern=("`
		}{}, false, ".A: tag: pattern: invalid regular expression"},
		"bad default": {struct {
			A int `jsonschema:"default=x"`
		}{}, false, `.A: tag: default: "x" is not integer`},
		"default range": {struct {
			A int `jsonschema:"maximum=3,default=4"`
		}{}, false, `.A: tag: default: "4": expected a number <= 3`},
		"default enum": {struct {
			A string `jsonschema:"enum=a,default=b"`
		}{}, false, `.A: tag: default: "b": expected one of "a"`},
		"two defaults": {struct {
			A string `jsonschema:"default=a,default=b"`
		}{}, false, `.A: tag: default: given 2 times`},
		"bad enum": {struct {
			A int `jsonschema:"enum=1,enum=b"`
		}{}, false, `.A: tag: enum: "b" is not integer`},
		"bad items enum": {struct {
			A []bool `jsonschema:"enum=1"`
		}{}, false, `.A: tag: enum: "1": expected boolean, got number`},
		"bad schema": {struct{ A describer }{}, false, ".A: JSONSchema of schema_test.describer: invalid schema at /type"},
		"panics":     {struct{ A panicDescriber }{}, false, ".A: JSONSchema of schema_test.panicDescriber panicked"},
		"malformed":  {struct{ A refDescriber }{}, false, ".A: JSONSchema of schema_test.refDescriber: invalid schema"},
		"promoted":   {struct{ A embedsDescriber }{}, false, ".A: JSONSchema of schema_test.embedsDescriber may be that of the embedded"},
	} {
		_, err := schema.Of(reflect.TypeOf(tc.value), schema.Input)
		if err == nil || !strings.Contains(err.Error(), tc.want) || !errors.Is(err, schema.ErrBuild) || errors.Is(err, schema.ErrUnsupportedType) != tc.unsupported {
			t.Errorf("%s: got %v, want %s", name, err, tc.want)
		}
	}
	if _, err := schema.Of(nil, schema.Input); !errors.Is(err, schema.ErrBuild) {
		t.Error(err)
	}
}

func TestArguments(t *testing.T) {
	for _, tc := range []struct {
		typ  reflect.Type
		want string
	}{
		{reflect.TypeFor[*struct{}](), `{"type":"object","additionalProperties":false}`},
		{reflect.TypeFor[map[string]bool](), `{"type":"object","additionalProperties":{"type":"boolean"}}`},
		{reflect.TypeFor[json.RawMessage](), `{"type":"object"}`},
		{reflect.TypeFor[string](), ""},
		{reflect.TypeFor[time.Time](), ""},
		{reflect.TypeFor[[]int](), ""},
	} {
		got, err := schema.Arguments(tc.typ)
		if string(got) != tc.want || (err != nil) != (tc.want == "") || err != nil && !errors.Is(err, schema.ErrUnsupportedType) {
			t.Errorf("%v: %s, %v", tc.typ, got, err)
		}
	}
}

type wide0 struct{ A, B, C, D wide1 }
type wide1 struct{ A, B, C, D wide2 }
type wide2 struct{ A, B, C, D wide3 }
type wide3 struct{ A, B, C, D wide4 }
type wide4 struct{ A, B, C, D wide5 }
type wide5 struct{ A, B, C, D int }

func TestSharedTypesDoNotMultiply(t *testing.T) {
	raw, err := schema.For[wide0](schema.Input)
	if err != nil || len(raw) > 5000 || !strings.Contains(string(raw), "#/$defs/wide5") {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
}

func TestPlainIntegers(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":1.0,"b":[2e3,-0.0,1.5,"1.0"],"c":1e400}`: `{"a":1,"b":[2000,0,1.5,"1.0"],"c":1e400}`,
		`[1,-2]`: `[1,-2]`,
	} {
		got, changed := schema.PlainIntegers([]byte(in))
		if string(got) != want || changed != (in != want) {
			t.Errorf("%s: %s, %v", in, got, changed)
		}
	}
}
