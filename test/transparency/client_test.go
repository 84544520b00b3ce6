package transparency

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// A client is an MCP client that shows what it receives. It is written against the text of the protocol alone.
type client struct {
	url       string
	stateless bool
	http      http.Client
	session   string
	level     string
}

const (
	statefulVersion  = "2025-11-25"
	statelessVersion = "2026-07-28"
)

// A request is what a client sends, in the words of either era.
type request struct {
	id     string // raw JSON
	method string
	// name is what the request is for; the stateless era repeats it in a header.
	name    string
	members []string // of the params, without _meta
	meta    []string // members of _meta
	level   string   // from which log messages are wanted; empty is as before, or none
}

// received is what came back.
type received struct {
	id            json.RawMessage
	result, error json.RawMessage
	notes         []message
}

// open makes the handshake of the stateful era; the other has none.
func (c *client) open(ctx context.Context) error {
	if c.stateless {
		return nil
	}
	init := &request{id: "0", method: "initialize", members: []string{`"protocolVersion":"2025-11-25"`, `"capabilities":{}`, `"clientInfo":{"name":"raw","version":"1"}`}}
	r, err := c.send(ctx, init)
	if err != nil {
		return err
	}
	if r.result == nil {
		return fmt.Errorf("initialize: %s", r.error)
	}
	resp, err := c.post(ctx, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), http.Header{})
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func (c *client) close() { c.http.CloseIdleConnections() }

// ask sends a request and returns what came back.
func (c *client) ask(ctx context.Context, q request) (*received, error) {
	if q.level != "" && !c.stateless && q.level != c.level {
		set := &request{id: `"level"`, method: "logging/setLevel", members: []string{member("level", `"`+q.level+`"`)}}
		if r, err := c.send(ctx, set); err != nil || r.result == nil {
			return nil, fmt.Errorf("logging/setLevel: %+v, %w", r, err)
		}
		c.level = q.level
	}
	return c.send(ctx, &q)
}

func (c *client) send(ctx context.Context, q *request) (*received, error) {
	meta := q.meta
	h := http.Header{}
	if c.stateless {
		meta = append([]string{`"io.modelcontextprotocol/protocolVersion":"2026-07-28"`, `"io.modelcontextprotocol/clientCapabilities":{}`,
			`"io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"}`}, meta...)
		if q.level != "" {
			meta = append(meta, member("io.modelcontextprotocol/logLevel", `"`+q.level+`"`))
		}
		h["Mcp-Method"] = []string{q.method}
		if q.name != "" {
			h["Mcp-Name"] = []string{"=?base64?" + base64.StdEncoding.EncodeToString([]byte(q.name)) + "?="}
		}
	}
	members := q.members
	if len(meta) > 0 {
		members = append(members[:len(members):len(members)], `"_meta":{`+strings.Join(meta, ",")+`}`)
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{%s}}`, q.id, q.method, strings.Join(members, ","))
	resp, err := c.post(ctx, []byte(body), h)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		c.session = id
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	return readReply(resp, text)
}

func (c *client) post(ctx context.Context, body []byte, h http.Header) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = h
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
	switch {
	case c.stateless:
		h["Mcp-Protocol-Version"] = []string{statelessVersion}
	case c.session != "":
		h["Mcp-Protocol-Version"] = []string{statefulVersion}
		h["Mcp-Session-Id"] = []string{c.session}
	}
	return c.http.Do(r)
}

// readReply reads the messages of a response: one, or a stream of events.
func readReply(resp *http.Response, text []byte) (*received, error) {
	out := &received{}
	messages := [][]byte{text}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		messages = eventsOf(text)
	}
	for _, m := range messages {
		if !rawjson.Valid(m) {
			return nil, fmt.Errorf("HTTP %d with %q", resp.StatusCode, m)
		}
		out.take(m)
	}
	if out.result == nil && out.error == nil {
		return nil, fmt.Errorf("HTTP %d without an answer: %q", resp.StatusCode, text)
	}
	return out, nil
}

func (r *received) take(m []byte) {
	if method, ok := rawjson.Get(m, "method"); ok {
		name, _ := rawjson.Unquote(method)
		params, _ := rawjson.Get(m, "params")
		r.notes = append(r.notes, message{Method: name, Params: params})
		return
	}
	r.id, _ = rawjson.Get(m, "id")
	r.result, _ = rawjson.Get(m, "result")
	r.error, _ = rawjson.Get(m, "error")
}

// eventsOf returns the data of each event that has some.
func eventsOf(stream []byte) [][]byte {
	var out [][]byte
	for _, block := range strings.Split(strings.ReplaceAll(string(stream), "\r\n", "\n"), "\n\n") {
		var data []string
		for _, line := range strings.Split(block, "\n") {
			if text, ok := strings.CutPrefix(line, "data:"); ok {
				data = append(data, strings.TrimPrefix(text, " "))
			}
		}
		if text := strings.Join(data, "\n"); text != "" {
			out = append(out, []byte(text))
		}
	}
	return out
}
