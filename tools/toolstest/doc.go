// Package toolstest holds what tests of tools need: a suite that every source
// of tools passes against a real server (RunSource), a suite for any catalog
// (RunCatalog), and parts to build tests from: a tool that follows a Script, a
// Recorder and a Peer that keep what reaches them, and NothingLeft, which finds
// goroutines, open files and child processes that a test left behind.
package toolstest
