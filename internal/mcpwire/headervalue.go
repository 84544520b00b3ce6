package mcpwire

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// Values that a header cannot carry as they are stand in it as base64 between
// these two.
const (
	base64Prefix = "=?base64?"
	base64Suffix = "?="
)

// encodeHeader returns text as a header value.
func encodeHeader(text string) string {
	if !needsBase64(text) {
		return text
	}
	return base64Prefix + base64.StdEncoding.EncodeToString([]byte(text)) + base64Suffix
}

func needsBase64(text string) bool {
	if text == "" {
		return false
	}
	if strings.HasPrefix(text, base64Prefix) && strings.HasSuffix(text, base64Suffix) {
		return true
	}
	if strings.Trim(text, " \t") != text {
		return true
	}
	return strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 || r > 0x7e })
}

// decodeHeader returns the text that a header value stands for.
func decodeHeader(value string) (string, bool) {
	inner, ok := strings.CutPrefix(value, base64Prefix)
	if !ok {
		return value, true
	}
	if inner, ok = strings.CutSuffix(inner, base64Suffix); !ok {
		return value, true
	}
	text, err := base64.StdEncoding.DecodeString(inner)
	return string(text), err == nil
}

// A paramHeader binds an argument of a tool to a header.
type paramHeader struct {
	path   []string
	header string
}

// ParamHeaders returns the Mcp-Param headers that a tool call carries in the
// stateless era: one for each property of the input schema that has an
// x-mcp-header and a value in the arguments of params.
func ParamHeaders(inputSchema, params json.RawMessage) http.Header {
	bound := paramHeaders(inputSchema, nil, nil)
	if len(bound) == 0 {
		return nil
	}
	args, _ := rawjson.Get(params, "arguments")
	out := http.Header{}
	for _, b := range bound {
		if v, ok := rawjson.Get(args, b.path...); ok {
			if text, ok := headerText(v); ok {
				out.Set(HeaderParamPrefix+b.header, encodeHeader(text))
			}
		}
	}
	return out
}

// CheckParamHeaders reports the first Mcp-Param header that contradicts the
// arguments, as a [CodeHeaderMismatch] error, or nil.
func CheckParamHeaders(h http.Header, inputSchema, params json.RawMessage) error {
	args, _ := rawjson.Get(params, "arguments")
	for _, b := range paramHeaders(inputSchema, nil, nil) {
		name := HeaderParamPrefix + b.header
		got := h.Get(name)
		v, ok := rawjson.Get(args, b.path...)
		ok = ok && string(v) != "null"
		if !ok && got == "" {
			continue
		}
		text, isText := headerText(v)
		decoded, valid := decodeHeader(got)
		if !ok || !isText || !valid || got == "" || !sameHeaderText(decoded, text, v) {
			return Errorf(CodeHeaderMismatch, "header mismatch: %s does not match the argument %s", name, strings.Join(b.path, "."))
		}
	}
	return nil
}

// CheckHeaderBindings returns what is wrong with the x-mcp-header members of an
// input schema, or nil. A client of the stateless era must not use a tool over
// HTTP of which something is.
func CheckHeaderBindings(inputSchema json.RawMessage) error {
	return checkBindings(inputSchema, nil, map[string]bool{})
}

func checkBindings(schema json.RawMessage, path []string, taken map[string]bool) error {
	properties, ok := rawjson.Get(schema, "properties")
	if !ok || len(path) > 16 {
		return nil
	}
	for it := rawjson.Object(properties); it.Next(); {
		at := append(path[:len(path):len(path)], it.Key())
		if raw, ok := rawjson.Get(it.Value(), "x-mcp-header"); ok {
			if err := checkBinding(it.Value(), raw, taken); err != nil {
				return fmt.Errorf("argument %s: x-mcp-header: %w", strings.Join(at, "."), err)
			}
		}
		if err := checkBindings(it.Value(), at, taken); err != nil {
			return err
		}
	}
	return nil
}

func checkBinding(property, raw json.RawMessage, taken map[string]bool) error {
	kind, _ := rawjson.Get(property, "type")
	switch string(kind) {
	case `"string"`, `"integer"`, `"boolean"`:
	default:
		return errors.New("expected on a string, an integer or a boolean")
	}
	name, _ := rawjson.Unquote(raw)
	if !httpguts.ValidHeaderFieldName(name) {
		return errors.New("expected the name of a header")
	}
	if name = strings.ToLower(name); taken[name] {
		return errors.New("the name stands twice")
	}
	taken[name] = true
	return nil
}

// sameHeaderText compares integers by value, everything else by text.
func sameHeaderText(header, text string, v []byte) bool {
	if header == text {
		return true
	}
	if rawjson.KindOf(v) != rawjson.KindNumber {
		return false
	}
	a, errA := strconv.ParseFloat(header, 64)
	b, errB := strconv.ParseFloat(text, 64)
	return errA == nil && errB == nil && a == b
}

func paramHeaders(schema json.RawMessage, path []string, out []paramHeader) []paramHeader {
	if len(path) > 16 {
		return out
	}
	properties, ok := rawjson.Get(schema, "properties")
	if !ok {
		return out
	}
	it := rawjson.Object(properties)
	for it.Next() {
		at := append(path[:len(path):len(path)], it.Key())
		if raw, ok := rawjson.Get(it.Value(), "x-mcp-header"); ok {
			if name, ok := rawjson.Unquote(raw); ok && name != "" {
				out = append(out, paramHeader{at, name})
			}
		}
		out = paramHeaders(it.Value(), at, out)
	}
	return out
}

const maxSafeInteger = 1<<53 - 1

// headerText returns what a header says of an argument: a string, a boolean, or
// an integer that every peer can represent. Others have no header.
func headerText(v json.RawMessage) (string, bool) {
	switch rawjson.KindOf(v) {
	case rawjson.KindString:
		return rawjson.Unquote(v)
	case rawjson.KindBool:
		return string(v), true
	case rawjson.KindNumber:
		f, err := strconv.ParseFloat(string(v), 64)
		if err != nil || f != float64(int64(f)) || f > maxSafeInteger || f < -maxSafeInteger {
			return "", false
		}
		return strconv.FormatInt(int64(f), 10), true
	}
	return "", false
}
