package artifacts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/itchyny/gojq"
)

const (
	maxQueryText = 4096
	// maxFault bounds what is shown of a query's error, which may quote data.
	maxFault = 300
)

var errQuery = errors.New("artifacts: query failed")

func queryFault(format string, args ...any) error {
	return refusal(errQuery, format, args...)
}

// fetchQuery runs a jq expression on JSON, or on each of several JSON values that
// follow one another.
func (s *Store) fetchQuery(ctx context.Context, args FetchArgs, limit int, res *FetchResult) error {
	r, err := s.Open(ctx, args.Ref, Section{})
	if err != nil {
		return err
	}
	defer r.Close()
	res.MIME, res.SizeBytes = r.Info.MIME, r.Info.SizeBytes
	code, work, err := compileQuery(args.Query)
	if err != nil {
		return err
	}
	select {
	case s.queries <- struct{}{}:
		defer func() { <-s.queries }()
	case <-ctx.Done():
		return ctx.Err()
	}
	bounded, cancel := context.WithTimeout(ctx, s.opts.QueryTime)
	defer cancel()
	q := &querying{code: code, work: work, limit: limit, res: res}
	source := &budgetReader{in: r, budget: s.opts.MaxQueryBytes}
	values := json.NewDecoder(source)
	values.UseNumber()
	for !q.full {
		source.left = s.opts.MaxQueryBytes
		var v any
		switch err := values.Decode(&v); {
		case err == io.EOF:
			return q.done()
		case errors.Is(err, errBudget):
			return queryFault("a JSON value is larger than %d bytes, the most that a query runs on: use search or lines", s.opts.MaxQueryBytes)
		case isSyntax(err):
			return queryFault("the content is not JSON: %s", err)
		case err != nil:
			return err
		}
		if err := q.run(bounded, v); err != nil {
			return err
		}
	}
	return q.done()
}

func isSyntax(err error) bool {
	var syntax *json.SyntaxError
	return errors.As(err, &syntax) || errors.Is(err, io.ErrUnexpectedEOF)
}

// budgetReader refuses to read more than a budget until it is filled again.
type budgetReader struct {
	in           io.Reader
	budget, left int64
}

var errBudget = errors.New("artifacts: more than the budget")

func (b *budgetReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errBudget
	}
	n, err := b.in.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// querying is a query that runs, and its answer so far.
type querying struct {
	code  *gojq.Code
	work  *work
	limit int
	res   *FetchResult
	out   bytes.Buffer
	full  bool
}

func (q *querying) done() error {
	q.res.Content, q.res.Truncated = strings.TrimSuffix(q.out.String(), "\n"), q.full
	return nil
}

// run appends the results for one value, one on each line.
func (q *querying) run(ctx context.Context, v any) (err error) {
	defer refusePanic(&err)
	q.work.begin(v)
	results := q.code.RunWithContext(ctx, v)
	for {
		v, ok := results.Next()
		if !ok {
			return nil
		}
		if err, ok := v.(error); ok {
			return resultFault(err)
		}
		if err := q.work.add(v); err != nil {
			return resultFault(err)
		}
		text, err := gojq.Marshal(v)
		if err != nil {
			return queryFault("%s", err)
		}
		if !q.append(text) {
			return nil
		}
	}
}

// append reports false when the answer is full. Of a result that does not fit
// at all, it has the beginning.
func (q *querying) append(text []byte) bool {
	if q.out.Len()+len(text) > q.limit {
		if q.out.Len() == 0 {
			q.out.Write(text[:trimRune(text, q.limit)])
			q.res.Results++
		}
		q.full = true
		return false
	}
	q.out.Write(text)
	q.out.WriteByte('\n')
	q.res.Results++
	return true
}

// refusePanic is deferred around the library, so that no query which it cannot
// take does more than fail.
func refusePanic(err *error) {
	if recover() != nil {
		*err = queryFault("the query cannot be run")
	}
}

func resultFault(err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return queryFault("the query took too long: narrow it")
	case errors.Is(err, context.Canceled):
		return err
	}
	text := err.Error()
	if len(text) > maxFault {
		text = text[:trimRune([]byte(text), maxFault)] + "…"
	}
	return queryFault("the query failed: %s", strings.ToValidUTF8(text, "\uFFFD"))
}

// compileQuery compiles an expression with guards around all that could take much
// memory or time in one step.
func compileQuery(text string) (code *gojq.Code, w *work, err error) {
	defer refusePanic(&err)
	if len(text) > maxQueryText {
		return nil, nil, queryFault("a query has at most %d bytes", maxQueryText)
	}
	parsed, err := gojq.Parse(text)
	if err != nil {
		return nil, nil, queryFault("the query is not a jq expression: %s", err)
	}
	guarded, err := guardQuery(parsed)
	if err != nil {
		return nil, nil, queryFault("%s", err)
	}
	w = &work{}
	code, err = gojq.Compile(guarded, w.functions()...)
	if err != nil {
		return nil, nil, queryFault("the query is not a jq expression: %s", err)
	}
	return code, w, nil
}
