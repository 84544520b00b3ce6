package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/toolcrib/toolcrib/api"
)

func (a *app) describeCommand() *cobra.Command {
	var (
		t target
		o output
	)
	cmd := &cobra.Command{
		Use:   "describe NAME",
		Short: "Show everything about a tool",
		Long:  "Show a tool with its schemas, examples, policy and what is known about its effects." + targetHelp,
		Args:  arity(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.ask(cmd.Context(), &t, &o, args[0], func(s *session) error { return a.describe(s, &o, args[0]) })
		},
		ValidArgsFunction: a.completeTool(&t),
	}
	t.addFlags(cmd)
	o.addFlag(cmd)
	return cmd
}

func (a *app) describe(s *session, o *output, name string) error {
	d, err := s.Describe(s.ctx, name)
	if err != nil {
		if exitStatus(err) == exitToolNotFound {
			a.warnOfSources(s)
		}
		return s.failure(err)
	}
	if o.json() {
		return writeJSON(a.out, d)
	}
	return printDescription(a.out, d)
}

func printDescription(out io.Writer, d *api.Description) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range [][2]string{
		{"Name", d.Name},
		{"Title", d.Title},
		{"Version", d.Version},
		{"Transport", d.Transport},
		{"Source", d.Origin()},
		{"Source name", d.SourceName},
		{"Loading", d.LoadingMode},
		{"Tags", strings.Join(d.Tags, ", ")},
		{"Scopes", strings.Join(d.AuthScopes, ", ")},
		{"Effect", cmp.Or(d.SideEffect, "unclassified")},
		{"Known", knownFlags(&d.Safety)},
		{"Safety notes", d.SafetyNotes},
		{"Approval", approval(d)},
		{"Attempts", attempts(d)},
		{"Time limit", timeLimit(d.TimeoutMS)},
		{"Cost", d.CostHint},
	} {
		if row[1] != "" {
			fmt.Fprintf(w, "%s:\t%s\n", row[0], firstLine(row[1], 200))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if d.Description != "" {
		fmt.Fprintf(out, "\n%s\n", printable(strings.TrimSpace(d.Description)))
	}
	printSchema(out, "Arguments", d.ArgsSchema)
	printSchema(out, "Result", d.OutSchema)
	return printExamples(out, d.Examples)
}

// approval tells what keeps calls from running, if anything does.
func approval(d *api.Description) string {
	switch {
	case d.ApprovalPolicy == "auto":
		return ""
	case d.ApprovalReason != "":
		return d.ApprovalPolicy + ": " + d.ApprovalReason
	}
	return d.ApprovalPolicy
}

// attempts tells how often a call is tried in all.
func attempts(d *api.Description) string {
	switch {
	case d.RetryAttempts == 0:
		return "1"
	case d.RepeatsDelivered:
		return fmt.Sprintf("up to %d", 1+d.RetryAttempts)
	}
	return fmt.Sprintf("up to %d while it is not delivered, 1 once it is", 1+d.RetryAttempts)
}

// knownFlags lists the flags that somebody set.
func knownFlags(s *api.SafetyFlags) string {
	var parts []string
	for _, f := range []struct {
		name string
		flag *bool
	}{
		{"read-only", s.ReadOnly},
		{"destructive", s.Destructive},
		{"idempotent", s.Idempotent},
		{"open world", s.OpenWorld},
		{"filesystem", s.Filesystem},
		{"process", s.Process},
		{"spend", s.Spend},
		{"needs confirmation", s.NeedsConfirmation},
	} {
		switch {
		case f.flag == nil:
		case *f.flag:
			parts = append(parts, f.name)
		default:
			parts = append(parts, "not "+f.name)
		}
	}
	return strings.Join(parts, ", ")
}

func timeLimit(ms int) string {
	if ms == 0 {
		return "none"
	}
	return fmt.Sprintf("%d ms for each attempt", ms)
}

func printSchema(out io.Writer, title string, schema json.RawMessage) {
	if len(schema) == 0 {
		return
	}
	var buf bytes.Buffer
	if json.Indent(&buf, schema, "", "  ") != nil {
		return
	}
	fmt.Fprintf(out, "\n%s:\n%s\n", title, buf.String())
}

func printExamples(out io.Writer, examples []api.Example) error {
	for _, e := range examples {
		args, err := json.Marshal(e.Args)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "\nExample: %s\n%s\n", e.Description, args)
	}
	return nil
}
