package spread_test

import (
	"sync/atomic"
	"testing"

	"github.com/toolcrib/toolcrib/internal/spread"
)

func TestEach(t *testing.T) {
	for _, n := range []int{0, 1, 7, 8, 100} {
		for _, share := range []int{0, 1, 8, 1000} {
			calls := make([]atomic.Int32, n)
			spread.Each(n, share, func(i int) { calls[i].Add(1) })
			for i := range calls {
				if got := calls[i].Load(); got != 1 {
					t.Errorf("%d of %d in shares of %d: %d calls", i, n, share, got)
				}
			}
		}
	}
}
