package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/mcpserver"
	"github.com/toolcrib/toolcrib/tools"
)

// discard is a response that only counts.
type discard struct {
	header http.Header
	size   int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Write(b []byte) (int, error) { d.size += len(b); return len(b), nil }

// BenchmarkList answers tools/list with 500 tools of 1.3 KB each, without a
// network, in the stateless era.
func BenchmarkList(b *testing.B) {
	cat := tools.NewCatalog().(tools.LiveCatalog)
	var list []tools.ToolDescriptor
	for i := range 500 {
		list = append(list, tools.ToolDescriptor{
			Tool:   tools.Tool{Name: fmt.Sprintf("tool_%03d", i), Description: strings.Repeat("describe ", 140)},
			Invoke: func(context.Context, json.RawMessage) (tools.ToolResult, error) { return tools.ToolResult{}, nil },
		})
	}
	if err := cat.RegisterAll(list); err != nil {
		b.Fatal(err)
	}
	s := mcpserver.New(cat, nil)
	defer s.Shutdown(context.Background())
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + modernMeta + `}}`
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body))
		r.Header = http.Header{"Content-Type": {"application/json"}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/list"}}
		w := &discard{header: http.Header{}}
		s.ServeHTTP(w, r)
		b.SetBytes(int64(w.size))
	}
}
