package main

import (
	"fmt"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/registry"
)

func (a *app) deadLettersCommand() *cobra.Command {
	var (
		t     target
		o     output
		limit int
	)
	cmd := &cobra.Command{
		Use:   "dead-letters [NAME]",
		Short: "List the calls that workers could not serve",
		Long: `List what workers could not serve and what is kept of it on the stream server: calls that were
given to workers too often without an answer, and messages that cannot be read. NAME is a toolset,
without which those of all are listed, the oldest of each first. The arguments of the calls are not
shown.` + targetHelp,
		Args: arity(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 0 {
				return usageError{fmt.Errorf("--limit %d: expected a number that is not negative", limit)}
			}
			req := api.DeadLettersRequest{}
			if len(args) == 1 {
				req.Toolset = args[0]
			}
			return a.ask(cmd.Context(), &t, &o, "", func(s *session) error { return a.deadLetters(s, &o, req, limit) })
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 0, "how many to show (default all)")
	t.addCatalogFlags(cmd)
	o.addFlag(cmd)
	return cmd
}

func (a *app) deadLetters(s *session, o *output, req api.DeadLettersRequest, limit int) error {
	found := registry.DeadLetterPage{Letters: []registry.DeadLetter{}}
	for more := true; more; more = found.Next != "" && (limit == 0 || len(found.Letters) < limit) {
		req.After, req.Limit = found.Next, registry.MaxDeadLetters
		if limit > 0 {
			req.Limit = min(limit-len(found.Letters), req.Limit)
		}
		page, err := s.DeadLetters(s.ctx, req)
		if err != nil {
			a.warnOfUnreached(s)
			return s.failure(err)
		}
		found.Letters, found.Next = append(found.Letters, page.Letters...), page.Next
	}
	if o.json() {
		return writeJSON(a.out, found)
	}
	if len(found.Letters) == 0 {
		fmt.Fprintln(a.errOut, "toolcrib: no dead letters")
		return nil
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TOOLSET\tKEPT\tTOOL\tTENANT\tRUN\tCALL\tBYTES\tDELIVERED\tREASON")
	for _, d := range found.Letters {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", d.Toolset, d.Kept.Local().Format(time.DateTime), cell(d.Tool), cell(d.TenantID), cell(d.RunID),
			cell(d.ToolUseID), d.Bytes, timesText(d.Deliveries), firstLine(d.Reason, errorWidth))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if found.Next != "" {
		fmt.Fprintln(a.errOut, "toolcrib: there are more; see --limit")
	}
	return nil
}

// timesText is a count that may not be known.
func timesText(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}
