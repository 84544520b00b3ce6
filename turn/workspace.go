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
// What it takes for a file name is every line of a string among the arguments, at
// any depth, and every key of an object, that is absolute, begins with "~" or
// "file:", or has an element "..", and the value of an argument that is called like
// one (path, file, dir, cwd, …). The latter must be one line of at most 4096 bytes.
// What an argument called content, text, code, query or the like holds is not looked
// at, nor are names inside the line of a shell. Relative names are below the root.
// Links are followed as far as they exist on this machine. A tool that keeps to its
// root by itself is safer; this is for those that do not.
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
	errNoName  = errors.New("it names a file by what is no file name: expected one line of at most 4096 bytes")
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
	w := workspace{root, resolved(root)}
	return eachText(args, "", func(key, text string) error {
		err := w.check(key, text)
		if err != nil && key == "" {
			return fmt.Errorf("%w: a key among the arguments", err)
		}
		if err != nil {
			return fmt.Errorf("%w: the argument %q", err, shorten(key))
		}
		return nil
	})
}

// workspace is a directory, by its clean absolute name and with links followed.
type workspace struct{ root, real string }

// check returns an error when a string among the arguments names a file outside.
func (w workspace) check(key, text string) error {
	word := wordOf(key)
	switch {
	case strings.Contains(textWords, word):
		return nil
	case !strings.Contains(fileWords, word):
		return w.checkLines(text)
	case len(text) > longestName || strings.ContainsFunc(text, endsLine):
		return errNoName
	}
	name, ok := fileName(text)
	if (ok || !isURL(text)) && !w.holds(name) {
		return errOutside
	}
	return nil
}

// wordOf returns the word of an argument's name that says what it holds.
func wordOf(key string) string {
	return " " + strings.ToLower(key[strings.LastIndexAny(key, "_-.")+1:]) + " "
}

// checkLines looks for file names in a string that may be anything.
func (w workspace) checkLines(text string) error {
	for line := range strings.FieldsFuncSeq(text, endsLine) {
		if name, ok := fileName(line); ok && !w.holds(name) {
			return errOutside
		}
	}
	return nil
}

func endsLine(r rune) bool { return r == '\n' || r == '\r' || r == 0 }

// holds reports whether a name is that of a file in the workspace, or of none at
// all as it is too long without its detours too.
func (w workspace) holds(name string) bool {
	for _, name := range []string{name, strings.ReplaceAll(name, `\`, "/")} {
		if name = filepath.Clean(name); len(name) > longestName {
			continue
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(w.root, name)
		}
		if !below(w.root, name) || !below(w.real, resolved(name)) {
			return false
		}
	}
	return true
}

// What arguments that hold file names are called, and what those that hold text
// are.
const (
	fileWords = " path paths file files filename filepath dir directory folder cwd root source destination target "
	textWords = " content contents text body message description comment code query pattern regex string str value "
)

// longestName is the longest name of a file, in bytes.
const longestName = 4096

// fileName returns the file that a line names, and whether it is known to name one.
func fileName(line string) (string, bool) {
	const scheme = "file:"
	if len(line) >= len(scheme) && strings.EqualFold(line[:len(scheme)], scheme) {
		return ofURL(line, line[len(scheme):]), true
	}
	if strings.HasPrefix(line, "~") {
		return string(filepath.Separator) + line, true // outside of every workspace
	}
	return line, filepath.IsAbs(line) || slices.Contains(strings.FieldsFunc(line, isSlash), "..")
}

// ofURL returns the file of a URL, of which rest is what follows the scheme.
func ofURL(text, rest string) string {
	if u, err := url.Parse(text); err == nil && u.Path != "" {
		return u.Path
	}
	if name, err := url.PathUnescape(rest); err == nil {
		return name
	}
	return rest
}

// isURL reports whether a text begins with a scheme of URLs.
func isURL(text string) bool {
	scheme, _, ok := strings.Cut(text, "://")
	return ok && !strings.ContainsFunc(scheme, isSlash)
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
// above it, until f returns an error. A key is such a string too, below the key
// above it where that is called like a file, else below none.
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
		above := key
		if !strings.Contains(fileWords, wordOf(key)) {
			above = ""
		}
		for it := rawjson.Object(v); it.Next(); {
			if err := f(above, it.Key()); err != nil {
				return err
			}
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
