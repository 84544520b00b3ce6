//go:build !race

package howto

// raceFlag leaves the race detector off in the tests of the user's module, as it needs a C compiler.
const raceFlag = "-race=false"
