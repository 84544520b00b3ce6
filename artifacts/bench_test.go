package artifacts_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/artifacts"
	"github.com/toolcrib/toolcrib/tools"
)

func BenchmarkPut(b *testing.B) {
	for _, size := range []int{1 << 10, 100 << 10, 10 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			f, ctx := newFileFixture(b, artifacts.Options{Tenant: artifacts.Quota{Bytes: -1, Count: -1}}), ada(b)
			content := strings.Repeat("x", size)
			b.SetBytes(int64(size))
			for b.Loop() {
				f.put(b, ctx, content, artifacts.Meta{})
			}
		})
	}
}

func BenchmarkFetch(b *testing.B) {
	f := newFileFixture(b, artifacts.Options{})
	rows := "[" + strings.Repeat(`{"id":123,"name":"a row"},`, 40_000) + "{}]"
	info := f.put(b, ada(b), rows, artifacts.Meta{})
	for name, args := range map[string]artifacts.FetchArgs{"bytes": {}, "search": {Search: "nowhere"}, "query": {Query: "map(.id) | add"}} {
		args.Ref = info.Ref
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f.fetch(b, args)
			}
		})
	}
}

func BenchmarkBound(b *testing.B) {
	heavy := json.RawMessage("[" + strings.Repeat(`{"id":123,"name":"a row"},`, 4000) + "{}]")
	for name, res := range map[string]tools.ToolResult{"small": text(strings.Repeat("x", 1000)), "heavy": {Structured: heavy}} {
		b.Run(name, func(b *testing.B) {
			f := newFileFixture(b, artifacts.Options{Tenant: artifacts.Quota{Bytes: -1, Count: -1}})
			for b.Loop() {
				f.bound(b, nil, res)
			}
		})
	}
}
