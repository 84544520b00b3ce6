//go:build darwin || freebsd || linux

package disk

import (
	"math"
	"syscall"
)

// Free returns how many bytes may still be written to the file system that holds a
// folder. When it cannot tell, there is room.
func Free(dir string) uint64 {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return math.MaxUint64
	}
	return uint64(stat.Bavail) * uint64(stat.Bsize)
}
