package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/toolcrib/toolcrib/gateway"
)

func (a *app) validateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate [FILE]",
		Short: "Check a configuration without starting it",
		Long: `Check a configuration, ./` + defaultConfig + ` unless another file is named, without
starting it.

What would keep it from starting here is found: what is wrong in the file, a
secret that is not there, a feature that this version does not have, a fault of
a document that is a file. Sources are not asked. Each fault is one line on
stderr: file:line:column, what is wrong, and what was expected. What is most
likely a mistake, such as an entry of a tool that no source has, is a line that
begins with "warning: ". The exit status is 0 when there is no fault, else 1.`,
		Args: arity(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			file := defaultConfig
			if len(args) == 1 {
				file = args[0]
			}
			cfg, err := gateway.Load(file)
			if err != nil {
				return err
			}
			warnings, err := cfg.Examine()
			for _, w := range warnings {
				fmt.Fprintln(a.errOut, "warning: "+printable(w.Error()))
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.out, "%s: valid\n", file)
			return err
		},
		ValidArgsFunction: cobra.FixedCompletions([]string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt),
	}
	return cmd
}
