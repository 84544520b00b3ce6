//go:build race

package mcptool

const raceDetector = true
