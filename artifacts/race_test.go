//go:build race

package artifacts_test

// raced says that the race detector is in the program, which makes it several
// times as large.
const raced = true
