package main

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/registry"
)

func (a *app) workersCommand() *cobra.Command {
	var (
		t target
		o output
	)
	cmd := &cobra.Command{
		Use:   "workers",
		Short: "Show the workers and how they are",
		Long: `Show the toolsets that workers serve, how many of their tools are served and how many
were refused, and of each worker whether it is up, what it has to do, and its version. Workers
on standby are there too, with why they wait: they have other tools than those that serve.
"workers forget NAME" removes a toolset that no worker serves any more, and "workers dead-letters"
lists the calls that were given up.` + targetHelp,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return noCommand(cmd, args)
			}
			return a.ask(cmd.Context(), &t, &o, "", func(s *session) error { return a.workers(s, &o) })
		},
	}
	cmd.SuggestionsMinimumDistance = 2
	t.addCatalogFlags(cmd)
	o.addFlag(cmd)
	cmd.AddCommand(a.forgetWorkersCommand(), a.deadLettersCommand())
	return cmd
}

func (a *app) forgetWorkersCommand() *cobra.Command {
	var (
		t target
		o output
	)
	cmd := &cobra.Command{
		Use:   "forget NAME",
		Short: "Remove a toolset that no worker serves any more, with its tools",
		Long:  "Remove a toolset that no worker serves any more, with its tools." + targetHelp,
		Args:  arity(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.ask(cmd.Context(), &t, &o, "", func(s *session) error {
				resp, err := s.ForgetWorkers(s.ctx, args[0])
				if err != nil {
					return s.failure(err)
				}
				if o.json() {
					return writeJSON(a.out, resp)
				}
				fmt.Fprintln(a.out, "forgot", resp.Forgotten)
				return nil
			})
		},
	}
	t.addCatalogFlags(cmd)
	o.addFlag(cmd)
	return cmd
}

func (a *app) workers(s *session, o *output) error {
	resp, err := s.Workers(s.ctx)
	if err != nil {
		return s.failure(err)
	}
	unreached := len(resp.Toolsets) == 0 && a.warnOfUnreached(s)
	if o.json() {
		return writeJSON(a.out, resp)
	}
	if len(resp.Toolsets) == 0 {
		if !unreached {
			fmt.Fprintln(a.errOut, "toolcrib: no workers have served a toolset yet")
		}
		return nil
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TOOLSET\tTOOLS\tREFUSED\tWORKER\tHOST\tSTATE\tRUNNING\tQUEUED\tSERVED\tFAILED\tLAST ANSWER\tVERSION")
	for _, t := range resp.Toolsets {
		if len(t.Workers) == 0 {
			fmt.Fprintf(w, "%s\t%d\t%d\t-\t-\t%s\t-\t-\t-\t-\t%s\t-\n", t.Name, len(t.Tools), len(t.Refused), upOrDown(t.Up, false), sinceText(t.LastPong))
		}
		for _, one := range t.Workers {
			writeWorker(w, &t, &one)
		}
		for _, one := range t.Standby {
			fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\tstandby\t-\t-\t-\t-\t-\t%s\n", t.Name, len(t.Tools), len(t.Refused), orDash(printable(one.Instance)),
				orDash(printable(one.Host)), orDash(printable(one.Version)))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, t := range resp.Toolsets {
		a.remarkOn(&t)
	}
	return nil
}

// remarkOn says what the table of workers has no room for.
func (a *app) remarkOn(t *registry.ToolsetState) {
	if t.Changing {
		fmt.Fprintf(a.errOut, "toolcrib: toolset %s: workers with other tools take the place of those before, which end their calls; new calls wait\n", t.Name)
	}
	for _, r := range t.Refused {
		fmt.Fprintf(a.errOut, "toolcrib: toolset %s: tool %q refused: %s\n", t.Name, r.Name, firstLine(r.Reason, errorWidth))
	}
	for _, one := range t.Workers {
		if said := registry.ClockText(time.Duration(one.ClockMS) * time.Millisecond); said != "" {
			fmt.Fprintf(a.errOut, "toolcrib: toolset %s: the clock of worker %s is %s\n", t.Name, printable(one.Instance), said)
		}
	}
	for _, one := range t.Workers {
		if one.Up && one.Hindered != "" {
			fmt.Fprintf(a.errOut, "toolcrib: toolset %s: worker %s is kept from serving calls: %s\n", t.Name, printable(one.Instance), firstLine(one.Hindered, errorWidth))
		}
	}
	for _, one := range t.Standby {
		fmt.Fprintf(a.errOut, "toolcrib: toolset %s: worker %s is on standby: %s\n", t.Name, printable(one.Instance), firstLine(one.Reason, errorWidth))
	}
}

// warnOfUnreached says why workers cannot be listed, and reports whether there is
// a reason.
func (a *app) warnOfUnreached(s *session) bool {
	resp, err := s.Sources(s.ctx)
	if err != nil {
		return false
	}
	for i := range resp.Sources {
		row := &resp.Sources[i]
		if row.Kind == "workers" && row.State == string(gateway.SourceDown) {
			a.warnOfState(row)
			return true
		}
	}
	return false
}

func writeWorker(w *tabwriter.Writer, t *registry.ToolsetState, one *registry.WorkerState) {
	fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%s\t%d/%d\t%d/%d\t%d\t%d\t%s\t%s\n", t.Name, len(t.Tools), len(t.Refused), orDash(printable(one.Instance)), orDash(printable(one.Host)),
		stateOf(one), one.Running, one.Concurrency, one.Queued, one.Queue, one.Served, one.Failed, sinceText(one.LastPong),
		orDash(printable(one.Version)))
}

// stateOf is a worker's state in a word.
func stateOf(one *registry.WorkerState) string {
	if one.Up && !one.Draining && one.Hindered != "" {
		return "hindered"
	}
	return upOrDown(one.Up, one.Draining)
}

func upOrDown(up, draining bool) string {
	switch {
	case draining:
		return "draining"
	case up:
		return "up"
	}
	return "down"
}

// sinceText says how long ago something was.
func sinceText(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return time.Since(t).Round(100*time.Millisecond).String() + " ago"
}
