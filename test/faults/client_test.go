package faults

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// A client speaks MCP over HTTP, in a revision with sessions or in the one without, and nothing comes between it and the
// protocol.
type client struct {
	url, version, session string
	http                  *http.Client
	ids                   atomic.Int64
}

const stateless = "2026-07-28"

// connect returns a client that is ready to call tools.
func connect(t testing.TB, url, version string) *client {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	c := &client{url: url, version: version, http: &http.Client{Transport: transport}}
	if version == stateless {
		return c
	}
	resp := c.post(t, bounded(t), "initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"faults","version":"1"}}`, version))
	c.session = resp.Header.Get("Mcp-Session-Id")
	resp.Body.Close()
	if c.session == "" {
		t.Fatalf("initialize: %s", resp.Status)
	}
	c.notify(t, "notifications/initialized", `{}`)
	return c
}

func (c *client) request(t testing.TB, ctx context.Context, method, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, c.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("MCP-Protocol-Version", c.version)
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	return req
}

// message returns a request, whose params get what the revision wants in every one.
func (c *client) message(t testing.TB, ctx context.Context, method, params string) *http.Request {
	t.Helper()
	if c.version == stateless {
		meta := fmt.Sprintf(`"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientInfo":{"name":"faults","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}`, c.version)
		if strings.Contains(params, `"_meta":{`) {
			params = strings.Replace(params, `"_meta":{`, `"_meta":{`+meta+`,`, 1)
		} else {
			params = `{"_meta":{` + meta + `},` + strings.TrimPrefix(params, "{")
		}
		params = strings.Replace(params, ",}", "}", 1)
	}
	req := c.request(t, ctx, http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.ids.Add(1), method, params))
	if c.version == stateless {
		req.Header.Set("Mcp-Method", method)
		var named struct{ Name string }
		if json.Unmarshal([]byte(params), &named) == nil && named.Name != "" {
			req.Header.Set("Mcp-Name", named.Name)
		}
	}
	return req
}

func (c *client) post(t testing.TB, ctx context.Context, method, params string) *http.Response {
	t.Helper()
	resp, err := c.http.Do(c.message(t, ctx, method, params))
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return resp
}

func (c *client) notify(t testing.TB, method, params string) {
	t.Helper()
	resp, err := c.http.Do(c.request(t, bounded(t), http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params)))
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	resp.Body.Close()
}

// An answer is a message of the gateway.
type answer struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
	}
}

// each reads the messages of a response, as one of JSON or as a stream, until it ends or take returns false.
func each(resp *http.Response, take func(answer) bool) error {
	defer resp.Body.Close()
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		var a answer
		if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
			return err
		}
		take(a)
		return nil
	}
	lines := bufio.NewReader(resp.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok && len(bytes.TrimSpace(data)) > 0 {
			var a answer
			if err := json.Unmarshal(data, &a); err != nil {
				return err
			}
			if !take(a) {
				return nil
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// call calls a method and returns its answer; what comes before goes to note, if there is one.
func (c *client) call(t testing.TB, method, params string, note func(answer)) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var last answer
	err := each(c.post(t, ctx, method, params), func(a answer) bool {
		if a.Method == "" {
			last = a
			return false
		}
		if note != nil {
			note(a)
		}
		return true
	})
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return last
}

// text calls a tool and returns the text of the first block of its result.
func (c *client) text(t testing.TB, tool, args string) string {
	t.Helper()
	a := c.call(t, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, args), nil)
	var r struct{ Content []struct{ Text string } }
	if a.Error != nil || json.Unmarshal(a.Result, &r) != nil || len(r.Content) == 0 {
		t.Fatalf("%s: %+v: %s", tool, a.Error, a.Result)
	}
	return r.Content[0].Text
}
