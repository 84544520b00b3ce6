package provider_test

import (
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/registry/provider"
)

// BenchmarkCall is a call of a tool on a worker in the same process, through the
// catalog's door: of a harmless tool, and of one that is recorded and claimed.
func BenchmarkCall(b *testing.B) {
	c := newCrib(b, nil)
	c.serve("demo", serving(echo), provider.Options{MaxConcurrentToolCalls: 64})
	c.up("demo", 1)
	args := `{"text":"` + strings.Repeat("x", 1000) + `"}`
	for _, tool := range []string{"demo.read", "demo.write"} {
		b.Run(tool, func(b *testing.B) {
			ctx := caller(b)
			for b.Loop() {
				if _, err := c.call(ctx, tool, args); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(tool+"/parallel", func(b *testing.B) {
			b.SetParallelism(32)
			ctx := caller(b)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := c.call(ctx, tool, args); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
