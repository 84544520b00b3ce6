package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
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

// BenchmarkResolve compares the ways to find one of 10,000 tools with a function
// of the same form that loads a map through an atomic pointer and looks the
// descriptor up in it. What resolve gives is a copy, so that nothing a caller
// does to it reaches the catalog; own is what a reader of the plain map would
// do for the same guarantee.
func BenchmarkResolve(b *testing.B) {
	cat := fill(b, catalogSize)
	plain := map[string]tools.ToolDescriptor{}
	for i := range catalogSize {
		plain[toolNumber(i).Tool.Name] = toolNumber(i)
	}
	var p atomic.Pointer[map[string]tools.ToolDescriptor]
	p.Store(&plain)
	lookUp := func(name string) (tools.ToolDescriptor, bool) {
		d, ok := (*p.Load())[name]
		return d, ok
	}
	own := func(name string) (tools.ToolDescriptor, bool) {
		d, ok := (*p.Load())[name]
		d.Tool.ArgsSchema = slices.Clone(d.Tool.ArgsSchema)
		d.Tool.OutSchema = slices.Clone(d.Tool.OutSchema)
		d.Tool.Tags = slices.Clone(d.Tool.Tags)
		return d, ok
	}
	floor := finder(b, lookUp)
	b.Run("floor", func(b *testing.B) { beside(b, floor, finder(b, lookUp)) })
	b.Run("own", func(b *testing.B) { beside(b, floor, finder(b, own)) })
	b.Run("resolve", func(b *testing.B) { beside(b, floor, finder(b, cat.Resolve)) })
}

// finder returns a function that finds one tool after the other.
func finder(b *testing.B, find func(string) (tools.ToolDescriptor, bool)) func() {
	names := make([]string, 1024)
	for i := range names {
		names[i] = toolNumber(i * 7 % catalogSize).Tool.Name
	}
	n := 0
	return func() {
		if d, ok := find(names[n&1023]); !ok || d.Tool.Name == "" {
			b.Fatal("not found")
		}
		n++
	}
}

// page keeps what was read, so that the copying is not optimised away.
var page []tools.Tool

// BenchmarkListPage compares a page of 50 of 10,000 tools with copying 50
// values.
func BenchmarkListPage(b *testing.B) {
	cat := fill(b, catalogSize)
	values := cat.List(tools.CatalogFilter{})
	ctx := context.Background()
	i := 0
	bare := func() {
		page = make([]tools.Tool, 50)
		if copy(page, values[i%9950:]) != 50 {
			b.Fatal("short")
		}
		i++
	}
	b.Run("floor", func(b *testing.B) { beside(b, bare, bare) })
	b.Run("page", func(b *testing.B) {
		beside(b, bare, func() {
			page = cat.Snapshot().Visible(tools.FilterFrom(ctx)).Page(i%9950, 50)
			if len(page) != 50 {
				b.Fatal("short")
			}
			i++
		})
	})
}

// BenchmarkRegisterBatch adds 1,000 tools to a catalog of 10,000 in one batch
// and takes them out again, beside the same in an empty catalog, which is the
// work of compiling the tools. The snapshot, with its 11,000 tools, is made
// once for each of the two steps.
func BenchmarkRegisterBatch(b *testing.B) {
	list := make([]tools.ToolDescriptor, 1000)
	for i := range list {
		list[i] = toolNumber(catalogSize + i)
		list[i].Tool.Source = "batch"
	}
	batch := func(cat tools.LiveCatalog) func() {
		return func() {
			before := cat.Snapshot().Generation()
			if err := cat.RegisterAll(list); err != nil {
				b.Fatal(err)
			}
			if after := cat.Snapshot().Generation(); after != before+1 {
				b.Fatalf("the batch made %d snapshots", after-before)
			}
			cat.SwapSource("batch", nil)
		}
	}
	empty, full := batch(fill(b, 0)), batch(fill(b, catalogSize))
	b.Run("full", func(b *testing.B) { beside(b, empty, full) })
}
