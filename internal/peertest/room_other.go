//go:build !linux

package peertest

import "testing"

// Roomy returns a new directory for hundreds of megabytes, which goes with the test.
func Roomy(t testing.TB) string { return t.TempDir() }
