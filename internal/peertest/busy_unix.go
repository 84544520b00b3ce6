//go:build unix

package peertest

import (
	"syscall"
	"time"
)

// Busy is the processor time that this process has taken so far. Unlike the time of a clock it does not grow while others
// have the processor.
func Busy() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err) // for a process of its own it does not fail
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
