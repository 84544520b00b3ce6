//go:build !race

package rawjson

// raceEnabled says that sync.Pool drops values at random.
const raceEnabled = false
