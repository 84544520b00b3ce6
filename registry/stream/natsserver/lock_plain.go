//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package natsserver

import (
	"fmt"
	"os"
)

// lock makes the folder. Where there is no flock, that one server uses it is up to
// who starts them.
func lock(dir string) (unlock func() error, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("natsserver: %w", err)
	}
	return func() error { return nil }, nil
}
