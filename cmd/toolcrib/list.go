package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/tools"
)

// descriptionWidth bounds the last column of a table, in characters.
const descriptionWidth = 72

// toolList is what list -o json prints.
type toolList struct {
	Tools      []api.Summary  `json:"tools"`
	TotalRows  int            `json:"total_rows"`
	Aggregates api.Aggregates `json:"aggregates"`
}

func (a *app) listCommand() *cobra.Command {
	var (
		t      target
		o      output
		filter api.ListFilter
	)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the tools",
		Long:  "List the tools that the caller may use." + targetHelp,
		Args:  arity(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkLoading(filter.Loading); err != nil {
				return err
			}
			return a.ask(cmd.Context(), &t, &o, "", func(s *session) error { return a.list(s, &o, filter) })
		},
	}
	t.addFlags(cmd)
	o.addFlag(cmd)
	flags := cmd.Flags()
	flags.StringVar(&filter.Search, "search", "", "words that must occur in name, title, description or tags")
	flags.StringSliceVar(&filter.Tags, "tag", nil, "tag that a tool must have; may be repeated")
	flags.StringSliceVar(&filter.Transports, "transport", nil, "transport, such as mcp; may be repeated")
	flags.StringSliceVar(&filter.Sources, "source", nil, "source of tools, such as notes or workers/NAME; may be repeated")
	flags.StringSliceVar(&filter.Loading, "loading", nil, "always or deferred")
	return cmd
}

func checkLoading(modes []string) error {
	for _, mode := range modes {
		if mode != string(tools.LoadingAlways) && mode != string(tools.LoadingDeferred) {
			return usageError{fmt.Errorf("--loading %q: expected %s or %s", mode, tools.LoadingAlways, tools.LoadingDeferred)}
		}
	}
	return nil
}

func (a *app) list(s *session, o *output, filter api.ListFilter) error {
	list, err := listAll(s, filter)
	if err != nil {
		return s.failure(err)
	}
	a.warnOfSources(s)
	a.hintOfSources(s, filter.Sources, list.Tools, nil)
	if o.json() {
		return writeJSON(a.out, list)
	}
	return a.printTools(list)
}

// listAll reads every page.
func listAll(s *session, filter api.ListFilter) (*toolList, error) {
	list := &toolList{Tools: []api.Summary{}}
	for page := 1; ; page++ {
		resp, err := s.List(s.ctx, api.ListRequest{Filter: filter, Page: page, PageSize: api.MaxPageSize})
		if err != nil {
			return nil, err
		}
		list.Tools = append(list.Tools, resp.Tools...)
		list.TotalRows, list.Aggregates = resp.TotalRows, resp.Aggregates
		if page >= resp.PageCount {
			return list, nil
		}
	}
}

func (a *app) printTools(list *toolList) error {
	if len(list.Tools) == 0 {
		fmt.Fprintln(a.errOut, "toolcrib: no tools")
		return nil
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tTRANSPORT\tSOURCE\tLOADING\tDESCRIPTION")
	for _, t := range list.Tools {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n",
			t.Name, orDash(t.Transport), orDash(t.Origin()), t.Loading, firstLine(t.Description, descriptionWidth))
	}
	return w.Flush()
}
