// Package faults holds tests in which processes crash, hang and lie, servers forget their sessions, and callers go away,
// with a gateway in between as the binary has it. Flags make the tests do more than is wanted every day:
//
//	go test ./test/faults -cycles=1000 -calls=10000 -megabytes=200 -v
package faults
