package schema

import (
	"testing"
)

// BenchmarkReader compares what registering a tool costs with what it would if
// the full validator read its schema.
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
	b.Run("full", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := compileFull(raw, &Options{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
