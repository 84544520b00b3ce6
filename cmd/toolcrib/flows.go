package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolcrib/toolcrib/api"
)

func (a *app) flowsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "flows",
		Short: "List, draw and run flows, and steer their runs",
		Long: `List flows, draw one, run it, and look at its runs. A flow is a graph of calls, and a
tool. A run belongs to its user; it can be cancelled, and one that was interrupted
or failed can go on where that was.`,
		Args: cobra.ArbitraryArgs,
		RunE: noCommand,
	}
	cmd.AddCommand(a.flowsList(), a.flowsGraph(), a.runCommand("flow", "  toolcrib flows run library_reserve '{\"title\":\"Emma\"}'", flowNames),
		a.flowsRuns(), a.flowsCancel(), a.flowsResume())
	return cmd
}

func (a *app) flowsList() *cobra.Command {
	return a.compositionList("flow", "NODES", flowNames, func(list []api.Composition) any { return &api.FlowsResponse{Flows: list} })
}

func (a *app) flowsGraph() *cobra.Command {
	var (
		t target
		o output
	)
	cmd := &cobra.Command{
		Use:     "graph NAME",
		Short:   "Draw a flow in the language of Mermaid",
		Long:    "Print a flow as a flowchart of Mermaid." + targetHelp,
		Example: "  toolcrib flows graph library_reserve > reserve.mmd",
		Args:    arity(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.ask(cmd.Context(), &t, &o, args[0], func(s *session) error { return a.graph(s, &o, args[0]) })
		},
		ValidArgsFunction: a.completeName(&t, flowNames),
	}
	t.addFlags(cmd)
	o.addFlag(cmd)
	return cmd
}

func (a *app) graph(s *session, o *output, name string) error {
	graph, err := s.FlowGraph(s.ctx, name)
	if err != nil {
		if exitStatus(err) == exitToolNotFound {
			a.warnOfSources(s)
		}
		return s.failure(err)
	}
	if o.json() {
		return writeJSON(a.out, graph)
	}
	_, err = io.WriteString(a.out, printable(graph.Mermaid))
	return err
}

func (a *app) flowsRuns() *cobra.Command {
	var (
		t   target
		o   output
		req api.RunsRequest
	)
	cmd := &cobra.Command{
		Use:   "runs [RUN]",
		Short: "List the runs of flows, or show one",
		Long: `List the runs of flows of the caller, the latest first; or, with the id of a run, what
became of its nodes. Runs are kept where the configuration names data_dir.` + targetHelp,
		Args: arity(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if req.Limit < 0 {
				return usageError{fmt.Errorf("--limit %d: expected a number that is not negative", req.Limit)}
			}
			return a.ask(cmd.Context(), &t, &o, noTool, func(s *session) error {
				a.warnOfPassing(s)
				if len(args) == 1 {
					return a.showRun(s, &o, args[0])
				}
				return a.listRuns(s, &o, req)
			})
		},
		ValidArgsFunction: a.completeRun(&t),
	}
	t.addFlags(cmd)
	o.addFlag(cmd)
	cmd.Flags().StringVar(&req.Flow, "flow", "", "show the runs of this flow alone")
	cmd.Flags().IntVar(&req.Limit, "limit", 0, "how many to show (default 50)")
	return cmd
}

// warnOfPassing says on stderr where there can be no runs of other commands.
func (a *app) warnOfPassing(s *session) {
	if s.passing {
		fmt.Fprintln(a.errOut, "toolcrib: "+nothingKept)
	}
}

func (a *app) listRuns(s *session, o *output, req api.RunsRequest) error {
	resp, err := s.FlowRuns(s.ctx, req)
	if err != nil {
		return s.failure(err)
	}
	if o.json() {
		return writeJSON(a.out, resp)
	}
	if len(resp.Runs) == 0 {
		fmt.Fprintln(a.errOut, "toolcrib: no runs")
		return nil
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RUN\tFLOW\tSTATUS\tBEGAN\tTOOK\tERROR")
	for _, run := range resp.Runs {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", run.ID, run.Flow, run.Status, run.Began.Local().Format(time.DateTime), took(&run),
			orDash(firstLine(run.Error, descriptionWidth)))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if resp.More {
		fmt.Fprintln(a.errOut, "toolcrib: there are older runs; see --limit")
	}
	return nil
}

// took is how long a run took, as far as that is known.
func took(run *api.FlowRun) string {
	if run.Ended == nil {
		return "-"
	}
	return run.Ended.Sub(run.Began).Round(time.Millisecond).String()
}

func (a *app) showRun(s *session, o *output, id string) error {
	run, err := s.FlowRun(s.ctx, id)
	if err != nil {
		return s.failure(err)
	}
	if o.json() {
		return writeJSON(a.out, run)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "run\t%s\nflow\t%s\nstatus\t%s\nbegan\t%s\ntook\t%s\ninputs\t%s\n", run.ID, run.Flow, run.Status,
		run.Began.Local().Format(time.DateTime), took(run), orDash(firstLine(string(run.Inputs), descriptionWidth)))
	if run.Parent != "" {
		fmt.Fprintf(w, "part of\t%s\n", run.Parent)
	}
	if run.Error != "" {
		fmt.Fprintf(w, "error\t%s\n", firstLine(run.Error, errorWidth))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	w = tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nNODE\tSTATUS\tRESULT")
	for _, n := range run.Nodes {
		result := n.Error
		if result == "" {
			result = string(n.Value)
		}
		if n.OutcomeUnknown {
			result = "(outcome unknown) " + result
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", printable(n.Node), n.Status, orDash(firstLine(result, descriptionWidth)))
	}
	return w.Flush()
}

func (a *app) flowsCancel() *cobra.Command {
	var (
		t target
		o output
	)
	cmd := &cobra.Command{
		Use:   "cancel RUN",
		Short: "End a run of a flow",
		Long: `End a run of a flow. The nodes that run are cancelled. A run in another process ends
within seconds; one that ended already stays as it is.` + targetHelp,
		Args: arity(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.ask(cmd.Context(), &t, &o, noTool, func(s *session) error {
				a.warnOfPassing(s)
				done, err := s.CancelRun(s.ctx, args[0])
				if err != nil {
					return s.failure(err)
				}
				if o.json() {
					return writeJSON(a.out, done)
				}
				return nil
			})
		},
		ValidArgsFunction: a.completeRun(&t),
	}
	t.addFlags(cmd)
	o.addFlag(cmd)
	return cmd
}

func (a *app) flowsResume() *cobra.Command {
	var f callFlags
	cmd := &cobra.Command{
		Use:   "resume RUN",
		Short: "Go on with a run that was interrupted, failed or was cancelled",
		Long: `Go on with a run of a flow where it ended. Nodes that are done are not run again. A
node that may have had an effect nobody knows of is not either: the run fails, and
says that its outcome is unknown.` + targetHelp,
		Args: arity(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return a.callIf(cmd.Context(), &f, api.CallRequest{Resume: args[0], Bounded: f.bounded, Notes: a.note}, func(s *session, req *api.CallRequest) error {
				a.warnOfPassing(s)
				run, err := s.FlowRun(s.ctx, req.Resume)
				if err == nil {
					req.Name = run.Flow
				}
				return err
			})
		},
		ValidArgsFunction: a.completeRun(&f.target),
	}
	f.add(cmd)
	return cmd
}

// completeRun completes the id of a run from a running server.
func (a *app) completeRun(t *target) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var found []cobra.Completion
		if len(args) > 0 {
			return found, cobra.ShellCompDirectiveNoFileComp
		}
		a.offer(t, func(s *session) {
			resp, err := s.FlowRuns(s.ctx, api.RunsRequest{})
			if err != nil {
				return
			}
			for _, run := range resp.Runs {
				if strings.HasPrefix(run.ID, prefix) {
					found = append(found, cobra.CompletionWithDesc(run.ID, run.Flow+" "+run.Status))
				}
			}
		})
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}
