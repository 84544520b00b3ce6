//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package gateway

import "os"

// makeScratch makes a folder in parent. It is not locked here, so that nothing tells
// folders that are in use from others.
func makeScratch(parent string) (dir string, lock *os.File, err error) {
	dir, err = os.MkdirTemp(parent, scratchPrefix)
	return dir, nil, err
}

// clearScratch leaves everything as it is.
func clearScratch(string) error { return nil }
