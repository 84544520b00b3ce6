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
	"github.com/toolcrib/toolcrib/tools"
)

// compositions is what a catalog knows of skills and flows.
type compositions interface {
	Skills(context.Context) (*api.SkillsResponse, error)
	PlanSkill(context.Context, api.PlanRequest) (*api.PlanResponse, error)
	Flows(context.Context) (*api.FlowsResponse, error)
	FlowGraph(ctx context.Context, name string) (*api.Graph, error)
	FlowRuns(context.Context, api.RunsRequest) (*api.RunsResponse, error)
	FlowRun(ctx context.Context, id string) (*api.FlowRun, error)
	CancelRun(ctx context.Context, id string) (*api.Canceled, error)
}

func (a *app) skillsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "skills",
		Short: "List, plan and run skills",
		Long:  "List skills, show what one would do, and run it. A skill is a workflow of steps, and a tool.",
		Args:  cobra.ArbitraryArgs,
		RunE:  noCommand,
	}
	cmd.AddCommand(a.skillsList(), a.skillsPlan(), a.runCommand("skill", "  toolcrib skills run library_borrow '{\"title\":\"Emma\"}'", skillNames))
	return cmd
}

// names lists the skills or the flows of a catalog.
type names func(*session) ([]api.Composition, error)

func skillNames(s *session) ([]api.Composition, error) {
	resp, err := s.Skills(s.ctx)
	if err != nil {
		return nil, err
	}
	return resp.Skills, nil
}

func flowNames(s *session) ([]api.Composition, error) {
	resp, err := s.Flows(s.ctx)
	if err != nil {
		return nil, err
	}
	return resp.Flows, nil
}

func (a *app) skillsList() *cobra.Command {
	return a.compositionList("skill", "STEPS", skillNames, func(list []api.Composition) any { return &api.SkillsResponse{Skills: list} })
}

// compositionList is the command that lists skills or flows.
func (a *app) compositionList(kind, column string, all names, answer func([]api.Composition) any) *cobra.Command {
	var (
		t target
		o output
	)
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the " + kind + "s",
		Long:  "List the " + kind + "s of the configuration, and why one cannot run." + targetHelp,
		Args:  arity(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ask(cmd.Context(), &t, &o, "", func(s *session) error {
				list, err := all(s)
				if err != nil {
					return s.failure(err)
				}
				if o.json() {
					return writeJSON(a.out, answer(list))
				}
				return a.printCompositions(kind, column, list)
			})
		},
	}
	t.addFlags(cmd)
	o.addFlag(cmd)
	return cmd
}

func (a *app) printCompositions(kind, column string, list []api.Composition) error {
	if len(list) == 0 {
		fmt.Fprintf(a.errOut, "toolcrib: no %ss\n", kind)
		return nil
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "NAME\t%s\tSTATE\tDESCRIPTION\n", column)
	for _, c := range list {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", c.Name, c.Steps, c.State, orDash(firstLine(cmp.Or(c.Reason, c.Description), descriptionWidth)))
	}
	return w.Flush()
}

func (a *app) skillsPlan() *cobra.Command {
	var (
		t target
		o output
	)
	cmd := &cobra.Command{
		Use:   "plan NAME [JSON | @FILE | -]",
		Short: "Show what a skill would do, and do nothing",
		Long: `Show the calls that a skill would make, in order. With arguments, as 'toolcrib call'
takes them, what depends on those alone is filled in; what depends on the result of
a step before stands there as its expression.` + targetHelp,
		Example: "  toolcrib skills plan library_borrow '{\"title\":\"Emma\"}'",
		Args:    arity(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			req := api.PlanRequest{Name: args[0]}
			if len(args) == 2 {
				raw, err := readArguments(args[1], a.in)
				if err != nil {
					return err
				}
				req.Arguments = raw
			}
			return a.ask(cmd.Context(), &t, &o, req.Name, func(s *session) error { return a.plan(s, &o, req) })
		},
		ValidArgsFunction: a.completeName(&t, skillNames),
	}
	t.addFlags(cmd)
	o.addFlag(cmd)
	return cmd
}

func (a *app) plan(s *session, o *output, req api.PlanRequest) error {
	plan, err := s.PlanSkill(s.ctx, req)
	if err != nil {
		if exitStatus(err) == exitToolNotFound {
			a.warnOfSources(s)
		}
		return s.failure(err)
	}
	if o.json() {
		return writeJSON(a.out, plan)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STEP\tTOOL\tINPUTS")
	for _, step := range plan.Steps {
		fmt.Fprintf(w, "%s\t%s\t%s\n", printable(step.ID), step.Tool, printable(string(step.Inputs)))
	}
	if len(plan.Output) > 0 {
		fmt.Fprintf(w, "\t\t→ %s\n", printable(string(plan.Output)))
	}
	return w.Flush()
}

// runCommand is the command that calls the tool which is a skill or a flow.
func (a *app) runCommand(kind, example string, all names) *cobra.Command {
	var f callFlags
	cmd := &cobra.Command{
		Use:   "run NAME [JSON | @FILE | -]",
		Short: "Run a " + kind,
		Long: `Run a ` + kind + `, which is what 'toolcrib call' does for its tool: the result stands on
stdout, and how far it is on stderr.` + targetHelp,
		Example: example,
		Args:    arity(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			req, err := f.request(a, args)
			if err != nil {
				return err
			}
			return a.callIf(cmd.Context(), &f, req, func(s *session, req *api.CallRequest) error { return mustBe(s, kind, req.Name, all) })
		},
		ValidArgsFunction: a.completeName(&f.target, all),
	}
	f.add(cmd)
	return cmd
}

// mustBe refuses the name of a tool that is no skill, or no flow.
func mustBe(s *session, kind, name string, all names) error {
	list, err := all(s)
	if err != nil {
		return err
	}
	message := fmt.Sprintf("there is no %s %q", kind, name)
	for _, c := range list {
		if c.Name != name {
			continue
		}
		if c.State == api.CompositionReady {
			return nil
		}
		message = fmt.Sprintf("the %s %q is %s", kind, name, c.State)
		if c.Reason != "" {
			message += ": " + c.Reason
		}
	}
	return &api.Error{Code: api.CodeToolNotFound, Message: message, Class: tools.ErrClassPermanent}
}

// completeName completes the name of a skill or flow from a running server.
func (a *app) completeName(t *target, all names) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		var found []cobra.Completion
		a.offer(t, func(s *session) {
			list, _ := all(s) // nothing is offered without a server
			for _, c := range list {
				if strings.HasPrefix(c.Name, prefix) {
					found = append(found, cobra.CompletionWithDesc(c.Name, firstLine(c.Description, descriptionWidth)))
				}
			}
		})
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// offer asks a running server for what a shell may complete.
func (a *app) offer(t *target, question func(*session)) {
	ctx, cancel := context.WithTimeout(context.Background(), completionLimit)
	defer cancel()
	if s, err := openServer(ctx, cmp.Or(t.server, os.Getenv(serverEnv), defaultServer), t, true); err == nil {
		question(s)
	}
}
