package yamldoc

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// maxFile bounds a file of a folder, in bytes. A text for people may follow what
// is YAML in it.
const maxFile = 4 << 20

var errNoFile = errors.New("is not a regular file, nor a link to one")

// Each gives to do each file of a folder that is wanted, in it and below, in the
// order of their names, or why it cannot be read, which is a *Fault. Folders whose
// names begin with a dot are left out, as they are the affair of other programs;
// links to folders are not followed. The error says why the folder cannot be read.
func Each(folder fs.FS, wanted func(file string) bool, do func(file string, data []byte, err error)) error {
	return fs.WalkDir(folder, ".", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if file != "." && strings.HasPrefix(entry.Name(), ".") {
				return fs.SkipDir
			}
			return nil
		case !wanted(file):
			return nil
		}
		data, err := read(folder, file)
		if err != nil {
			err = &Fault{File: file, Err: err}
		}
		do(file, data, err)
		return nil
	})
}

// read reads a file. What is no file is not opened, as a pipe would not be before
// somebody writes to it.
func read(folder fs.FS, file string) ([]byte, error) {
	info, err := fs.Stat(folder, file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNoFile
	}
	f, err := folder.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("the file has more than %d bytes", maxFile)
	}
	return data, err
}
