//go:build race

package howto

// raceFlag hands the race detector on to the tests of the user's module.
const raceFlag = "-race=true"
