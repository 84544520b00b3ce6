package schema

import (
	"testing"
)

// BenchmarkReader compares what registering a tool costs with what it would if
// its schema was linked and checked against the meta-schema.
func BenchmarkReader(b *testing.B) {
	raw := []byte(benchObject)
	b.Run("common", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Compile(raw, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("linked", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := nodesOfAny(raw, &Options{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
