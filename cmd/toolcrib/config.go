package main

import (
	"bytes"

	"github.com/spf13/cobra"

	"github.com/toolcrib/toolcrib/gateway"
)

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Know the configuration file",
		Args:  arity(0, 0),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the configuration file",
		Args:  arity(0, 0),
		RunE: func(*cobra.Command, []string) error {
			_, err := a.out.Write(append(bytes.TrimSpace(gateway.Schema()), '\n'))
			return err
		},
	})
	return cmd
}
