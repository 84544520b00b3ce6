package crew_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/toolcrib/toolcrib/internal/crew"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Everything runs, at once where it must, and Wait leaves no goroutine.
func TestCrew(t *testing.T) {
	var c crew.Crew
	var ran atomic.Int64
	for range 10 {
		var met sync.WaitGroup
		met.Add(50)
		for range 50 {
			c.Go(func() {
				met.Done()
				met.Wait() // until all of them run
				ran.Add(1)
			})
		}
		met.Wait()
	}
	c.Wait()
	if ran.Load() != 500 {
		t.Errorf("%d of 500 ran", ran.Load())
	}
	c.Go(func() { ran.Add(1) })
	c.Wait()
	if ran.Load() != 501 {
		t.Error("nothing runs after Wait")
	}
}

// Work that follows other work runs on the same goroutine, and work that ends its
// goroutine takes nothing with it.
func TestCrewStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c crew.Crew
		before := runtime.NumGoroutine()
		for range 100 {
			c.Go(func() {})
			synctest.Wait()
		}
		if n := runtime.NumGoroutine() - before; n != 1 {
			t.Errorf("%d goroutines stayed", n)
		}
		c.Go(runtime.Goexit)
		c.Wait()
	})
}

// Not all stay that a burst took.
func TestCrewIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c crew.Crew
		before := runtime.NumGoroutine()
		end := make(chan struct{})
		for range 1000 {
			c.Go(func() { <-end })
		}
		close(end)
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n > 64 {
			t.Errorf("%d goroutines stayed", n)
		}
		c.Wait()
	})
}

// deep needs a stack that a new goroutine does not have.
func deep(n int) int {
	var pad [256]byte
	if n == 0 {
		return int(pad[0])
	}
	pad[n%256] = byte(n)
	return deep(n-1) + int(pad[(n+1)%256])
}

func BenchmarkGo(b *testing.B) {
	done := make(chan int, 1)
	for b.Loop() {
		go func() { done <- deep(40) }()
		<-done
	}
}

func BenchmarkCrew(b *testing.B) {
	var c crew.Crew
	defer c.Wait()
	done := make(chan int, 1)
	for b.Loop() {
		c.Go(func() { done <- deep(40) })
		<-done
	}
}
