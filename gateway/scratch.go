package gateway

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"gocloud.dev/blob"
)

// scratchPrefix begins the names of the folders of large results in the folder
// for temporary files.
const scratchPrefix = "toolcrib-artifacts-"

// scratchLock is a file in each of them. Who uses the folder holds a lock of it,
// which goes with the process however it ends.
const scratchLock = "lock"

// scratch is the folder of large results of a gateway without a data folder. It is
// made when the first is kept, which for most programs is never.
type scratch struct {
	mu   sync.Mutex
	dir  string   // empty until it is made
	lock *os.File // nil where folders are not locked

	bucket *blob.Bucket
}

// open makes the folder and opens it.
func (s *scratch) open() (*blob.Bucket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir == "" {
		dir, lock, err := makeScratch(os.TempDir())
		if err != nil {
			return nil, fmt.Errorf("no folder can be made for large results: %w", err)
		}
		s.dir, s.lock = dir, lock
	}
	bucket, err := openFolder(filepath.Join(s.dir, artifactFolder))
	s.bucket = bucket
	return bucket, err
}

// Close removes the folder, if there is one.
func (s *scratch) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir == "" {
		return nil
	}
	var err error
	if s.bucket != nil {
		err = s.bucket.Close()
	}
	err = errors.Join(err, os.RemoveAll(s.dir))
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}
