package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolcrib/toolcrib/adapter"
	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/tools"
)

// exportFlags are the flags of export.
type exportFlags struct {
	target
	output
	provider string
	options  adapter.Options
	filter   api.ListFilter
}

func (a *app) exportCommand() *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export --provider NAME",
		Short: "Write the tools in the form of a model's provider",
		Long: `Write the tools as the member "tools" of a request to a model: a JSON array on
stdout. What a schema loses on the way, and which tools the provider cannot be
told of at all, stands on stderr, a line each.` + targetHelp,
		Args: arity(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			shape, err := adapter.New(adapter.Provider(f.provider), &f.options)
			if err != nil {
				return usageError{fmt.Errorf("--provider %q: expected one of %s", f.provider, providerNames())}
			}
			return a.ask(cmd.Context(), &f.target, &f.output, "", func(s *session) error { return a.export(s, &f, shape) })
		},
	}
	f.addFlags(cmd)
	f.addFlag(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.provider, "provider", "", "openai, openai-responses, anthropic, gemini, bedrock or mcp")
	flags.BoolVar(&f.options.Strict, "strict", false, "in the strict form of OpenAI")
	flags.BoolVar(&f.options.NativeDeferral, "native-deferral", false, "leave deferred tools to the provider's own search, where it has one")
	flags.StringSliceVar(&f.filter.Tags, "tag", nil, "tag that a tool must have; may be repeated")
	flags.StringSliceVar(&f.filter.Sources, "source", nil, "source of tools; may be repeated")
	_ = cmd.RegisterFlagCompletionFunc("provider", cobra.FixedCompletions(strings.Split(providerNames(), ", "), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func providerNames() string {
	var names []string
	for _, p := range adapter.Providers() {
		names = append(names, string(p))
	}
	return strings.Join(names, ", ")
}

// exported is what export -o json prints.
type exported struct {
	Tools       json.RawMessage      `json:"tools"`
	Losses      []exportedLoss       `json:"losses"`
	Quarantined []adapterQuarantined `json:"quarantined"`
}

type exportedLoss struct {
	Tool    string `json:"tool"`
	Path    string `json:"path"`
	Feature string `json:"feature"`
	Reason  string `json:"reason"`
}

type adapterQuarantined struct {
	Tool   string `json:"tool"`
	Reason string `json:"reason"`
}

func (a *app) export(s *session, f *exportFlags, shape *adapter.Adapter) error {
	rows, err := listAll(s, f.filter)
	if err != nil {
		return s.failure(err)
	}
	list, err := describeAll(s, rows.Tools)
	if err != nil {
		return s.failure(err)
	}
	a.warnOfSources(s)
	a.hintOfSources(s, f.filter.Sources, rows.Tools, nil)
	declared := shape.Declare(list)
	if f.json() {
		out := exported{Tools: declared.JSON(), Losses: []exportedLoss{}, Quarantined: []adapterQuarantined{}}
		for _, l := range declared.Losses {
			out.Losses = append(out.Losses, exportedLoss(l))
		}
		for _, q := range declared.Quarantined {
			out.Quarantined = append(out.Quarantined, adapterQuarantined(q))
		}
		return writeJSON(a.out, out)
	}
	for _, l := range declared.Losses {
		fmt.Fprintln(a.errOut, "toolcrib: lost: "+printable(l.String()))
	}
	for _, q := range declared.Quarantined {
		fmt.Fprintf(a.errOut, "toolcrib: left out: %s: %s\n", q.Tool, printable(q.Reason))
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, declared.JSON(), "", "  "); err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.out, indented.String())
	return err
}

// describeAll reads the tools with their schemas, those about tools aside.
func describeAll(s *session, rows []api.Summary) ([]tools.Tool, error) {
	var list []tools.Tool
	for _, row := range rows {
		if row.Kind != string(tools.KindTool) {
			continue
		}
		d, err := s.Describe(s.ctx, row.Name)
		if err != nil {
			return nil, err
		}
		list = append(list, toolOf(d))
	}
	return list, nil
}

// toolOf is a tool as far as its description tells.
func toolOf(d *api.Description) tools.Tool {
	t := tools.Tool{
		Name: d.Name, Title: d.Title, Description: d.Description, ArgsSchema: d.ArgsSchema, OutSchema: d.OutSchema,
		Tags: slices.Clone(d.Tags), SideEffects: tools.SideEffect(d.SideEffect), Loading: tools.LoadingMode(d.Loading),
		CostHint: d.CostHint, LatencyHint: time.Duration(d.LatencyHintMS) * time.Millisecond, SafetyNotes: d.SafetyNotes,
		Namespace: d.Namespace, Category: d.Category,
		Safety: tools.Safety{ReadOnly: flagOf(d.Safety.ReadOnly), Destructive: flagOf(d.Safety.Destructive),
			Idempotent: flagOf(d.Safety.Idempotent), OpenWorld: flagOf(d.Safety.OpenWorld)},
	}
	for _, e := range d.Examples {
		t.Examples = append(t.Examples, tools.ToolExample{Args: e.Args, Description: e.Description, Tags: e.Tags})
	}
	return t
}

func flagOf(b *bool) tools.Flag {
	if b == nil {
		return tools.Unset
	}
	return tools.FlagOf(*b)
}
