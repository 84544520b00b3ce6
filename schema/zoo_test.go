package schema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/schema"
)

type (
	zooScalars struct {
		A bool
		B int8
		C uint16
		D int64
		E uint64
		F float32
		G float64
		H string `json:"h,omitempty"`
		I int    `json:"i,omitzero"`
	}
	zooNested struct {
		zooScalars
		*Exported
		List  []zooScalars          `json:"list"`
		Maybe *zooScalars           `json:"maybe,omitempty"`
		Map   map[string]*[]int     `json:"map"`
		Ints  map[int16][2]bool     `json:"ints,omitempty"`
		Deep  [][]map[uint8]float64 `json:"deep,omitzero"`
		Named tree
	}
	zooQuoted struct {
		A int64   `json:",string"`
		B *uint8  `json:",string"`
		C bool    `json:"c,string,omitempty"`
		D string  `json:"d,string"`
		E float64 `json:",string"`
	}
	zooSpecial struct {
		A []byte
		B [3]byte
		C json.RawMessage `json:"c"`
		D json.Number
		E time.Duration
		F time.Time
		G level
		H map[level]money
		I *money `json:"i,omitempty"`
		J netip.Addr
		K *time.Time `json:"k,omitempty"`
		L struct{}   `json:"l,omitempty"`
	}
	zooShadow struct {
		zooScalars
		A string
		C *int `json:"C,omitzero"`
	}
	zooOmit struct {
		A []int          `json:"a,omitempty"`
		B map[string]int `json:"b,omitempty"`
		C *[]int         `json:"c,omitempty"`
		D **int          `json:"d,omitempty"`
		E [0]int         `json:"e,omitempty"`
		F []int          `json:"f,omitzero"`
	}
)

// zoo has the types. exact says that every document which passes the Input schema
// decodes: text with a form of its own (dates, base64) may not. lossy says that
// encoding/json itself does not bring every value back.
var zoo = []struct {
	typ          reflect.Type
	exact, lossy bool
}{
	{reflect.TypeFor[zooScalars](), true, false},
	{reflect.TypeFor[zooNested](), true, false},
	{reflect.TypeFor[zooShadow](), true, false},
	{reflect.TypeFor[zooOmit](), true, true},
	{reflect.TypeFor[node](), true, false},
	{reflect.TypeFor[mutual](), true, false},
	{reflect.TypeFor[conflict](), true, false},
	{reflect.TypeFor[withPointer](), true, true},
	{reflect.TypeFor[map[string]pair[string, *int]](), true, false},
	{reflect.TypeFor[[]zooOmit](), true, true},
	{reflect.TypeFor[zooQuoted](), false, false},
	{reflect.TypeFor[zooSpecial](), false, false},
}

// fill sets v to a random value.
func fill(t *rapid.T, v reflect.Value, depth int) {
	switch p := v.Addr().Interface().(type) {
	case *time.Time:
		*p = time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "time"), 0).UTC()
		return
	case *json.Number:
		*p = rapid.SampledFrom([]json.Number{"", "0", "-1.5", "1e400", "9007199254740993"}).Draw(t, "number")
		return
	case *json.RawMessage:
		*p = rapid.SampledFrom([]json.RawMessage{nil, []byte(`null`), []byte(`{"x":[1]}`)}).Draw(t, "raw")
		return
	case *netip.Addr:
		*p = netip.AddrFrom4([4]byte{10, 0, 0, rapid.Byte().Draw(t, "address")})
		return
	case *money:
		p.cents = rapid.Int64Range(0, 1e6).Draw(t, "cents")
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				fill(t, f, depth)
			} else if v.Type().Field(i).Anonymous && f.Kind() == reflect.Struct {
				fillPromoted(t, f, depth)
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i), depth)
		}
	case reflect.Pointer, reflect.Slice, reflect.Map:
		if depth > 0 && rapid.Bool().Draw(t, "set") {
			fillIndirect(t, v, depth-1)
		}
	default:
		fillScalar(t, v)
	}
}

// fillPromoted sets the fields of an embedded struct whose type is not exported.
func fillPromoted(t *rapid.T, v reflect.Value, depth int) {
	for i := range v.NumField() {
		if f := v.Field(i); f.CanSet() {
			fill(t, f, depth)
		}
	}
}

func fillIndirect(t *rapid.T, v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), depth)
	case reflect.Slice:
		n := rapid.IntRange(0, 3).Draw(t, "length")
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(t, v.Index(i), depth)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range rapid.IntRange(0, 3).Draw(t, "size") {
			key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(t, key, depth)
			fill(t, elem, depth)
			v.SetMapIndex(key, elem)
		}
	}
}

func fillScalar(t *rapid.T, v reflect.Value) {
	switch {
	case v.Kind() == reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case v.CanInt():
		bits := v.Type().Bits()
		v.SetInt(rapid.SampledFrom([]int64{0, 1, -1, math.MinInt64 >> (64 - bits), math.MaxInt64 >> (64 - bits)}).Draw(t, "int"))
	case v.CanUint():
		v.SetUint(rapid.SampledFrom([]uint64{0, 1, math.MaxUint64 >> (64 - v.Type().Bits())}).Draw(t, "uint"))
	case v.CanFloat():
		v.SetFloat(float64(rapid.SampledFrom([]float32{0, 1.5, -2, math.MaxFloat32, 1e-20}).Draw(t, "float")))
	case v.Kind() == reflect.String:
		v.SetString(rapid.SampledFrom([]string{"", "a", "<é\u2028", "null"}).Draw(t, "string"))
	}
}

type schemas struct{ in, out *schema.Schema }

func zooSchemas(t *testing.T) map[reflect.Type]schemas {
	out := map[reflect.Type]schemas{}
	for _, z := range zoo {
		var s [2]*schema.Schema
		for _, dir := range []schema.Direction{schema.Input, schema.Output} {
			raw, err := schema.Of(z.typ, dir)
			if err != nil {
				t.Fatal(err)
			}
			if s[dir], err = schema.Compile(raw, nil); err != nil {
				t.Fatal(err)
			}
		}
		out[z.typ] = schemas{s[schema.Input], s[schema.Output]}
	}
	return out
}

// TestZoo: what a type marshals to passes its Output schema, and what passes its
// Input schema unmarshals and comes back the same.
func TestZoo(t *testing.T) {
	compiled := zooSchemas(t)
	passedIn := map[reflect.Type]int{}
	rapid.Check(t, func(t *rapid.T) {
		z := zoo[rapid.IntRange(0, len(zoo)-1).Draw(t, "type")]
		v := reflect.New(z.typ)
		fill(t, v.Elem(), 4)
		doc, err := json.Marshal(v.Interface())
		if err != nil {
			t.Fatal(err)
		}
		s := compiled[z.typ]
		if err := s.out.Check(doc); err != nil {
			t.Fatalf("%v: %s\nfails the output schema: %v\n%s", z.typ, doc, err, s.out.Raw())
		}
		if s.in.Check(doc) == nil {
			passedIn[z.typ]++
			if again := decodeAgain(t, z.typ, doc); !bytes.Equal(again, doc) && !z.lossy {
				t.Fatalf("%v: %s\ncame back as %s", z.typ, doc, again)
			}
		}
		if z.exact {
			changed := mutate(t, doc)
			if s.in.Check(changed) == nil {
				decodeAgain(t, z.typ, changed)
			}
		}
	})
	for _, z := range zoo {
		if passedIn[z.typ] == 0 {
			t.Errorf("%v: no document passed the input schema", z.typ)
		}
	}
}

func decodeAgain(t *rapid.T, typ reflect.Type, doc []byte) []byte {
	back := reflect.New(typ)
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.DisallowUnknownFields()
	if err := dec.Decode(back.Interface()); err != nil {
		t.Fatalf("%v: %s\npasses the input schema but: %v", typ, doc, err)
	}
	again, err := json.Marshal(back.Interface())
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// mutate replaces one value somewhere in the document.
func mutate(t *rapid.T, doc []byte) []byte {
	it := rawjson.Object(doc)
	if rawjson.KindOf(doc) == rawjson.KindArray {
		it = rawjson.Array(doc)
	}
	var spans [][2]int
	for it.Next() {
		spans = append(spans, [2]int{it.Offset(), it.Offset() + len(it.Value())})
	}
	if len(spans) == 0 || rapid.IntRange(0, 3).Draw(t, "here") == 0 {
		return []byte(rapid.SampledFrom([]string{`null`, `1`, `-1`, `300`, `1.5`, `1e30`, `"x"`, `true`, `[]`, `{}`, `[1]`, `{"A":1}`}).Draw(t, "other"))
	}
	at := rapid.SampledFrom(spans).Draw(t, "at")
	inner := mutate(t, doc[at[0]:at[1]])
	return fmt.Appendf(nil, "%s%s%s", doc[:at[0]], inner, doc[at[1]:])
}
