package main

import (
	"math"
	"testing"

	"github.com/tiktoken-go/tokenizer"

	"github.com/toolcrib/toolcrib/view"
)

// The estimate that decides when tools are deferred is close to what a tokenizer
// counts, over the lists that are here.
func TestEstimate(t *testing.T) {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	all, err := read([]string{"../../tools/search/testdata/corpus/tools-list"})
	if err != nil {
		t.Fatal(err)
	}
	measured, estimate := (&meter{codec: codec}).declared(all), 0
	for i := range all {
		estimate += view.Tokens(&all[i])
	}
	if ratio := float64(estimate) / float64(measured); math.Abs(ratio-1) > 0.05 {
		t.Errorf("the estimate is %.2f times what is measured", ratio)
	}
}
