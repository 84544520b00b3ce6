package expr

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// Decode reads a JSON value with its numbers as they are written. No value at
// all is null.
func Decode(raw json.RawMessage) (any, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return v, nil
}

// ValueOf returns what encoding/json makes of a Go value, as Decode reads it.
func ValueOf(v any) (any, error) {
	if raw, ok := v.(json.RawMessage); ok {
		return Decode(raw)
	}
	enc, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return Decode(enc)
}

// adapter gives CEL the values of decoded JSON. Numbers that are whole and fit
// are integers, all others are doubles.
type adapter struct{ types.Adapter }

func (a adapter) NativeToValue(v any) ref.Val {
	switch v := v.(type) {
	case json.Number:
		return number(v)
	case map[string]any:
		return types.NewStringInterfaceMap(a, v)
	case []any:
		return types.NewDynamicList(a, v)
	}
	return a.Adapter.NativeToValue(v)
}

func number(n json.Number) ref.Val {
	if i, err := n.Int64(); err == nil {
		return types.Int(i)
	}
	if u, err := strconv.ParseUint(n.String(), 10, 64); err == nil {
		return types.Uint(u)
	}
	f, err := n.Float64()
	if err != nil {
		return types.NewErr("the number %.40s is out of range", n)
	}
	return types.Double(f)
}

// export turns a value of CEL into one that encoding/json can encode.
func export(v ref.Val) (any, error) { return (&exporter{left: maxResult}).value(v) }

func (e *exporter) value(v ref.Val) (any, error) {
	if err := e.take(textLen(v)); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(v), nil
	case types.String:
		return string(v), nil
	case types.Int:
		return json.Number(strconv.FormatInt(int64(v), 10)), nil
	case types.Uint:
		return json.Number(strconv.FormatUint(uint64(v), 10)), nil
	case types.Double:
		return double(float64(v))
	case types.Bytes:
		return []byte(v), nil
	case traits.Mapper:
		return e.object(v)
	case traits.Lister:
		return e.list(v)
	case *types.Err:
		return nil, v
	}
	// Times and durations have a text of their own.
	text := v.ConvertToType(types.StringType)
	if s, ok := text.(types.String); ok {
		return string(s), nil
	}
	return nil, fmt.Errorf("a value of type %s is not JSON", v.Type().TypeName())
}

func textLen(v ref.Val) int {
	switch v := v.(type) {
	case types.String:
		return len(v)
	case types.Bytes:
		return len(v)
	}
	return 0
}

func double(f float64) (any, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("the number %v is not JSON", f)
	}
	return f, nil
}

func (e *exporter) object(m traits.Mapper) (any, error) {
	out := map[string]any{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return nil, fmt.Errorf("a map with keys of type %s is not JSON", key.Type().TypeName())
		}
		if err := e.take(len(name)); err != nil {
			return nil, err
		}
		value, err := e.value(m.Get(key))
		if err != nil {
			return nil, err
		}
		out[string(name)] = value
	}
	return out, nil
}

func (e *exporter) list(l traits.Lister) (any, error) {
	out := []any{}
	for it := l.Iterator(); it.HasNext() == types.True; {
		value, err := e.value(it.Next())
		if err != nil {
			return nil, err
		}
		out = append(out, value)
	}
	return out, nil
}
