// Package heap lets a process that serves much with little memory collect its garbage
// less often.
package heap

import (
	"math"
	"os"
	"runtime/debug"
)

// floorBytes is how much more garbage may lie than is alive.
const floorBytes = 64 << 20

// Floor is memory that nobody uses. The garbage collector takes it for alive, and so
// lets as much garbage lie before it begins again, and twice as much as is alive beside
// it. The system gives no memory for what nobody touches. A nil Floor is none.
type Floor [floorBytes]byte

// NewFloor returns a floor, which lasts as long as it is reachable. Where GOGC is in the
// environment there is none, and none where memory is limited, as with GOMEMLIMIT, for
// it counts as used there.
func NewFloor() *Floor {
	if _, ok := os.LookupEnv("GOGC"); ok || debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return nil
	}
	return new(Floor)
}
