package mcpwire_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
)

// BenchmarkRelay compares a call that goes through a server and a client of
// this package with one that a bare proxy over net/http copies through. Each
// makes two hops to a canned upstream.
func BenchmarkRelay(b *testing.B) {
	answer := []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + strings.Repeat("x", 1024) + `"}]}}`)
	upstream, rt := serveHTTP(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		f, err := mcpwire.ScanFrame(body)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case err != nil || f.Kind != mcpwire.KindRequest:
			w.WriteHeader(http.StatusAccepted)
		case f.Method == mcpwire.MethodInitialize:
			_, _ = w.Write(mcpwire.AppendResult(nil, f.ID, json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{}}`)))
		default:
			_, _ = w.Write(append(append([]byte(`{"jsonrpc":"2.0","id":`), f.ID...), answer[len(`{"jsonrpc":"2.0","id":1`):]...))
		}
	}))
	body := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"` + strings.Repeat("y", 1024) + `"}}}`)
	b.Run("bare", func(b *testing.B) {
		url, _ := serveHTTP(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			in, _ := io.ReadAll(r.Body)
			req, _ := http.NewRequestWithContext(r.Context(), http.MethodPost, upstream, bytes.NewReader(in))
			req.Header = r.Header.Clone()
			resp, err := rt.RoundTrip(req)
			if err != nil {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			defer resp.Body.Close()
			out, _ := io.ReadAll(resp.Body)
			w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
			_, _ = w.Write(out)
		}))
		postMany(b, rt, url, "", body)
	})
	b.Run("wire", func(b *testing.B) {
		c, err := mcpwire.Connect(b.Context(), &mcpwire.HTTPTransport{URL: upstream, RoundTripper: rt, NoListen: true},
			&mcpwire.ClientOptions{Version: mcpwire.LatestStateful})
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		_, url, _ := serveWire(b, passOn{c}, nil)
		resp, err := rt.RoundTrip(postRequest(b, url, "", []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)))
		if err != nil {
			b.Fatal(err)
		}
		resp.Body.Close()
		postMany(b, rt, url, resp.Header.Get("Mcp-Session-Id"), body)
	})
}

type passOn struct{ c *mcpwire.Client }

func (p passOn) Describe(context.Context, *mcpwire.Session) (*mcpwire.Description, error) {
	return &mcpwire.Description{}, nil
}

func (p passOn) ServeMCP(ctx context.Context, r *mcpwire.Request) (json.RawMessage, error) {
	return p.c.Call(ctx, r.Method, r.Params, nil)
}

func postRequest(b *testing.B, url, session string, body []byte) *http.Request {
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	return req
}

func postMany(b *testing.B, rt http.RoundTripper, url, session string, body []byte) {
	b.ReportAllocs()
	for b.Loop() {
		resp, err := rt.RoundTrip(postRequest(b, url, session, body))
		if err != nil {
			b.Fatal(err)
		}
		n, _ := io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if n < 1024 {
			b.Fatalf("HTTP %d with %d bytes", resp.StatusCode, n)
		}
	}
}
