// Package spread does work on many things at once.
package spread

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Each calls work for every number below n and returns when all calls have. It
// uses as many goroutines as there are processors, but no more than one for
// each share of the numbers; with less than two shares it uses none.
func Each(n, share int, work func(i int)) {
	var next atomic.Int64
	some := func() {
		for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
			work(int(i))
		}
	}
	var others sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n/max(share, 1)) - 1 {
		others.Go(some)
	}
	some()
	others.Wait()
}
