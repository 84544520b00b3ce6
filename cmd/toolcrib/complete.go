package main

import (
	"cmp"
	"context"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolcrib/toolcrib/api"
)

// completionLimit bounds how long a shell waits for names.
const completionLimit = 2 * time.Second

// completeTool completes the name of a tool from a running server. It never
// opens a configuration, which would start programs at the press of a key.
func (a *app) completeTool(t *target) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		ctx, cancel := context.WithTimeout(context.Background(), completionLimit)
		defer cancel()
		s, err := openServer(ctx, cmp.Or(t.server, os.Getenv(serverEnv), defaultServer), t, true)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list, err := listAll(s, api.ListFilter{})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []cobra.Completion
		for _, tool := range list.Tools {
			if strings.HasPrefix(tool.Name, prefix) {
				names = append(names, cobra.CompletionWithDesc(tool.Name, firstLine(tool.Description, descriptionWidth)))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
