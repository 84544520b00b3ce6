package rawjson

import (
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// Options say how strict [Check] is. The zero value is the strictest: valid
// UTF-8, no duplicate keys, at most [DefaultMaxDepth] levels.
type Options struct {
	// MaxDepth bounds how deep arrays and objects nest; 0 means DefaultMaxDepth.
	MaxDepth int
	// AllowDuplicates accepts objects that name a member twice.
	AllowDuplicates bool
	// AllowInvalidUTF8 accepts strings that are not valid UTF-8.
	AllowInvalidUTF8 bool
}

// walkers lends memory to Check, so that a document costs no allocation.
var walkers = sync.Pool{New: func() any { return new(Walker) }}

// Check reports whether doc is exactly one JSON value, with white space around
// it allowed. The error is a [*SyntaxError] or a [*DuplicateKeyError].
func Check(doc []byte, opts Options) error {
	if opts.MaxDepth <= 0 {
		opts.MaxDepth = DefaultMaxDepth
	}
	at, fault := check(doc, opts)
	if fault == FaultNone {
		return nil
	}
	return NewError(doc, at, fault)
}

// Valid reports whether doc is one JSON value by the grammar alone: as Check
// with AllowDuplicates and AllowInvalidUTF8.
func Valid(doc []byte) bool {
	_, fault := check(doc, Options{MaxDepth: DefaultMaxDepth, AllowDuplicates: true, AllowInvalidUTF8: true})
	return fault == FaultNone
}

func check(doc []byte, opts Options) (int, Fault) {
	w := walkers.Get().(*Walker)
	defer w.release()
	if !w.Reset(doc, opts.MaxDepth) && !opts.AllowDuplicates {
		return 0, FaultSize
	}
	w.Trusted = opts.AllowDuplicates
	i, fault := w.Value(SkipSpace(doc, 0), 0)
	if fault == FaultNone {
		if i = SkipSpace(doc, i); i != len(doc) {
			fault = FaultTrailing
		}
	}
	if fault == FaultNone && !opts.AllowInvalidUTF8 && !utf8.Valid(doc) {
		return InvalidUTF8(doc), FaultUTF8
	}
	return i, fault
}

func (w *Walker) release() {
	w.Reset(nil, 0)
	walkers.Put(w)
}

// InvalidUTF8 returns the offset of the first byte that is not valid UTF-8, or
// -1.
func InvalidUTF8(b []byte) int {
	for i := 0; i < len(b); {
		if b[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// NewError turns a fault seen at an offset of doc into the error for it.
func NewError(doc []byte, at int, fault Fault) error {
	if fault == FaultDuplicate {
		return &DuplicateKeyError{Offset: at, Path: PointerAt(doc, at)}
	}
	return &SyntaxError{Offset: at, Reason: fault.String()}
}

const (
	maxPointerKey = 64
	maxPointer    = 256
)

// PointerAt returns the JSON Pointer of the innermost array or object of doc
// that is open at the given offset, "" for the root. Everything before the
// offset must be well-formed. Keys longer than 64 bytes and pointers longer
// than 256 are cut and end in an ellipsis.
func PointerAt(doc []byte, at int) string {
	open := openAt(doc, at)
	return renderPointer(doc, open[:max(len(open)-1, 0)])
}

// PointerTo returns the JSON Pointer of the value of doc that starts at the
// given offset, bounded as that of [PointerAt].
func PointerTo(doc []byte, at int) string {
	return renderPointer(doc, openAt(doc, at))
}

// frame is an array or object that is open at some offset, and which of its
// elements the offset is in.
type frame struct {
	index            int
	keyStart, keyEnd int
	object, wantKey  bool
}

// openAt returns the arrays and objects that are open at the given offset,
// outermost first.
func openAt(doc []byte, at int) []frame {
	var open []frame
	for i := 0; i < min(at, len(doc)); i++ {
		top := len(open) - 1
		switch c := doc[i]; c {
		case '{', '[':
			open = append(open, frame{object: c == '{', wantKey: c == '{'})
		case '}', ']':
			open = open[:max(top, 0)]
		case ',':
			if top >= 0 {
				open[top].index++
				open[top].wantKey = open[top].object
			}
		case '"':
			end, _, _ := ScanString(doc, i)
			if top >= 0 && open[top].wantKey {
				open[top].keyStart, open[top].keyEnd, open[top].wantKey = i, end, false
			}
			i = end - 1
		}
	}
	return open
}

func renderPointer(doc []byte, open []frame) string {
	var sb strings.Builder
	for _, f := range open {
		if sb.Len() > maxPointer {
			break
		}
		sb.WriteByte('/')
		switch {
		case !f.object:
			sb.WriteString(strconv.Itoa(f.index))
		case f.keyEnd-f.keyStart >= 2:
			sb.WriteString(pointerToken(doc[f.keyStart:f.keyEnd]))
		}
	}
	return cut(sb.String(), maxPointer)
}

// pointerToken renders a raw key as one bounded reference token.
func pointerToken(rawKey []byte) string {
	body := rawKey[1 : len(rawKey)-1]
	key := string(appendUnescaped(nil, body[:min(len(body), 8*maxPointerKey)]))
	return EscapePointer(cut(key, maxPointerKey))
}

// EscapePointer escapes a key for use in a JSON Pointer (RFC 6901).
func EscapePointer(key string) string {
	if !strings.ContainsAny(key, "~/") {
		return key
	}
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// cut shortens s to about n bytes at a rune boundary and marks the cut.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
