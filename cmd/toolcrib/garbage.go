package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolcrib/toolcrib/internal/heap"
)

const (
	// startPercent lets the heap of a program that starts grow to 32 MB before
	// it is collected for the first time, which is after the start in most
	// cases: a start makes much that is kept.
	startPercent = 800
	// settleAfter is how long after the start what it left is collected, so that
	// the first requests need not wait for that.
	settleAfter = time.Second
)

// postponeGarbage lets garbage lie while the program starts. It ends with the
// first collection, or some time after the function that it returns was called.
// Unused memory is given back then, and as long as that function is reachable
// garbage is collected less often than little live memory would have it. GOGC in the
// environment has the last word.
func postponeGarbage() (settle func()) {
	if _, ok := os.LookupEnv("GOGC"); ok {
		return func() {}
	}
	before := debug.SetGCPercent(startPercent)
	restore := sync.OnceFunc(func() { debug.SetGCPercent(before) })
	runtime.AddCleanup(new([16]byte), func(struct{}) { restore() }, struct{}{})
	var floor atomic.Pointer[heap.Floor]
	return func() {
		time.AfterFunc(settleAfter, func() {
			restore()
			debug.FreeOSMemory()
			floor.Store(heap.NewFloor())
		})
	}
}
