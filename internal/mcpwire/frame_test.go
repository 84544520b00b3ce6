package mcpwire

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestScanFrame(t *testing.T) {
	tests := []struct {
		in   string
		want Frame
		code int64 // of the error, 0 for none
	}{
		{in: `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":9007199254740993}}`,
			want: Frame{Kind: KindRequest, ID: "1", Method: "m", Params: json.RawMessage(`{"a":9007199254740993}`)}},
		{in: ` {"params" : [ ] ,"method":"m","jsonrpc":"2.0","unknown":{"x":[1]}} `,
			want: Frame{Kind: KindNotification, Method: "m", Params: json.RawMessage(`[ ]`)}},
		{in: `{"jsonrpc":"2.0","id":"a\u0062","result":null}`, want: Frame{Kind: KindResult, ID: `"a\u0062"`, Result: json.RawMessage("null")}},
		{in: `{"jsonrpc":"2.0","id":null,"error":{"code":1}}`, want: Frame{Kind: KindError, Error: json.RawMessage(`{"code":1}`)}},
		{in: `{"jsonrpc":"2.0","id":1,"result":{},"error":null}`, want: Frame{Kind: KindResult, ID: "1", Result: json.RawMessage("{}"), Error: json.RawMessage("null")}},
		{in: `{"jsonrpc":"2.0","m\u0065thod":"m","params":null}`, want: Frame{Kind: KindNotification, Method: "m"}},
		{in: ``, code: CodeParseError},
		{in: `{"jsonrpc":"2.0","method":"m"`, code: CodeParseError},
		{in: `{"jsonrpc":"2.0","method":"m"} x`, code: CodeParseError},
		{in: `{"jsonrpc":"2.0","method":"m","params":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`, code: CodeParseError},
		{in: `[]`, code: CodeInvalidRequest},
		{in: `"text"`, code: CodeInvalidRequest},
		{in: `{"method":"m"}`, code: CodeInvalidRequest},
		{in: `{"jsonrpc":"2.0"}`, code: CodeInvalidRequest},
		{in: `{"jsonrpc":"2.0","id":true,"method":"m"}`, code: CodeInvalidRequest},
		{in: `{"jsonrpc":"2.0","method":"m","params":1}`, code: CodeInvalidRequest},
		{in: `{"jsonrpc":"2.0","result":{}}`, code: CodeInvalidRequest},
	}
	for _, tt := range tests {
		got, err := ScanFrame([]byte(tt.in))
		if tt.code != 0 {
			if !errors.Is(err, &Error{Code: tt.code}) {
				t.Errorf("%.60s: error %v, want code %d", tt.in, err, tt.code)
			}
			continue
		}
		if err != nil || got.Kind != tt.want.Kind || got.ID != tt.want.ID || got.Method != tt.want.Method ||
			string(got.Params) != string(tt.want.Params) || string(got.Result) != string(tt.want.Result) || string(got.Error) != string(tt.want.Error) {
			t.Errorf("%s: got %+v, %v", tt.in, got, err)
		}
	}
}

func FuzzScanFrame(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"progressToken":1}}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"a","error":{"code":-1,"message":""}}`))
	f.Add([]byte(`[{"jsonrpc":"2.0","id":1,"result":{}}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		fr, err := ScanFrame(data)
		if err != nil {
			return
		}
		if !json.Valid(data) {
			t.Fatalf("accepted %q, which is not JSON", data)
		}
		var again []byte
		switch fr.Kind {
		case KindRequest, KindNotification:
			again = AppendRequest(nil, fr.ID, fr.Method, fr.Params)
		case KindResult:
			again = AppendResult(nil, fr.ID, fr.Result)
		case KindError:
			again = AppendErrorAnswer(nil, fr.ID, ParseError(fr.Error))
		}
		f2, err := ScanFrame(oneLine(again))
		if err != nil || f2.Kind != fr.Kind || f2.Method != fr.Method || f2.ID != fr.ID {
			t.Fatalf("%q was written as %q: %v", data, again, err)
		}
	})
}

func TestEditMeta(t *testing.T) {
	tests := []struct{ params, want string }{
		{`{"b":1,"_meta":{"keep":9007199254740993,"progressToken":"theirs"},"a":2}`, `{"b":1,"_meta":{"keep":9007199254740993,"merged":true,"v":"x"},"a":2}`},
		{`{"b":1}`, `{"_meta":{"merged":true,"v":"x"},"b":1}`},
		{`{ }`, `{"_meta":{"merged":true,"v":"x"} }`},
		{``, `{"_meta":{"merged":true,"v":"x"}}`},
		{`{"_meta":7}`, `{"_meta":{"merged":true,"v":"x"}}`},
		{`{"_meta":{"v":0,"m\u0065rged":1}}`, `{"_meta":{"merged":true,"v":"x"}}`},
	}
	for _, tt := range tests {
		var params json.RawMessage
		if tt.params != "" {
			params = json.RawMessage(tt.params)
		}
		got, err := editMeta(params, &metaEdit{
			drop: []string{metaProgressToken}, merge: []json.RawMessage{[]byte(`{"merged":true,"v":"lost"}`)},
			set: []metaMember{{"v", []byte(`"x"`)}},
		})
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: got %s, %v; want %s", tt.params, got, err, tt.want)
		}
	}
	same := json.RawMessage(`{"_meta":{"a":1}}`)
	if got, err := editMeta(same, &metaEdit{drop: []string{"b"}}); err != nil || &got[0] != &same[0] {
		t.Error("params were copied for nothing")
	}
	if _, err := editMeta([]byte(`[1]`), &metaEdit{}); err == nil {
		t.Error("an array was accepted")
	}
}

func TestCompleteResult(t *testing.T) {
	info := json.RawMessage(`{"name":"s"}`)
	tests := []struct{ in, want string }{
		{``, `{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}}`},
		{`{"x":1,"_meta":{"k":2}}`, `{"resultType":"complete","x":1,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"},"k":2}}`},
		{`{"resultType":"input_required","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"up"}}}`, `{"resultType":"input_required","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"up"}}}`},
		{`[1]`, `[1]`},
	}
	for _, tt := range tests {
		var in json.RawMessage
		if tt.in != "" {
			in = json.RawMessage(tt.in)
		}
		if got := completeResult(in, info); string(got) != tt.want {
			t.Errorf("%s: got %s, want %s", tt.in, got, tt.want)
		}
	}
}

func TestHeaderValues(t *testing.T) {
	for _, s := range []string{"", "plain", "dots.and-dashes", " lead", "trail\t", "grüße", "a\nb", "=?base64?eA==?=", "=?base64?only"} {
		enc := encodeHeader(s)
		if strings.ContainsAny(enc, "\r\n") || strings.TrimSpace(enc) != enc {
			t.Errorf("%q is encoded as %q", s, enc)
		}
		if dec, ok := decodeHeader(enc); !ok || dec != s {
			t.Errorf("%q came back as %q", s, dec)
		}
	}
	if _, ok := decodeHeader("=?base64?SGVsbG8?="); ok {
		t.Error("bad padding was accepted")
	}
	schema := json.RawMessage(`{"properties":{"region":{"type":"string","x-mcp-header":"Region"},"o":{"properties":{"n":{"x-mcp-header":"N"},"f":{"x-mcp-header":"F"}}}}}`)
	params := json.RawMessage(`{"arguments":{"region":"é","o":{"n":42.0,"f":1.5}}}`)
	h := ParamHeaders(schema, params)
	if h.Get("Mcp-Param-Region") != "=?base64?w6k=?=" || h.Get("Mcp-Param-N") != "42" || h.Get("Mcp-Param-F") != "" {
		t.Errorf("headers %v", h)
	}
	if err := CheckParamHeaders(h, schema, json.RawMessage(`{"arguments":{"region":"é","o":{"n":42}}}`)); err != nil {
		t.Error(err)
	}
	if err := CheckParamHeaders(h, schema, json.RawMessage(`{"arguments":{"region":"e","o":{"n":42}}}`)); !errors.Is(err, &Error{Code: CodeHeaderMismatch}) {
		t.Errorf("mismatch: %v", err)
	}
}

func TestHeaderBindings(t *testing.T) {
	for schema, want := range map[string]string{
		`{"properties":{"a":{"type":"string","x-mcp-header":"A"},"o":{"properties":{"b":{"type":"integer","x-mcp-header":"b"}}}}}`: "",
		`{}`: "",
		`{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`:                                                               "argument a",
		`{"properties":{"a":{"x-mcp-header":"A"}}}`:                                                                               "argument a",
		`{"properties":{"a":{"type":"string","x-mcp-header":""}}}`:                                                                "name of a header",
		`{"properties":{"a":{"type":"string","x-mcp-header":7}}}`:                                                                 "name of a header",
		`{"properties":{"o":{"properties":{"a":{"type":"string","x-mcp-header":"A B"}}}}}`:                                        "argument o.a",
		`{"properties":{"a":{"type":"string","x-mcp-header":"A"},"o":{"properties":{"b":{"type":"string","x-mcp-header":"a"}}}}}`: "stands twice",
	} {
		err := CheckHeaderBindings(json.RawMessage(schema))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", schema, err)
		}
	}
}
