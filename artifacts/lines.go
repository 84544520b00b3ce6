package artifacts

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxSearch = 1000
	// piece is how much of a line is looked at at once; a longer line comes in
	// several pieces with the same number.
	piece = 64 << 10
	// shownLine bounds what a search shows of a line.
	shownLine = 500
	// maxContext bounds the lines around a match.
	maxContext = 50
	// checkEvery is how many pieces are read between looks at the clock, unless
	// they have as many bytes as a piece may have before.
	checkEvery = 256
)

// line is a line of text, or a piece of a long one.
type line struct {
	number int64 // counted from 1
	offset int64 // of its first byte
	text   []byte
	ends   bool // the newline, or the end of the content, follows
}

// lineReader reads lines from content.
type lineReader struct {
	in     *bufio.Reader
	number int64
	offset int64
	pieces int
	check  int64 // the offset at which the clock is looked at, at the latest
}

func newLineReader(r io.Reader) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(r, piece), number: 1}
}

// next returns the next piece without its newline; its text is valid until the
// next call. The error is io.EOF at the end.
func (l *lineReader) next(ctx context.Context) (line, error) {
	if l.pieces++; l.pieces%checkEvery == 0 || l.offset >= l.check {
		if ctx.Err() != nil {
			return line{}, ctx.Err()
		}
		l.check = l.offset + piece
	}
	text, err := l.in.ReadSlice('\n')
	if err != nil && !errors.Is(err, bufio.ErrBufferFull) && (err != io.EOF || len(text) == 0) {
		return line{}, err
	}
	got := line{number: l.number, offset: l.offset, text: bytes.TrimSuffix(text, []byte("\n")), ends: !errors.Is(err, bufio.ErrBufferFull)}
	l.offset += int64(len(text))
	if got.ends {
		l.number++
	}
	return got, nil
}

// fetchLines returns a range of lines, or those of them that match.
func (s *Store) fetchLines(ctx context.Context, args FetchArgs, limit int, res *FetchResult) error {
	r, err := s.Open(ctx, args.Ref, Section{})
	if err != nil {
		return err
	}
	defer r.Close()
	res.MIME, res.SizeBytes = r.Info.MIME, r.Info.SizeBytes
	lines := newLineReader(r)
	if args.Search == "" {
		return copyLines(ctx, lines, args, limit, res)
	}
	if err := checkPattern(args.Search); err != nil {
		return queryFault("search: %s", err)
	}
	f := &finder{args: args, limit: limit, matcher: newMatcher(args.Search)}
	f.args.Context = min(args.Context, maxContext)
	return f.run(ctx, lines, res)
}

// errBinary is what is said of content that has no lines.
func errBinary() error {
	return refusal(ErrRange, "the content is not text: ask for it by offset")
}

// copyLines returns the wanted lines as they are, as many as fit whole; of a
// line that does not fit at all, the beginning.
func copyLines(ctx context.Context, lines *lineReader, args FetchArgs, limit int, res *FetchResult) error {
	var out strings.Builder
	for {
		l, err := lines.next(ctx)
		if err == io.EOF || err == nil && args.ToLine > 0 && l.number > args.ToLine {
			break
		}
		if err != nil {
			return err
		}
		if l.number < args.FromLine {
			continue
		}
		if bytes.IndexByte(l.text, 0) >= 0 {
			return errBinary()
		}
		if out.Len() == 0 {
			res.Offset = l.offset
		}
		if out.Len()+len(l.text)+1 > limit {
			fillLine(&out, l, limit, res)
			break
		}
		out.Write(l.text)
		if l.ends {
			out.WriteByte('\n')
		}
	}
	res.Content = strings.TrimSuffix(strings.ToValidUTF8(out.String(), "\uFFFD"), "\n")
	return nil
}

// fillLine ends content at a line that does not fit, or inside of it when it
// begins the content.
func fillLine(out *strings.Builder, l line, limit int, res *FetchResult) {
	res.Truncated = true
	if out.Len() > 0 && strings.HasSuffix(out.String(), "\n") {
		res.NextLine, res.NextOffset = l.number, l.offset
		return
	}
	end := trimRune(l.text, min(len(l.text), max(limit-out.Len(), 0)))
	out.Write(l.text[:end])
	res.NextOffset = l.offset + int64(end)
}

// matcher finds what is searched for: what is no regular expression is text, and
// what has no capital letters ignores case.
type matcher struct {
	expression *regexp.Regexp // nil for plain text
	literal    []byte
	fold       bool
	lower      []byte // the last text in lower case
}

func newMatcher(search string) *matcher {
	m := &matcher{fold: !strings.ContainsFunc(search, unicode.IsUpper)}
	if regexp.QuoteMeta(search) == search && isASCII(search) {
		m.literal = []byte(search)
		return m
	}
	flags := ""
	if m.fold {
		flags = "(?i)"
	}
	var err error
	if m.expression, err = regexp.Compile(flags + search); err != nil {
		m.expression = regexp.MustCompile(flags + regexp.QuoteMeta(search))
	}
	return m
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

// find returns where the first match in text is, or nil.
func (m *matcher) find(text []byte) []int {
	if m.expression != nil {
		return m.expression.FindIndex(text)
	}
	if m.fold {
		text = m.lowered(text)
	}
	at := bytes.Index(text, m.literal)
	if at < 0 {
		return nil
	}
	return []int{at, at + len(m.literal)}
}

// lowered returns a copy of text whose capital letters of ASCII are small; what
// is searched for has no others.
func (m *matcher) lowered(text []byte) []byte {
	m.lower = append(m.lower[:0], text...)
	for i, c := range m.lower {
		if 'A' <= c && c <= 'Z' {
			m.lower[i] = c + ('a' - 'A')
		}
	}
	return m.lower
}

// A finder shows the lines that match, with those around them.
type finder struct {
	args    FetchArgs
	limit   int
	matcher *matcher

	out     strings.Builder
	before  []string // formatted lines ahead of a match, with their numbers
	last    int64    // number of the last line that was shown
	after   int      // how many more lines the last match shows
	matches int
}

// run searches until the content ends, the answer is full, or time is up; then
// the answer says where to go on.
func (f *finder) run(ctx context.Context, lines *lineReader, res *FetchResult) error {
	for {
		l, err := lines.next(ctx)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			res.Truncated, res.NextLine = true, lines.number
			return f.done(res)
		case err == io.EOF, err == nil && f.args.ToLine > 0 && l.number > f.args.ToLine:
			return f.done(res)
		case err != nil:
			return err
		case l.number < f.args.FromLine:
			continue
		case bytes.IndexByte(l.text, 0) >= 0:
			return errBinary()
		}
		if !f.look(l) {
			res.Truncated = true
			if res.NextLine = l.number; l.number <= max(f.args.FromLine, 1) { // the answer is full within its first line
				res.NextLine, res.NextOffset = 0, l.offset
			}
			return f.done(res)
		}
	}
}

func (f *finder) done(res *FetchResult) error {
	res.Content, res.Matches = strings.TrimSuffix(f.out.String(), "\n"), f.matches
	return nil
}

// look takes a line in, and reports false when it should be shown and does not
// fit.
func (f *finder) look(l line) bool {
	if l.ends {
		l.text = bytes.TrimSuffix(l.text, []byte("\r"))
	}
	at := f.matcher.find(l.text)
	if at == nil {
		if f.after > 0 {
			f.after--
			return f.show([]string{format(l, '-', nil)}, l.number)
		}
		if f.args.Context > 0 {
			f.before = append(f.before, format(l, '-', nil))
			f.before = f.before[max(len(f.before)-f.args.Context, 0):]
		}
		return true
	}
	group := append(f.before, format(l, ':', at))
	if f.out.Len() > 0 && l.number-int64(len(group)) > f.last && (f.args.Context > 0) {
		group = append([]string{"--"}, group...)
	}
	if !f.show(group, l.number) {
		return false
	}
	f.before, f.after = f.before[:0], f.args.Context
	f.matches++
	return true
}

func (f *finder) show(group []string, number int64) bool {
	size := 0
	for _, text := range group {
		size += len(text) + 1
	}
	if f.out.Len()+size > f.limit && f.out.Len() > 0 {
		return false
	}
	for _, text := range group {
		f.out.WriteString(text)
		f.out.WriteByte('\n')
	}
	f.last = number
	return true
}

// format shows a line with its number. Of a long one it shows the part around
// the match, and where that is.
func format(l line, mark byte, at []int) string {
	if len(l.text) <= shownLine && l.ends {
		return fmt.Sprintf("%d%c%s", l.number, mark, strings.ToValidUTF8(string(l.text), "\uFFFD"))
	}
	from := 0
	if at != nil {
		from = max(at[0]-shownLine/4, 0)
	}
	for from < len(l.text) && !utf8.RuneStart(l.text[from]) {
		from++
	}
	to := trimRune(l.text, min(from+shownLine, len(l.text)))
	return fmt.Sprintf("%d%c(at byte %d) …%s…", l.number, mark, l.offset+int64(from), strings.ToValidUTF8(string(l.text[from:to]), "\uFFFD"))
}
