package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/toolcrib/toolcrib/gateway"
)

func (a *app) validateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate FILE",
		Short: "Check a configuration without starting it",
		Long: `Check a configuration without starting it.

What would keep it from starting here is found: what is wrong in the file, a
secret that is not there, a feature that this version does not have. Sources are
not asked. Each fault is one line on stderr: file:line:column, what is wrong, and what was
expected. The exit status is 0 when there is none, else 1.`,
		Args: arity(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			cfg, err := gateway.Load(args[0])
			if err != nil {
				return err
			}
			if err := cfg.Validate(); err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.out, "%s: valid\n", args[0])
			return err
		},
		ValidArgsFunction: cobra.FixedCompletions([]string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt),
	}
	return cmd
}
