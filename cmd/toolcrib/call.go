package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// callFlags are the flags of the call command.
type callFlags struct {
	target
	output
	key, meta string
	limit     time.Duration
	bounded   bool
}

func (a *app) callCommand() *cobra.Command {
	var f callFlags
	cmd := &cobra.Command{
		Use:   "call NAME [JSON | @FILE | -]",
		Short: "Call a tool",
		Long: `Call a tool with a JSON object: given here, read from @FILE, or from stdin with -.

The result stands on stdout: a structured one as its JSON, text as text, and
anything else as the JSON array of its blocks; with -o json the whole answer, or
the error as the JSON protocol has it.
Everything else (progress, logs, errors) goes to stderr.` + targetHelp,
		Example: `  toolcrib call text.echo '{"text":"hello"}'
  toolcrib call github_create_issue @issue.json -c toolcrib.yaml
  generate | toolcrib call report.render - --server http://crib.example:7711`,
		Args: arity(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			req, err := f.request(a, args)
			if err != nil {
				return err
			}
			return a.call(cmd.Context(), &f, req)
		},
		ValidArgsFunction: a.completeTool(&f.target),
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.key, "idempotency-key", "", "lets the call be repeated after it was delivered")
	flags.StringVar(&f.meta, "meta", "", "JSON object for the tool, beside the arguments")
	return cmd
}

// add adds the flags that every command which makes a call has.
func (f *callFlags) add(cmd *cobra.Command) {
	f.target.addFlags(cmd)
	f.output.addFlag(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&f.bounded, "bounded", false, "show a large result in part, as a model gets it, and keep the rest as an artifact")
	flags.StringVar(&f.session, "session", "", "name of the session that the call belongs to")
	flags.DurationVar(&f.limit, "timeout", 0, "time limit of the whole call, such as 30s (default none)")
}

func (f *callFlags) request(a *app, args []string) (api.CallRequest, error) {
	req := api.CallRequest{Name: args[0], IdempotencyKey: f.key, Bounded: f.bounded, Notes: a.note}
	if err := f.check(); err != nil {
		return req, err
	}
	if f.meta != "" {
		req.Meta = json.RawMessage(f.meta)
		if rawjson.Check(req.Meta, rawjson.Options{}) != nil || rawjson.KindOf(req.Meta) != rawjson.KindObject {
			return req, usageError{fmt.Errorf("--meta: expected a JSON object")}
		}
	}
	if len(args) == 1 {
		return req, nil
	}
	raw, err := readArguments(args[1], a.in)
	req.Arguments = raw
	return req, err
}

// answeredError is a failure whose answer stands on stdout already.
type answeredError struct{ error }

func (e answeredError) Unwrap() error { return e.error }

func (a *app) call(ctx context.Context, f *callFlags, req api.CallRequest) error {
	return a.callIf(ctx, f, req, func(*session, *api.CallRequest) error { return nil })
}

// callIf makes a call once it was looked at, which may complete it.
func (a *app) callIf(ctx context.Context, f *callFlags, req api.CallRequest, look func(*session, *api.CallRequest) error) error {
	if f.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.limit)
		defer cancel()
	}
	s, err := a.open(ctx, &f.target, req.Name)
	if err != nil {
		return err
	}
	defer s.close()
	if req.Bounded && s.passing {
		fmt.Fprintln(a.errOut, "toolcrib: "+nothingKept)
	}
	err = look(s, &req)
	var resp *api.CallResponse
	if err == nil {
		resp, err = s.Call(s.ctx, req)
	}
	if err != nil {
		err = f.inTime(s, req.Name, err)
		if exitStatus(err) == exitToolNotFound {
			a.warnOfSources(s)
		}
		return s.failure(err)
	}
	return a.printResult(&f.output, req.Name, resp)
}

// inTime says of a call that met the time limit of the command line what that
// was. A server that gave no answer has not said whether the tool has effects.
func (f *callFlags) inTime(s *session, tool string, err error) error {
	late := errors.Is(s.ctx.Err(), context.DeadlineExceeded)
	failed, ok := errors.AsType[*api.Error](err)
	if !late || !ok || f.limit == 0 || failed.Code == api.CodeToolNotFound {
		return err
	}
	e := *failed
	e.Code, e.Message = api.CodeTimeout, fmt.Sprintf("no answer within %v", f.limit)
	if e.OutcomeUnknown = e.OutcomeUnknown && !s.isHarmless(tool); e.OutcomeUnknown {
		e.Message += api.OutcomeUnknown
	}
	return &e
}

// lookTime bounds how long is looked for what a tool does whose call was given up.
const lookTime = 2 * time.Second

// isHarmless reports whether a lost answer of a tool leaves no doubt about effects,
// because a call has none or a second one has no further.
func (s *session) isHarmless(tool string) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), lookTime)
	defer cancel()
	d, err := s.Describe(ctx, tool)
	if err != nil {
		return false
	}
	effect, idempotent := tools.SideEffect(d.SideEffect), d.Safety.Idempotent
	return effect == tools.SideEffectPure || effect == tools.SideEffectRead || idempotent != nil && *idempotent
}

// printResult prints an answer. The tool's own word that it failed is an error
// and stands on stderr, unless the whole answer was asked for.
func (a *app) printResult(o *output, name string, resp *api.CallResponse) error {
	var failed error
	if resp.IsError {
		failed = &api.Error{Code: api.CodeToolFailed, Message: fmt.Sprintf("%s failed: %s", name, resultBytes(resp))}
	}
	var out []byte
	switch {
	case o.json():
		out = resp.AppendJSON(nil)
		if failed != nil {
			failed = answeredError{failed}
		}
	case failed == nil:
		out = resultBytes(resp)
	}
	if len(out) > 0 && out[len(out)-1] != '\n' {
		out = append(out, '\n')
	}
	_, err := a.out.Write(out)
	return cmp.Or(failed, err)
}

// resultBytes is the value of an answer: its structured result, its text, or
// its blocks.
func resultBytes(resp *api.CallResponse) []byte {
	if text, ok := resp.Text(); ok {
		return []byte(text)
	}
	switch {
	case resp.Structured != nil:
		return resp.Structured
	case len(resp.Content) > 0:
		return api.AppendContent(nil, resp.Content)
	}
	return nil
}

// note shows what a tool says while it runs.
func (a *app) note(n api.Note) {
	line := fmt.Sprintf("progress: %g", n.Progress)
	switch {
	case n.Kind == api.NoteLog:
		line = cmp.Or(n.Level, "info") + ": " + logText(n)
	case n.Total > 0:
		line += fmt.Sprintf("/%g", n.Total)
	}
	if n.Message != "" {
		line += " " + n.Message
	}
	fmt.Fprintln(a.errOut, printable(line))
}

func logText(n api.Note) string {
	text := string(n.Data)
	if s, ok := rawjson.Unquote(n.Data); ok {
		text = s
	}
	if n.Logger != "" {
		return n.Logger + ": " + text
	}
	return text
}
