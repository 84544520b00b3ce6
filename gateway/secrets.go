package gateway

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// A reference names a secret: ${NAME} is an environment variable and ${file:PATH}
// the content of a file, anywhere in a text; a text that is file:PATH is the
// content of the file as a whole. $${ stands for ${ itself.
var reference = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\$?\$\{([^}]*)\}?`)
})

var variableName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
})

const (
	filePrefix     = "file:"
	maxSecretBytes = 64 << 10
)

// isReference reports whether s is nothing but one reference.
func isReference(s string) bool {
	if strings.HasPrefix(s, filePrefix) {
		return true
	}
	return reference().FindString(s) == s && hasReference(s)
}

// hasReference reports whether s holds a reference.
func hasReference(s string) bool {
	if strings.HasPrefix(s, filePrefix) {
		return true
	}
	for _, m := range reference().FindAllString(s, -1) {
		if !strings.HasPrefix(m, "$$") {
			return true
		}
	}
	return false
}

// checkReferences returns an error when a reference in s is malformed. It does
// not look whether there is what it names.
func checkReferences(s string) error {
	if s == filePrefix {
		return errors.New("names no file")
	}
	for _, m := range reference().FindAllStringSubmatch(s, -1) {
		if strings.HasPrefix(m[0], "$$") {
			continue
		}
		path, isFile := strings.CutPrefix(m[1], filePrefix)
		if !strings.HasSuffix(m[0], "}") || isFile && path == "" || !isFile && !variableName().MatchString(m[1]) {
			return errors.New("holds a reference that is not well formed")
		}
	}
	return nil
}

// resolver reads what references name. Its errors hold the names and never
// what stands behind them.
type resolver struct {
	dir    string // where relative paths start
	lookup func(name string) (string, bool)
}

func newResolver(dir string) *resolver { return &resolver{dir: dir, lookup: os.LookupEnv} }

// resolve returns s with every reference replaced.
func (r *resolver) resolve(s string) (string, error) {
	if path, whole := strings.CutPrefix(s, filePrefix); whole {
		return r.read(path)
	}
	var missing error
	out := reference().ReplaceAllStringFunc(s, func(m string) string {
		if rest, escaped := strings.CutPrefix(m, "$$"); escaped {
			return "$" + rest
		}
		value, err := r.one(strings.TrimSuffix(strings.TrimPrefix(m, "${"), "}"))
		missing = errors.Join(missing, err)
		return value
	})
	if missing != nil {
		return "", missing
	}
	return out, nil
}

func (r *resolver) one(name string) (string, error) {
	if path, isFile := strings.CutPrefix(name, filePrefix); isFile {
		return r.read(path)
	}
	value, ok := r.lookup(name)
	if !ok || value == "" {
		return "", fmt.Errorf("the environment variable %s is not set", name)
	}
	return value, nil
}

// read returns the content of a secret's file without the line break at its
// end.
func (r *resolver) read(path string) (string, error) {
	f, err := os.Open(absolute(r.dir, path))
	if err != nil {
		return "", fmt.Errorf("the file %s cannot be read: %w", path, bare(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSecretBytes+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("the file %s cannot be read: %w", path, bare(err))
	case len(data) > maxSecretBytes:
		return "", fmt.Errorf("the file %s is larger than %d bytes", path, maxSecretBytes)
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	if value == "" {
		return "", fmt.Errorf("the file %s is empty", path)
	}
	return value, nil
}

// bare is err without the path that it repeats.
func bare(err error) error {
	var pathError *os.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}

// absolute returns path, started at dir when it is relative.
func absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}
