package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// app is what every command shares: where it reads and writes, and the flags
// of the root command.
type app struct {
	in          io.Reader
	out, errOut io.Writer

	logLevel, logFormat string

	patience time.Duration // with sources; sourceLimit when 0
}

// run executes one command line and returns the exit status.
func run(args []string, a *app) int {
	root := a.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(context.Background())
	if err != nil {
		a.explain(err)
		a.state(cmd, err)
	}
	return exitStatus(err)
}

func (a *app) root() *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:   "toolcrib",
		Short: "Every tool an agent may use, through one guarded door",
		Long: `Toolcrib gives an agent every tool it may use, wherever the tool lives.

Exit status: 0 done, 1 failure, 2 the command line is wrong, 3 no such tool,
toolset, skill, flow or run, 4 invalid arguments, 5 the tool failed, 6 denied,
7 timed out or overloaded, 130 interrupted.`,
		Args:          cobra.ArbitraryArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if version {
				return a.printVersion()
			}
			return noCommand(cmd, args)
		},

		SuggestionsMinimumDistance: 2,
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.errOut)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w\nSee '%s --help'", err, cmd.CommandPath())}
	})
	root.Flags().BoolVarP(&version, "version", "v", false, "version for toolcrib")
	flags := root.PersistentFlags()
	flags.StringVar(&a.logLevel, "log-level", "", "debug, info, warn or error (default info for serve and worker, warn for mcp, else error)")
	flags.StringVar(&a.logFormat, "log-format", "text", "text or json")
	root.AddCommand(
		a.serveCommand(), a.mcpCommand(), a.listCommand(), a.searchCommand(), a.describeCommand(), a.callCommand(),
		a.artifactsCommand(), a.exportCommand(),
		a.sourcesCommand(), a.workerCommand(), a.workersCommand(), a.toolsetsCommand(), a.skillsCommand(), a.flowsCommand(), a.validateCommand(), a.configCommand(), a.versionCommand(), a.demoCommand(),
	)
	return root
}

// noCommand is reached without a command, or with one that does not exist.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), cmd.UsageString())
		return usageError{fmt.Errorf("expected a command")}
	}
	message := fmt.Sprintf("unknown command %q", args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		message += ", did you mean " + strings.Join(near, " or ") + "?"
	}
	return usageError{fmt.Errorf("%s\nSee '%s --help'", message, cmd.CommandPath())}
}

// arity accepts between least and most arguments.
func arity(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && len(args) <= most {
			return nil
		}
		expected := fmt.Sprint(most)
		if most > least+1 {
			expected = fmt.Sprintf("%d to %d", least, most)
		} else if least < most {
			expected = fmt.Sprintf("%d or %d", least, most)
		}
		noun := "arguments"
		if least == 1 && most == 1 {
			noun = "argument"
		}
		return usageError{fmt.Errorf("expected %s %s, found %d\nUsage: %s", expected, noun, len(args), cmd.UseLine())}
	}
}

// logger returns the log on stderr, at the level of the flag or at usual.
func (a *app) logger(usual slog.Level) (*slog.Logger, error) {
	level := usual
	if a.logLevel != "" {
		if err := level.UnmarshalText([]byte(a.logLevel)); err != nil {
			return nil, usageError{fmt.Errorf("--log-level %q: expected debug, info, warn or error", a.logLevel)}
		}
	}
	opts := &slog.HandlerOptions{Level: level}
	switch a.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(a.errOut, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(a.errOut, opts)), nil
	}
	return nil, usageError{fmt.Errorf("--log-format %q: expected text or json", a.logFormat)}
}
