package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/toolcrib/toolcrib/api"
)

// maxQueryLine bounds one line of a batch, in bytes.
const maxQueryLine = 1 << 20

// searchFlags are the flags of search.
type searchFlags struct {
	target
	output
	request api.SearchRequest
	batch   string
}

func (a *app) searchCommand() *cobra.Command {
	var f searchFlags
	cmd := &cobra.Command{
		Use:   "search [QUERY]",
		Short: "Find tools by what they do",
		Long: `Find tools by what they do, as a model does with tool_search. The best come first;
one that is no more than a guess is marked weak. Without a query, --source or
--tag lists tools by name.

--batch reads JSON Lines with a field "q" from a file, or from stdin for -, and
prints for each a line with the names that were found: {"q":"…","got":["…"]}.` + targetHelp,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.request.Query = strings.Join(args, " ")
			if err := f.check(); err != nil {
				return err
			}
			return a.ask(cmd.Context(), &f.target, &f.output, "", func(s *session) error { return a.search(s, &f) })
		},
	}
	f.addFlags(cmd)
	f.addFlag(cmd)
	flags := cmd.Flags()
	flags.IntVar(&f.request.Limit, "limit", api.DefaultSearchLimit, fmt.Sprintf("how many to show, at most %d", api.MaxSearchLimit))
	flags.StringVar(&f.request.Source, "source", "", "the only source to look at")
	flags.StringSliceVar(&f.request.Tags, "tag", nil, "tag that a tool must have; may be repeated")
	flags.StringVar(&f.batch, "batch", "", "file of queries, or - for stdin")
	_ = cmd.MarkFlagFilename("batch", "jsonl")
	return cmd
}

func (f *searchFlags) check() error {
	r := &f.request
	switch {
	case r.Limit < 1 || r.Limit > api.MaxSearchLimit:
		return usageError{fmt.Errorf("--limit %d: expected 1 to %d", r.Limit, api.MaxSearchLimit)}
	case f.batch != "" && r.Query != "":
		return usageError{errors.New("a query and --batch exclude each other")}
	case f.batch == "" && r.Query == "" && r.Source == "" && len(r.Tags) == 0:
		return usageError{errors.New("expected a query, or --source or --tag to list tools, or --batch")}
	}
	return nil
}

func (a *app) search(s *session, f *searchFlags) error {
	if f.batch != "" {
		return a.searchBatch(s, f)
	}
	found, err := s.Search(s.ctx, f.request)
	if err != nil {
		return s.failure(err)
	}
	a.warnOfSources(s)
	if source := f.request.Source; source != "" && len(found.Tools) == 0 && !searches(s, source) {
		a.hintOfSources(s, []string{source}, nil, func(name string) bool { return searches(s, name) })
	}
	if f.json() {
		return writeJSON(a.out, found)
	}
	return a.printFound(found)
}

// searches reports whether a search finds tools in a source.
func searches(s *session, source string) bool {
	found, err := s.Search(s.ctx, api.SearchRequest{Source: source, Limit: 1})
	return err == nil && len(found.Tools) > 0
}

func (a *app) printFound(found *api.SearchResponse) error {
	for _, r := range found.Repairs {
		fmt.Fprintf(a.errOut, "toolcrib: %q is read as %q\n", printable(r.From), printable(r.To))
	}
	if found.Note != "" {
		fmt.Fprintln(a.errOut, "toolcrib: "+printable(found.Note))
	}
	if len(found.Tools) == 0 {
		fmt.Fprintln(a.errOut, "toolcrib: nothing was found")
		return nil
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSOURCE\tMATCH\tDESCRIPTION")
	for _, t := range found.Tools {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", t.Name, orDash(t.Source), matchOf(&t), firstLine(t.Description, descriptionWidth))
	}
	return w.Flush()
}

// matchOf says how well a tool matches.
func matchOf(t *api.SearchHit) string {
	switch {
	case t.Exact:
		return "name"
	case t.Weak:
		return "weak"
	}
	return fmt.Sprintf("%.2f", t.Score)
}

// batchAnswer is a line of the answer to a batch.
type batchAnswer struct {
	Query string   `json:"q"`
	Got   []string `json:"got"`
}

func (a *app) searchBatch(s *session, f *searchFlags) error {
	in, shut, err := a.batchFile(f.batch)
	if err != nil {
		return err
	}
	defer shut()
	out := bufio.NewWriter(a.out)
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxQueryLine)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		answer, err := a.searchLine(s, f.request, lines.Bytes())
		if err != nil {
			return answeredError{errors.Join(out.Flush(), fmt.Errorf("line %d: %w", n, err))}
		}
		if err := writeLine(out, answer); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return answeredError{errors.Join(out.Flush(), fmt.Errorf("the queries cannot be read: %w", err))}
	}
	return out.Flush()
}

func (a *app) batchFile(name string) (io.Reader, func(), error) {
	if name == "-" {
		return a.in, func() {}, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, nil, usageError{fmt.Errorf("--batch: %w", err)}
	}
	return file, func() { file.Close() }, nil
}

// searchLine answers one line of a batch.
func (a *app) searchLine(s *session, req api.SearchRequest, line []byte) (*batchAnswer, error) {
	var asked struct {
		Query *string `json:"q"`
	}
	if err := json.Unmarshal(line, &asked); err != nil || asked.Query == nil {
		return nil, usageError{errors.New(`expected a JSON object with a text "q"`)}
	}
	answer := &batchAnswer{Query: *asked.Query, Got: []string{}}
	if req.Query = strings.TrimSpace(*asked.Query); req.Query == "" {
		return answer, nil
	}
	found, err := s.Search(s.ctx, req)
	if err != nil {
		return nil, s.failure(err)
	}
	for _, t := range found.Tools {
		answer.Got = append(answer.Got, t.Name)
	}
	return answer, nil
}

func writeLine(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
