package mcpserver_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/mcpserver"
	"github.com/toolcrib/toolcrib/tools"
)

// byTenant admits "Bearer TENANT SCOPE…".
func byTenant(r *http.Request) (context.Context, string, error) {
	words := strings.Fields(r.Header.Get("Authorization"))
	if len(words) < 2 || words[0] != "Bearer" {
		return nil, "", &mcpserver.Refusal{Status: http.StatusUnauthorized, Message: "who are you?", Header: http.Header{"Www-Authenticate": {"Bearer"}}}
	}
	id := identity.Identity{TenantID: words[1], UserID: words[1] + "-user"}
	return identity.With(r.Context(), id, words[2:]...), words[1], nil
}

// listenHTTP serves on a loopback port until the test ends.
func listenHTTP(t *testing.T, s *mcpserver.Server) string {
	t.Helper()
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	return web.URL
}

// modern sends one request of the stateless era.
type modern struct {
	url, auth    string
	header       http.Header
	capabilities string // {} by default
}

func (m modern) post(t *testing.T, method, name string, params map[string]json.RawMessage) (int, []byte) {
	t.Helper()
	if params == nil {
		params = map[string]json.RawMessage{}
	}
	params["_meta"] = json.RawMessage(`{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` +
		cmp.Or(m.capabilities, "{}") + `}`)
	if name != "" {
		params["name"], _ = json.Marshal(name)
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {method},
	}
	if name != "" {
		req.Header.Set("Mcp-Name", name)
	}
	if m.auth != "" {
		req.Header.Set("Authorization", m.auth)
	}
	for k, v := range m.header {
		req.Header[k] = v
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, answer
}

func TestTenantsSeeTheirOwnTools(t *testing.T) {
	c := newCrib(t)
	for _, tenant := range []string{"acme", "zeta"} {
		err := c.Register(tools.ToolDescriptor{Tool: tools.Tool{Name: "of." + tenant, Tenants: []string{tenant}}, Invoke: gives("it is " + tenant)})
		if err != nil {
			t.Fatal(err)
		}
	}
	url := listenHTTP(t, c.serve(t, &mcpserver.Options{Authenticate: byTenant}))
	for range 2 { // the second list comes from what was kept for the class
		for _, test := range []struct {
			auth      string
			sees, not []string
		}{
			{"Bearer acme", []string{"of.acme"}, []string{"of.zeta", "go.secret"}},
			{"Bearer zeta secret", []string{"of.zeta", "go.secret"}, []string{"of.acme"}},
			{"Bearer nobody", nil, []string{"of.acme", "of.zeta", "go.secret"}},
		} {
			m := modern{url: url, auth: test.auth}
			_, list := m.post(t, "tools/list", "", nil)
			for _, name := range test.sees {
				if !bytes.Contains(list, []byte(`"name":"`+name+`"`)) {
					t.Errorf("%s is not listed %s", test.auth, name)
				}
				if status, answer := m.post(t, "tools/call", name, nil); status != http.StatusOK || !bytes.Contains(answer, []byte(`"result"`)) {
					t.Errorf("%s may not call %s: %d %s", test.auth, name, status, answer)
				}
			}
			for _, name := range test.not {
				if bytes.Contains(list, []byte(name)) {
					t.Errorf("%s is listed %s", test.auth, name)
				}
			}
		}
	}
	if status, _ := (modern{url: url}).post(t, "tools/list", "", nil); status != http.StatusUnauthorized {
		t.Errorf("without a token the status is %d", status)
	}
}

// What cannot be seen does not exist, byte for byte.
func TestHiddenToolAnswersAsUnknown(t *testing.T) {
	c := newCrib(t)
	m := modern{url: listenHTTP(t, c.serve(t, &mcpserver.Options{Authenticate: byTenant})), auth: "Bearer acme"}
	for _, args := range []string{`{}`, `{"n":1}`, `null`} {
		params := func() map[string]json.RawMessage {
			return map[string]json.RawMessage{"arguments": json.RawMessage(args)}
		}
		hiddenStatus, hidden := m.post(t, "tools/call", "go.secret", params())
		unknownStatus, unknown := m.post(t, "tools/call", "go.sEcret", params())
		unknown = bytes.ReplaceAll(unknown, []byte("sEcret"), []byte("secret"))
		if hiddenStatus != unknownStatus || !bytes.Equal(hidden, unknown) {
			t.Errorf("arguments %s:\nhidden  %d %s\nunknown %d %s", args, hiddenStatus, hidden, unknownStatus, unknown)
		}
		if !bytes.Contains(hidden, []byte(`"error":{"code":-32602,"message":"Unknown tool: go.secret"}`)) {
			t.Errorf("%s", hidden)
		}
	}
}

func TestIdentityGetsASession(t *testing.T) {
	c := newCrib(t)
	m := modern{url: listenHTTP(t, c.serve(t, &mcpserver.Options{Authenticate: byTenant})), auth: "Bearer acme"}
	_, answer := m.post(t, "tools/call", "talk.who", nil)
	want := `"structuredContent":{"tenant_id":"acme","user_id":"acme-user","session_id":"stateless"}`
	if !bytes.Contains(answer, []byte(want)) {
		t.Errorf("%s", answer)
	}
	session := connect(t, overHTTP(t, m.url, "Bearer acme"), "2025-11-25", nil)
	who, ok := sdkCall(t, session, "talk.who", nil).StructuredContent.(map[string]any)
	if !ok || who["session_id"] != session.ID() || session.ID() == "" {
		t.Errorf("%v in session %q", who, session.ID())
	}
	id := identity.Identity{TenantID: "t", UserID: "u", SessionID: "mine"}
	p := openPipeAs(identity.With(t.Context(), id), t, c.serve(t, nil))
	p.write(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"talk.who",`+modernMeta+`}}`)
	p.readAnswer(t)
	if said := p.end(t); !bytes.Contains(said, []byte(`"session_id":"mine"`)) {
		t.Errorf("%s", said)
	}
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// A catalog that demands an identity says so as a protocol error.
func TestIdentityRequired(t *testing.T) {
	cat := tools.NewCatalog(tools.WithRequiredIdentity()).(tools.LiveCatalog)
	if err := cat.Register(tools.ToolDescriptor{Tool: tools.Tool{Name: "x"}, Invoke: gives(1)}); err != nil {
		t.Fatal(err)
	}
	c := &crib{LiveCatalog: cat}
	url := listenHTTP(t, c.serve(t, nil))
	status, answer := modern{url: url}.post(t, "tools/call", "x", nil)
	if status != http.StatusBadRequest || !bytes.Contains(answer, []byte(`"code":-32600`)) {
		t.Errorf("%d %s", status, answer)
	}
}

func TestTooLargeArgumentIsRefused(t *testing.T) {
	c := newCrib(t)
	url := listenHTTP(t, c.serve(t, &mcpserver.Options{MaxBody: 1 << 20}))
	m := modern{url: url}
	big := map[string]json.RawMessage{"arguments": json.RawMessage(`{"s":"` + strings.Repeat("x", 1<<20) + `"}`)}
	status, answer := m.post(t, "tools/call", "up_mirror", big)
	if status != http.StatusRequestEntityTooLarge || !bytes.Contains(answer, []byte("message exceeds 1048576 bytes")) {
		t.Errorf("%d %.200s", status, answer)
	}
	fits := map[string]json.RawMessage{"arguments": json.RawMessage(`{"s":"` + strings.Repeat("x", 1<<19) + `"}`)}
	if status, answer := m.post(t, "tools/call", "up_mirror", fits); status != http.StatusOK {
		t.Errorf("%d %.200s", status, answer)
	}
}

func TestHugeResultPassesWhole(t *testing.T) {
	block := `{"content":[{"type":"text","text":"` + strings.Repeat("0123456789abcdef", hugeSize/16) + `"}]}`
	c := newCrib(t)
	if err := c.Register(tools.ToolDescriptor{Tool: tools.Tool{Name: "huge", Transport: tools.TransportMCP}, Invoke: wire(block)}); err != nil {
		t.Fatal(err)
	}
	s := c.serve(t, nil)
	status, answer := modern{url: listenHTTP(t, s)}.post(t, "tools/call", "huge", nil)
	if status != http.StatusOK || !bytes.Contains(answer, []byte(block[1:])) {
		t.Errorf("HTTP: %d, %d bytes, or they differ", status, len(answer))
	}
	p := openPipe(t, s)
	p.write(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"huge",`+modernMeta+`}}`)
	if line := receive(t, p.lines); !bytes.Contains(line, []byte(block[1:])) {
		t.Errorf("pipe: %d bytes, and they differ", len(line))
	}
	p.end(t)
}

// Arguments that a proxy was told of in headers must be those of the call.
func TestParamHeadersMustAgree(t *testing.T) {
	c := newCrib(t)
	schema := json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`)
	if err := c.Register(tools.ToolDescriptor{Tool: tools.Tool{Name: "routed", ArgsSchema: schema}, Invoke: gives("there")}); err != nil {
		t.Fatal(err)
	}
	url := listenHTTP(t, c.serve(t, nil))
	for _, test := range []struct {
		header string
		status int
	}{{"eu", http.StatusOK}, {"us", http.StatusBadRequest}, {"", http.StatusBadRequest}} {
		m := modern{url: url}
		if test.header != "" {
			m.header = http.Header{"Mcp-Param-Region": {test.header}}
		}
		status, answer := m.post(t, "tools/call", "routed", map[string]json.RawMessage{"arguments": json.RawMessage(`{"region":"eu"}`)})
		if status != test.status || status != http.StatusOK && !bytes.Contains(answer, []byte(`"code":-32020`)) {
			t.Errorf("header %q: %d %s", test.header, status, answer)
		}
	}
}

func TestForeignOriginIsRefused(t *testing.T) {
	c := newCrib(t)
	m := modern{url: listenHTTP(t, c.serve(t, nil)), header: http.Header{"Origin": {"https://evil.example"}}}
	if status, _ := m.post(t, "tools/list", "", nil); status != http.StatusForbidden {
		t.Errorf("status %d", status)
	}
	m.url = listenHTTP(t, c.serve(t, &mcpserver.Options{AllowedOrigins: []string{"https://evil.example"}}))
	if status, answer := m.post(t, "tools/list", "", nil); status != http.StatusOK {
		t.Errorf("%d %s", status, answer)
	}
}
