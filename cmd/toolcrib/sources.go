package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/gateway"
)

// errorWidth bounds what is shown of an error of a source, in characters.
const errorWidth = 400

func (a *app) sourcesCommand() *cobra.Command {
	var (
		t target
		o output
	)
	cmd := &cobra.Command{
		Use:   "sources",
		Short: "Show where tools come from, and how those sources are doing",
		Long: `Show the state of each source of tools, how many of its tools the caller sees, and of how many
where that are not all, and which of its tools were refused and why.` + targetHelp,
		Args: arity(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ask(cmd.Context(), &t, &o, "", func(s *session) error { return a.sources(s, &o) })
		},
	}
	t.addFlags(cmd)
	o.addFlag(cmd)
	return cmd
}

func (a *app) sources(s *session, o *output) error {
	resp, err := s.Sources(s.ctx)
	if err != nil {
		return s.failure(err)
	}
	if o.json() {
		return writeJSON(a.out, resp)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tKIND\tSTATE\tTOOLS\tREFUSED\tERROR")
	for _, row := range resp.Sources {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\n", row.Name, row.Kind, row.State, countText(&row), len(row.Refused),
			orDash(firstLine(row.Error, errorWidth)))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for i := range resp.Sources {
		a.warnOfRefused(&resp.Sources[i])
	}
	a.warnOfKeys(resp)
	return nil
}

// countText is how many tools of a source the caller sees, and of how many, where
// it may know of others.
func countText(row *api.Source) string {
	if row.Total <= row.Tools {
		return fmt.Sprint(row.Tools)
	}
	return fmt.Sprintf("%d of %d", row.Tools, row.Total)
}

// warnOfRefused says on stderr which tools of a source are not in the catalog, and
// why.
func (a *app) warnOfRefused(row *api.Source) {
	for _, r := range row.Refused {
		fmt.Fprintf(a.errOut, "toolcrib: source %s: tool %q refused: %s\n", row.Name, r.Name, firstLine(r.Reason, errorWidth))
	}
}

// warnOfKeys says on stderr which sources wait for authorization, and which keys
// of the configuration name tools that are not there.
func (a *app) warnOfKeys(resp *api.SourcesResponse) {
	for _, row := range resp.Sources {
		if row.AuthorizationURL != "" {
			fmt.Fprintf(a.errOut, "toolcrib: source %s waits for authorization: open %s\n", row.Name, row.AuthorizationURL)
		}
		for _, key := range row.Unmatched {
			fmt.Fprintf(a.errOut, "toolcrib: source %s: %s matches nothing\n", row.Name, printable(key))
		}
	}
	for _, name := range resp.UnmatchedEntries {
		fmt.Fprintf(a.errOut, "toolcrib: tools.entries: no tool is named %q\n", name)
	}
}

// warnOfSources says on stderr which sources are not there, so that a tool
// that is missing explains itself. A server that does not tell is no failure.
func (a *app) warnOfSources(s *session) {
	resp, err := s.Sources(s.ctx)
	if err != nil {
		return
	}
	for _, row := range resp.Sources {
		if row.State != gateway.SourceReady && !s.late[row.Name] {
			a.warnOfState(&row)
		}
		a.warnOfRefused(&row)
	}
}

// warnOfState says on stderr in which state a source is, and why if it is known.
func (a *app) warnOfState(row *api.Source) {
	why := firstLine(row.Error, errorWidth)
	if why != "" {
		why = ": " + why
	}
	fmt.Fprintf(a.errOut, "toolcrib: source %s is %s%s\n", row.Name, row.State, why)
}
