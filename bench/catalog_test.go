package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/toolcrib/toolcrib/tools"
)

const catalogSize = 10000

func toolNumber(i int) tools.ToolDescriptor {
	return tools.ToolDescriptor{
		Tool: tools.Tool{
			Name:        fmt.Sprintf("bench.tool_%05d", i),
			Description: "Looks up the record of a customer by its number and returns what is known about it.",
			Tags:        []string{"bench", "lookup"},
			ArgsSchema:  json.RawMessage(`{"type":"object","properties":{"id":{"type":"string","minLength":1},"fields":{"type":"array","items":{"type":"string"}},"limit":{"type":"integer","minimum":1,"maximum":100}},"required":["id"],"additionalProperties":false}`),
			OutSchema:   json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},"total":{"type":"number"}},"required":["name"]}`),
		},
		Invoke: func(context.Context, json.RawMessage) (tools.ToolResult, error) { return tools.ToolResult{}, nil },
	}
}

func fill(b *testing.B, n int) tools.LiveCatalog {
	cat := tools.NewCatalog().(tools.LiveCatalog)
	list := make([]tools.ToolDescriptor, n)
	for i := range list {
		list[i] = toolNumber(i)
	}
	if err := cat.RegisterAll(list); err != nil {
		b.Fatal(err)
	}
	return cat
}

// BenchmarkResolve compares Resolve with loading a map through an atomic
// pointer and looking the same descriptor up in it.
func BenchmarkResolve(b *testing.B) {
	cat := fill(b, catalogSize)
	plain := map[string]tools.ToolDescriptor{}
	for i := range catalogSize {
		plain[toolNumber(i).Tool.Name] = toolNumber(i)
	}
	var p atomic.Pointer[map[string]tools.ToolDescriptor]
	p.Store(&plain)
	names := make([]string, 1024)
	for i := range names {
		names[i] = toolNumber(i * 7 % catalogSize).Tool.Name
	}
	b.Run("floor", func(b *testing.B) {
		i := 0
		for b.Loop() {
			if d, ok := (*p.Load())[names[i&1023]]; !ok || d.Tool.Name == "" {
				b.Fatal("not found")
			}
			i++
		}
	})
	b.Run("resolve", func(b *testing.B) {
		i := 0
		b.ReportAllocs()
		for b.Loop() {
			if d, ok := cat.Resolve(names[i&1023]); !ok || d.Tool.Name == "" {
				b.Fatal("not found")
			}
			i++
		}
	})
}

// BenchmarkListPage compares a page of 50 of 10,000 tools with copying 50
// values.
func BenchmarkListPage(b *testing.B) {
	cat := fill(b, catalogSize)
	values := cat.List(tools.CatalogFilter{})
	ctx := context.Background()
	b.Run("floor", func(b *testing.B) {
		i := 0
		for b.Loop() {
			page := make([]tools.Tool, 50)
			if copy(page, values[i%9950:]) != 50 {
				b.Fatal("short")
			}
			sink = page
			i++
		}
	})
	b.Run("page", func(b *testing.B) {
		i := 0
		b.ReportAllocs()
		for b.Loop() {
			page := cat.Snapshot().Visible(tools.FilterFrom(ctx)).Page(i%9950, 50)
			if len(page) != 50 {
				b.Fatal("short")
			}
			sink = page
			i++
		}
	})
}

var sink []tools.Tool

// BenchmarkRegisterBatch adds 1,000 tools to a catalog of 10,000 in one step.
func BenchmarkRegisterBatch(b *testing.B) {
	list := make([]tools.ToolDescriptor, 1000)
	for i := range list {
		list[i] = toolNumber(catalogSize + i)
	}
	for b.Loop() {
		b.StopTimer()
		cat := fill(b, catalogSize)
		b.StartTimer()
		if err := cat.RegisterAll(list); err != nil {
			b.Fatal(err)
		}
	}
}
