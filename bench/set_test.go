package bench

import (
	"slices"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/set"
	"github.com/toolcrib/toolcrib/tools"
)

// BenchmarkSetBuild compares a set of 10,000 tools that passes five filters with
// copying and sorting the slice of those tools.
func BenchmarkSetBuild(b *testing.B) {
	list := make([]*tools.Tool, catalogSize)
	for i := range list {
		d := toolNumber(i * 7919 % catalogSize)
		list[i] = &d.Tool
	}
	floor := func() {
		copied := make([]tools.Tool, len(list))
		for i, t := range list {
			copied[i] = *t
		}
		slices.SortFunc(copied, func(x, y tools.Tool) int { return strings.Compare(x.Name, y.Name) })
	}
	build := func() {
		ts, err := set.NewBuilder("bench").FromTools(list).WithNamespace("bench").WithTags("bench", "lookup").ExcludeTools("bench.none").
			WithFilter(set.TagsNone("write")).WithFilter(set.TagsAll("lookup")).Build()
		if err != nil || ts.Count() != catalogSize {
			b.Fatal("incomplete", err)
		}
	}
	b.Run("floor", func(b *testing.B) { beside(b, floor, floor) })
	b.Run("build", func(b *testing.B) { beside(b, floor, build) })
}
