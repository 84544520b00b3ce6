package heap_test

import (
	"os"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/toolcrib/toolcrib/internal/heap"
)

// With a floor a program that keeps nothing collects its garbage a few times for each
// gigabyte, unless somebody has said how often.
func TestFloor(t *testing.T) {
	t.Setenv("GOGC", "100")
	often := collections(heap.NewFloor())
	if err := os.Unsetenv("GOGC"); err != nil {
		t.Fatal(err)
	}
	seldom := collections(heap.NewFloor())
	if seldom > 20 || often < 5*seldom {
		t.Errorf("%d collections with a floor, and %d without", seldom, often)
	}
}

// Where memory is limited there is no floor.
func TestNoFloorBelowALimit(t *testing.T) {
	t.Setenv("GOGC", "")
	if err := os.Unsetenv("GOGC"); err != nil {
		t.Fatal(err)
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 30))
	if heap.NewFloor() != nil {
		t.Error("there is one")
	}
}

// collections returns how often a gigabyte of garbage is collected.
func collections(floor *heap.Floor) uint32 {
	defer runtime.KeepAlive(floor)
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 1 << 14 {
		garbage = make([]byte, 1<<16)
	}
	runtime.ReadMemStats(&after)
	return after.NumGC - before.NumGC
}

var garbage []byte
