package bench

import (
	"slices"
	"testing"
	"time"
)

const (
	chunkTime = 200 * time.Microsecond // so that most chunks fit between two turns of the scheduler
	chunks    = 300
	// enough bounds the time of a comparison whose calls are longer than a
	// chunk; it then has fewer of them, but no less than few.
	enough = 2 * time.Second
	few    = 5
)

// beside measures subject as benchmarks do, and then against floor: the two
// run in turns, in chunks so short that whatever else the machine does meets
// both alike, and the median chunks are compared. The ratio is reported as the
// metric x-floor.
func beside(b *testing.B, floor, subject func()) {
	b.ReportAllocs()
	for b.Loop() {
		subject()
	}
	b.StopTimer()
	b.ReportMetric(ratio(floor, subject), "x-floor")
}

func ratio(floor, subject func()) float64 {
	nFloor, nSubject := fitting(floor), fitting(subject)
	var a, b []float64
	for begin := time.Now(); len(a) < few || len(a) < chunks && time.Since(begin) < enough; {
		a = append(a, perCall(floor, nFloor))
		b = append(b, perCall(subject, nSubject))
	}
	slices.Sort(a)
	slices.Sort(b)
	return b[len(b)/2] / a[len(a)/2]
}

// fitting returns how many calls of f take about one chunk. It looks at the
// shortest of some tries, as a try that is interrupted says nothing.
func fitting(f func()) int {
	for n := 1; ; n *= 2 {
		shortest := min(perCall(f, n), perCall(f, n), perCall(f, n))
		if shortest*float64(n) >= float64(chunkTime) {
			return n
		}
	}
}

func perCall(f func(), n int) float64 {
	begin := time.Now()
	for range n {
		f()
	}
	return float64(time.Since(begin)) / float64(n)
}
