package registry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/tools"
)

func document(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSpace(b)
}

// value decodes JSON with its numbers as they are.
func value(t testing.TB, doc []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	return v
}

// The documented messages are read and written as they are.
func TestDocumentedMessages(t *testing.T) {
	for _, name := range []string{"call.json", "ping.json", "result.json", "error.json"} {
		doc := document(t, name)
		var m any
		var err error
		if name == "call.json" || name == "ping.json" {
			m, err = registry.DecodeCall(doc)
		} else {
			m, err = registry.DecodeResult(doc)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		again, err := registry.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(value(t, doc), value(t, again)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	call, err := registry.DecodeCall(document(t, "call.json"))
	if err != nil || call.Meta.ParentToolCallID != "call-0" || call.TraceState != "a=b" || call.Route != nil {
		t.Errorf("%+v, %v", call, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	long := strings.Repeat("x", registry.MaxIDBytes+1)
	for name, c := range map[string]struct{ doc, says string }{
		"nothing":        {``, "no JSON object"},
		"no object":      {`[1]`, "no JSON object"},
		"half":           {`{"type":"call"`, "JSON"},
		"no type":        {`{}`, "neither"},
		"other type":     {`{"type":"stop"}`, "neither"},
		"no id":          {`{"type":"call","tool":"a"}`, "tool_use_id"},
		"long id":        {`{"type":"call","tool":"a","tool_use_id":"` + long + `"}`, "tool_use_id"},
		"no tool":        {`{"type":"call","tool_use_id":"a"}`, "tool"},
		"bad tool":       {`{"type":"call","tool_use_id":"a","tool":"a b"}`, "tool"},
		"no ping id":     {`{"type":"ping"}`, "ping_id"},
		"wrong type":     {`{"type":"call","tool_use_id":47110815,"tool":"a"}`, "tool_use_id"},
		"twice":          {`{"type":"call","type":"ping","ping_id":"a"}`, "duplicate"},
		"long run":       {`{"type":"call","tool_use_id":"a","tool":"a","meta":{"run_id":"` + long + `"}}`, "meta"},
		"long trace":     {`{"type":"ping","ping_id":"a","baggage":"` + strings.Repeat("x", 9000) + `"}`, "trace"},
		"route to none":  {`{"type":"call","tool_use_id":"a","tool":"a","route":{}}`, "inbox"},
		"deadline":       {`{"type":"call","tool_use_id":"a","tool":"a","deadline":"soon"}`, "form"},
		"trailing bytes": {`{"type":"ping","ping_id":"a"} x`, "JSON"},
	} {
		_, err := registry.DecodeCall([]byte(c.doc))
		if !errors.Is(err, registry.ErrInvalid) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "4711") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := registry.DecodeResult([]byte(`{"result_json":1}`)); !errors.Is(err, registry.ErrInvalid) {
		t.Errorf("a result without an id: %v", err)
	}
}

// What is read can be written and read again to the same.
func FuzzDecodeCall(f *testing.F) {
	for _, name := range []string{"call.json", "ping.json", "result.json"} {
		f.Add(document(f, name))
	}
	f.Add([]byte(`{"type":"call","tool_use_id":"a","tool":"b","route":{"inbox":"c","claim":true},"deadline":"2026-01-02T03:04:05Z"}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		m, err := registry.DecodeCall(doc)
		if err != nil {
			if !errors.Is(err, registry.ErrInvalid) {
				t.Fatalf("%v", err)
			}
			return
		}
		enc, err := registry.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		again, err := registry.DecodeCall(enc)
		if err != nil {
			t.Fatalf("%s became %s: %v", doc, enc, err)
		}
		if twice, err := registry.Encode(again); err != nil || !bytes.Equal(enc, twice) {
			t.Fatalf("%s became %s, %v", enc, twice, err)
		}
	})
}

func FuzzDecodeResult(f *testing.F) {
	f.Add(document(f, "result.json"))
	f.Add(document(f, "error.json"))
	f.Add([]byte(`{"tool_use_id":"a","content":[{"type":"text","text":"x"}],"is_error":true,"receipt":{"notes":-1}}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		m, err := registry.DecodeResult(doc)
		if err != nil {
			return
		}
		enc, err := registry.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := registry.DecodeResult(enc); err != nil {
			t.Fatalf("%s became %s: %v", doc, enc, err)
		}
	})
}

func contract(names ...string) registry.Contract {
	c := registry.Contract{Toolset: "math"}
	for _, n := range names {
		c.Tools = append(c.Tools, registry.ToolSpec{Name: n, ArgsSchema: json.RawMessage(`{"type":"object"}`), ResultSchema: json.RawMessage(`{}`)})
	}
	return c
}

func TestContractRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*registry.Contract)
		says   string
	}{
		"no tools":      {func(c *registry.Contract) { c.Tools = nil }, "tools"},
		"bad name":      {func(c *registry.Contract) { c.Toolset = "a:b" }, "a:b"},
		"long name":     {func(c *registry.Contract) { c.Toolset = strings.Repeat("a", 65) }, "65"},
		"tool's name":   {func(c *registry.Contract) { c.Tools[0].Name = "" }, "name"},
		"twice":         {func(c *registry.Contract) { c.Tools[1].Name = c.Tools[0].Name }, "two tools"},
		"no arguments":  {func(c *registry.Contract) { c.Tools[1].ArgsSchema = nil }, "args_schema"},
		"no result":     {func(c *registry.Contract) { c.Tools[0].ResultSchema = json.RawMessage(" null ") }, "result_schema"},
		"schema broken": {func(c *registry.Contract) { c.Tools[0].ResultSchema = json.RawMessage("{") }, "result_schema"},
	} {
		made := contract("a", "b")
		c.change(&made)
		if err := made.Check(); !errors.Is(err, registry.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFingerprint(t *testing.T) {
	print := func(c registry.Contract) string {
		fp, err := c.Fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		return fp
	}
	one, other := contract("a", "b"), contract("b", "a")
	other.Tools[0].ArgsSchema = json.RawMessage(` { "\u0074ype" : "object" } `)
	if print(one) != print(other) {
		t.Error("order and white space count")
	}
	other.Tools[1].Description = "Changed."
	if print(one) == print(other) {
		t.Error("a changed description does not count")
	}
	if one.Tools[0].Name != "a" {
		t.Error("the contract was changed")
	}
}

// What a contract says of a tool comes back as it was.
func TestSpecOf(t *testing.T) {
	given := tools.Tool{Name: "a.b", Title: "T", Description: "D", ArgsSchema: json.RawMessage(`{"type":"object"}`), OutSchema: json.RawMessage(`{"type":"string"}`),
		SideEffects: tools.SideEffectWrite, Tags: []string{"x"}, AuthScopes: []string{"s"}, Loading: tools.LoadingDeferred,
		Examples: []tools.ToolExample{{Args: map[string]any{"a": "b"}, Description: "d"}}, Exclusive: true,
		Safety: tools.Safety{Destructive: tools.Yes, ReadOnly: tools.No}, Policy: tools.ToolPolicy{TimeoutMS: 5, RetryOn: []tools.ErrorClass{}}}
	enc, err := json.Marshal(registry.SpecOf(given))
	if err != nil {
		t.Fatal(err)
	}
	var spec registry.ToolSpec
	if err := json.Unmarshal(enc, &spec); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(registry.SpecOf(given), spec); diff != "" {
		t.Error(diff)
	}
	if spec.Policy.RetryOn == nil || len(*spec.Policy.RetryOn) != 0 || *spec.Safety.Destructive != true || spec.Safety.Idempotent != nil {
		t.Errorf("%+v", spec)
	}
	if bare := registry.SpecOf(tools.Tool{Name: "a"}); string(bare.ResultSchema) != "{}" || bare.Policy != nil || bare.Safety != nil {
		t.Errorf("%+v", bare)
	}
}

func TestAdmitKeys(t *testing.T) {
	admit := registry.AdmitKeys(map[string]registry.KeyGrant{
		"math": {Key: []byte("k"), Previous: []byte("j"), Grant: registry.Grant{Tenants: []string{"acme"}}}, "open": {}})
	made := contract("a")
	signed := func(key string, change func(*registry.Announcement)) *registry.Announcement {
		a := &registry.Announcement{Toolset: "math", Instance: "i", Contract: &made}
		if err := a.Sign([]byte(key)); err != nil {
			t.Fatal(err)
		}
		change(a)
		return a
	}
	grant, err := admit(t.Context(), signed("k", func(*registry.Announcement) {}))
	if err != nil || len(grant.Tenants) != 1 {
		t.Errorf("the right key: %v, %v", grant, err)
	}
	if _, err := admit(t.Context(), signed("j", func(*registry.Announcement) {})); err != nil {
		t.Errorf("the key before: %v", err)
	}
	if _, err := admit(t.Context(), &registry.Announcement{Toolset: "open", Instance: "i"}); err != nil {
		t.Errorf("a toolset without a key: %v", err)
	}
	changed := contract("a", "b")
	for name, a := range map[string]*registry.Announcement{
		"wrong key":         signed("l", func(*registry.Announcement) {}),
		"no proof":          signed("k", func(a *registry.Announcement) { a.Proof = nil }),
		"another contract":  signed("k", func(a *registry.Announcement) { a.Contract = &changed }),
		"another instance":  signed("k", func(a *registry.Announcement) { a.Instance = "j" }),
		"long ago":          signed("k", func(a *registry.Announcement) { a.Proof.Time = a.Proof.Time.Add(-1e12) }),
		"a toolset unknown": {Toolset: "other", Instance: "i"},
	} {
		if _, err := admit(t.Context(), a); err == nil {
			t.Errorf("%s is admitted", name)
		}
	}
}
