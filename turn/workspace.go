package turn

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// Workspace returns middleware that refuses calls whose arguments name a file
// outside a directory: the tool's own Safety.WorkspaceRoot, or else root. It
// judges tools that are known to touch files or to start processes, and those
// with a root of their own.
//
// What it takes for a file name is every string among the arguments, at any
// depth, that is absolute, begins with "~" or "file:", or has an element "..", and
// the value of an argument that is called like one (path, file, dir, cwd, …).
// What an argument called content, text, query or the like holds is not looked at,
// nor are lines of a shell. Relative names are below the root. Links are followed
// as far as they exist on this machine. A tool that keeps to its root by itself is
// safer; this is for those that do not.
func Workspace(root string) Middleware {
	return Before(func(_ context.Context, inv *Invocation) error {
		s := &inv.Tool.Safety
		if s.WorkspaceRoot == "" && s.Filesystem != tools.Yes && s.Process != tools.Yes {
			return nil
		}
		in := root
		if s.WorkspaceRoot != "" {
			in = s.WorkspaceRoot
		}
		return inside(in, inv.Args)
	})
}

var (
	errOutside = errors.New("it names a file outside of the workspace")
	errNoRoot  = errors.New("there is no workspace")
)

// inside returns an error when a file that the arguments name is not below root.
func inside(root string, args []byte) error {
	if root == "" {
		return errNoRoot
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return errNoRoot
	}
	real := resolved(root)
	return eachText(args, "", func(key, text string) error {
		name, ok := fileName(key, text)
		if !ok {
			return nil
		}
		for _, name := range []string{name, strings.ReplaceAll(name, `\`, "/")} {
			if !filepath.IsAbs(name) {
				name = filepath.Join(root, name)
			}
			name = filepath.Clean(name)
			if !below(root, name) || !below(real, resolved(name)) {
				return fmt.Errorf("%w: the argument %q", errOutside, shorten(key))
			}
		}
		return nil
	})
}

// What arguments that hold file names are called, and what those that hold text
// are.
const (
	fileWords = " path paths file files filename filepath dir directory folder cwd root source destination target "
	textWords = " content contents text body message description comment query pattern regex string str value "
)

// longestName is the longest name of a file, in bytes.
const longestName = 4096

// fileName returns the file that a string among the arguments names, if it does.
func fileName(key, text string) (string, bool) {
	word := " " + strings.ToLower(key[strings.LastIndexAny(key, "_-.")+1:]) + " "
	if strings.Contains(textWords, word) || len(text) > longestName || strings.Contains(text, "\n") {
		return "", false
	}
	if rest, ok := strings.CutPrefix(text, "file:"); ok {
		if u, err := url.Parse(text); err == nil && u.Path != "" {
			return u.Path, true
		}
		return rest, true
	}
	if strings.HasPrefix(text, "~") {
		return string(filepath.Separator) + text, true // outside of every workspace
	}
	if filepath.IsAbs(text) || slices.Contains(strings.FieldsFunc(text, isSlash), "..") {
		return text, true
	}
	return text, strings.Contains(fileWords, word) && !strings.Contains(text, "://")
}

func isSlash(r rune) bool { return r == '/' || r == '\\' }

// below reports whether a clean absolute name is root or lies below it.
func below(root, name string) bool {
	rel, err := filepath.Rel(root, name)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// resolved follows links in the part of a clean absolute name that exists.
func resolved(name string) string {
	rest := ""
	for at := name; ; {
		real, err := filepath.EvalSymlinks(at)
		if err == nil {
			return filepath.Join(real, rest)
		}
		if dangling(at, err) {
			return string(filepath.Separator) // it leads nobody knows where
		}
		parent := filepath.Dir(at)
		if parent == at {
			return name
		}
		rest = filepath.Join(filepath.Base(at), rest)
		at = parent
	}
}

// dangling reports whether a name is there and what it leads to is not.
func dangling(name string, err error) bool {
	if !errors.Is(err, fs.ErrNotExist) {
		return true
	}
	info, err := os.Lstat(name)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// maxNesting bounds how deep arguments are searched. The schema checker refuses
// what is deeper.
const maxNesting = 1000

// eachText calls f with every string inside a JSON value and the nearest key
// above it, until f returns an error.
func eachText(v []byte, key string, f func(key, text string) error) error {
	return eachTextTo(v, key, maxNesting, f)
}

func eachTextTo(v []byte, key string, depth int, f func(key, text string) error) error {
	if depth == 0 {
		return errTooDeep
	}
	switch rawjson.KindOf(v) {
	case rawjson.KindString:
		if s, ok := rawjson.Unquote(v); ok {
			return f(key, s)
		}
	case rawjson.KindObject:
		for it := rawjson.Object(v); it.Next(); {
			if err := eachTextTo(it.Value(), it.Key(), depth-1, f); err != nil {
				return err
			}
		}
	case rawjson.KindArray:
		for it := rawjson.Array(v); it.Next(); {
			if err := eachTextTo(it.Value(), key, depth-1, f); err != nil {
				return err
			}
		}
	}
	return nil
}

var errTooDeep = errors.New("its arguments nest too deep")
