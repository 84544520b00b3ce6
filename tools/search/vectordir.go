package search

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
)

// VectorDir keeps vectors as files of a folder, one for each, so that a restart embeds nothing again. The folder
// is made when it is first needed.
type VectorDir string

var _ VectorStore = VectorDir("")

var errKey = errors.New("search: the key of a vector must be of hexadecimal digits")

// Load implements [VectorStore].
func (d VectorDir) Load(_ context.Context, key string) ([]float32, bool) {
	if !hexadecimal(key) {
		return nil, false
	}
	data, err := os.ReadFile(filepath.Join(string(d), key))
	if err != nil || len(data) == 0 || len(data)%4 != 0 {
		return nil, false
	}
	v := make([]float32, len(data)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return v, true
}

// Store implements [VectorStore]. A file is complete or not there.
func (d VectorDir) Store(_ context.Context, key string, vector []float32) error {
	if !hexadecimal(key) {
		return errKey
	}
	data := make([]byte, 0, 4*len(vector))
	for _, f := range vector {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(f))
	}
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(string(d), "new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(string(d), key))
	}
	if err != nil {
		if rm := os.Remove(f.Name()); rm != nil && !errors.Is(rm, fs.ErrNotExist) {
			return errors.Join(err, rm)
		}
	}
	return err
}

func hexadecimal(key string) bool {
	for i := range len(key) {
		c := key[i]
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	return key != ""
}
