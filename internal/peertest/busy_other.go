//go:build !unix

package peertest

import "time"

// Busy is a clock, where the system does not tell the processor time of this process.
func Busy() time.Duration { return time.Duration(time.Now().UnixNano()) }
