package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/gateway"
)

func (a *app) toolsetsCommand() *cobra.Command {
	var (
		t target
		o output
	)
	cmd := &cobra.Command{
		Use:   "toolsets [NAME]",
		Short: "Show the toolsets, or the tools of one",
		Long: `Show the toolsets that the configuration makes of the catalog, with how many tools
the caller is listed in each; or, with a name, the tools of that one. "toolsets ls"
is the same as "toolsets".` + targetHelp,
		Args: arity(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] != "ls" {
				t.toolset = args[0]
				return a.ask(cmd.Context(), &t, &o, "", func(s *session) error { return a.list(s, &o, api.ListFilter{}) })
			}
			return a.ask(cmd.Context(), &t, &o, "", func(s *session) error { return a.toolsets(s, &o) })
		},
		ValidArgsFunction: completeToolset(&t),
	}
	t.addCatalogFlags(cmd)
	o.addFlag(cmd)
	return cmd
}

func (a *app) toolsets(s *session, o *output) error {
	resp, err := s.Toolsets(s.ctx)
	if err != nil {
		return s.failure(err)
	}
	a.warnOfSources(s)
	if o.json() {
		return writeJSON(a.out, resp)
	}
	if len(resp.Toolsets) == 0 {
		fmt.Fprintln(a.errOut, "toolcrib: no toolsets")
		return nil
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tTOOLS\tPATH\tDESCRIPTION")
	for _, t := range resp.Toolsets {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", t.Name, t.Tools, t.Path, orDash(firstLine(cmp.Or(t.Description, t.Title), descriptionWidth)))
	}
	return w.Flush()
}

// addToolsetFlag adds the flag that names a toolset to work in.
func addToolsetFlag(cmd *cobra.Command, t *target) {
	cmd.Flags().StringVar(&t.toolset, "toolset", "", "toolset to work in: other tools are not there")
	_ = cmd.RegisterFlagCompletionFunc("toolset", completeToolset(t))
}

// completeToolset completes the name of a toolset: from the configuration if the
// command opens one, which starts nothing, else from a running server.
func completeToolset(t *target) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var names []cobra.Completion
		for _, row := range knownToolsets(t) {
			if strings.HasPrefix(row.Name, prefix) {
				names = append(names, cobra.CompletionWithDesc(row.Name, firstLine(cmp.Or(row.Description, row.Title), descriptionWidth)))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func knownToolsets(t *target) []api.Toolset {
	server := cmp.Or(t.server, os.Getenv(serverEnv))
	if file := t.config; file != "" || server == "" && haveDefaultConfig() {
		return configuredToolsets(cmp.Or(file, defaultConfig))
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionLimit)
	defer cancel()
	s, err := openServer(ctx, cmp.Or(server, defaultServer), &target{}, true)
	if err != nil {
		return nil
	}
	resp, err := s.Toolsets(ctx)
	if err != nil {
		return nil
	}
	return resp.Toolsets
}

func configuredToolsets(file string) []api.Toolset {
	cfg, err := gateway.Load(file)
	if err != nil {
		return nil
	}
	var list []api.Toolset
	for _, c := range cfg.Toolsets {
		list = append(list, api.Toolset{Name: c.Name, Title: c.Title, Description: c.Description})
	}
	return list
}
