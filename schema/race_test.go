//go:build race

package schema_test

// raceEnabled says that sync.Pool drops values at random.
const raceEnabled = true
