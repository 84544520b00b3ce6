package artifacts

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toolcrib/toolcrib/tools"
)

// FetchTool is the name under which models know Fetch. Its answers are bounded
// and are never stored again.
const FetchTool = "artifact_fetch"

// uriScheme stands before a ref where MCP links to it. Models copy it with the ref.
const uriScheme = tools.ArtifactScheme

// Limits of Fetch.
const (
	// DefaultFetchBytes and MaxFetchBytes bound the content of one answer.
	DefaultFetchBytes = 64 << 10
	MaxFetchBytes     = 1 << 20
	// fetchTime bounds one answer.
	fetchTime = 10 * time.Second
)

// FetchArgs says which part of an artifact is wanted: bytes from Offset, lines,
// the lines that match Search, or what Query makes of its JSON.
type FetchArgs struct {
	Ref      string `json:"ref" jsonschema:"the reference of the artifact, which begins with art-"`
	MaxBytes int    `json:"max_bytes,omitempty" jsonschema:"how much content to return at most; 65536 when absent, 1048576 at most"`
	Offset   int64  `json:"offset,omitempty" jsonschema:"where to begin, in bytes from 0"`
	FromLine int64  `json:"from_line,omitempty" jsonschema:"the first line wanted, counted from 1"`
	ToLine   int64  `json:"to_line,omitempty" jsonschema:"the last line wanted"`
	Search   string `json:"search,omitempty" jsonschema:"return only the lines that match this text or regular expression (RE2), with their numbers; without capital letters in it, case is ignored"`
	Context  int    `json:"context,omitempty" jsonschema:"how many lines to show around each match"`
	Query    string `json:"query,omitempty" jsonschema:"a jq expression to run on JSON, such as .items[] | {id, name}"`
}

// FetchResult is a part of an artifact.
type FetchResult struct {
	Ref       string `json:"ref" jsonschema:"the reference that was asked for"`
	MIME      string `json:"mime,omitempty" jsonschema:"the media type of the whole"`
	SizeBytes int64  `json:"size_bytes" jsonschema:"the size of the whole"`
	Content   string `json:"content" jsonschema:"the part that was asked for"`
	Encoding  string `json:"encoding,omitempty" jsonschema:"base64 when the content is binary"`
	Truncated bool   `json:"truncated" jsonschema:"whether more follows of what was asked for"`
	// Offset is where the content begins, and NextOffset where to go on.
	Offset     int64 `json:"offset,omitempty" jsonschema:"where the content begins, in bytes"`
	NextOffset int64 `json:"next_offset,omitempty" jsonschema:"the offset to go on with"`
	NextLine   int64 `json:"next_line,omitempty" jsonschema:"the from_line to go on with"`
	Matches    int   `json:"matches,omitempty" jsonschema:"how many matching lines are shown"`
	Results    int   `json:"results,omitempty" jsonschema:"how many results of the query are shown, one on each line"`
	// Error says what is wrong with the question, or that there is no such
	// artifact.
	Error string `json:"error,omitempty" jsonschema:"why there is no content"`
}

// Fetch answers with a part of an artifact of the caller's. What is wrong with
// the question, and a ref of no artifact that the caller can see, is in the
// result's Error; an error means that the store failed, or that ctx ended.
func (s *Store) Fetch(ctx context.Context, args FetchArgs) (FetchResult, error) {
	args.Ref = strings.TrimPrefix(args.Ref, uriScheme)
	limit, err := args.check()
	if err != nil {
		return FetchResult{Ref: args.Ref, Error: err.Error()}, nil
	}
	bounded, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	res := FetchResult{Ref: args.Ref}
	switch {
	case args.Query != "":
		err = s.fetchQuery(bounded, args, limit, &res)
	case args.Search != "" || args.FromLine > 0 || args.ToLine > 0:
		err = s.fetchLines(bounded, args, limit, &res)
	default:
		err = s.fetchBytes(bounded, args, limit, &res)
	}
	var told *tools.Error
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return FetchResult{}, ctx.Err()
	case errors.As(err, &told) && told.Code != nil && !errors.Is(err, tools.ErrIdentityRequired):
		return FetchResult{Ref: args.Ref, MIME: res.MIME, SizeBytes: res.SizeBytes, Error: told.SafeMessage()}, nil
	case errors.Is(err, context.DeadlineExceeded):
		return FetchResult{Ref: args.Ref, MIME: res.MIME, SizeBytes: res.SizeBytes, Error: "that took too long: ask for less, or another way"}, nil
	default:
		return FetchResult{}, err
	}
	return res, nil
}

// check returns how much content is wanted.
func (a *FetchArgs) check() (limit int, err error) {
	ways := 0
	for _, way := range []bool{a.Query != "", a.Offset != 0, a.Search != "" || a.FromLine != 0 || a.ToLine != 0} {
		if way {
			ways++
		}
	}
	switch {
	case ways > 1:
		return 0, errors.New("ask in one way: by offset, by query, or by lines and search")
	case a.Offset < 0, a.FromLine < 0, a.ToLine < 0, a.Context < 0, a.MaxBytes < 0:
		return 0, errors.New("offset, from_line, to_line, context and max_bytes are not negative")
	case a.ToLine > 0 && a.ToLine < a.FromLine:
		return 0, errors.New("to_line comes before from_line")
	case len(a.Search) > maxSearch:
		return 0, fmt.Errorf("search has at most %d bytes", maxSearch)
	case a.MaxBytes == 0:
		return DefaultFetchBytes, nil
	}
	return min(a.MaxBytes, MaxFetchBytes), nil
}

// fetchBytes returns content from an offset: text where it is text, and base64
// otherwise, of which a little less fits.
func (s *Store) fetchBytes(ctx context.Context, args FetchArgs, limit int, res *FetchResult) error {
	id, err := s.caller(ctx)
	if err != nil {
		return err
	}
	rec, err := s.find(ctx, id, args.Ref)
	if err != nil {
		return err
	}
	res.MIME, res.SizeBytes = rec.Info.MIME, rec.Info.SizeBytes
	if args.Offset > res.SizeBytes {
		return refusal(ErrRange, "offset %d is outside of the content, which has %d bytes", args.Offset, res.SizeBytes)
	}
	// A rune may begin before the section, and the last may end behind it.
	from := max(args.Offset-utf8.UTFMax+1, 0)
	r, err := s.section(ctx, rec, Section{Offset: from, Length: args.Offset - from + int64(limit) + utf8.UTFMax})
	if err != nil {
		return err
	}
	defer r.Close()
	window, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	whole := from+int64(len(window)) == r.Info.SizeBytes
	start, end := cutRunes(window, int(args.Offset-from), limit)
	if text := window[start:end]; isText(text) && (end > start || end == len(window)) {
		res.Content = string(text)
	} else {
		start = int(args.Offset - from)
		end = wholeRune(window, start, min(start+max(limit/4, 1)*3, len(window)))
		res.Content, res.Encoding = base64.StdEncoding.EncodeToString(window[start:end]), "base64"
	}
	res.Offset = from + int64(start)
	if res.Truncated = !whole || end < len(window); res.Truncated {
		res.NextOffset = from + int64(end)
	}
	return nil
}

// cutRunes returns the part of a window that begins with the first rune at or
// behind start and has at most limit bytes of whole runes.
func cutRunes(window []byte, start, limit int) (from, to int) {
	from = start
	for from < len(window) && from < start+utf8.UTFMax && inRune(window, from) {
		from++
	}
	to = min(from+limit, len(window))
	if to == len(window) {
		return from, trimRune(window, to)
	}
	for back := to; back > from && back > to-utf8.UTFMax; back-- {
		if !inRune(window, back) {
			return from, back
		}
	}
	return from, to
}

// inRune reports whether the byte at i continues a rune that began before it.
func inRune(b []byte, i int) bool {
	if i == 0 || utf8.RuneStart(b[i]) {
		return false
	}
	for start := i - 1; start >= 0 && start > i-utf8.UTFMax; start-- {
		if utf8.RuneStart(b[start]) {
			r, size := utf8.DecodeRune(b[start:])
			return start+size > i && (r != utf8.RuneError || size > 1)
		}
	}
	return false
}

// wholeRune returns an end near the one given that is inside of no rune, so that
// whoever goes on from there, and finds text, loses nothing.
func wholeRune(b []byte, start, end int) int {
	for back := end; back > start && back > end-utf8.UTFMax; back-- {
		if back == len(b) || !inRune(b, back) {
			return back
		}
	}
	for end < len(b) && inRune(b, end) {
		end++
	}
	return end
}

// trimRune returns where the last whole rune of b[:end] ends.
func trimRune(b []byte, end int) int {
	for back := end - 1; back >= 0 && back >= end-utf8.UTFMax+1; back-- {
		if utf8.RuneStart(b[back]) {
			if !utf8.FullRune(b[back:end]) {
				return back
			}
			return end
		}
	}
	return end
}

// isText reports whether content can be shown as it is.
func isText(b []byte) bool {
	for _, c := range b {
		if c == 0 {
			return false
		}
	}
	return utf8.Valid(b)
}
