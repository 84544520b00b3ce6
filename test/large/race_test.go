//go:build race

package large

const raceDetector = true
