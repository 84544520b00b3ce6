package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/toolcrib/toolcrib/tools"
)

type stage struct {
	verdict  tools.Verdict
	edited   json.RawMessage
	approve  error
	overload error
	requests []tools.ApprovalRequest
	records  []tools.CallRecord
	released int
	redact   string
}

func (s *stage) Decide(context.Context, *tools.Tool, json.RawMessage) (tools.Verdict, string, error) {
	return s.verdict, "because", nil
}
func (s *stage) Approve(_ context.Context, r tools.ApprovalRequest) (json.RawMessage, error) {
	s.requests = append(s.requests, r)
	return s.edited, s.approve
}
func (s *stage) Admit(context.Context, *tools.Tool) (func(error), error) {
	return func(error) { s.released++ }, s.overload
}
func (s *stage) Redact(_ context.Context, _ *tools.Tool, res *tools.ToolResult) error {
	if s.redact != "" {
		res.Value, res.Structured, res.Wire = nil, json.RawMessage(s.redact), nil
	}
	return nil
}
func (s *stage) Record(_ context.Context, r tools.CallRecord) { s.records = append(s.records, r) }

func TestStages(t *testing.T) {
	cases := map[string]struct {
		s       stage
		want    string
		wantErr error
		driver  string
	}{
		"allow":          {stage{verdict: tools.Allow}, "tool.invoked tool.completed:1", nil, `{"text":"x"}`},
		"deny":           {stage{verdict: tools.Deny}, "tool.denied:policy", tools.ErrToolDenied, ""},
		"approved":       {stage{verdict: tools.Ask}, "tool.invoked tool.completed:1", nil, `{"text":"x"}`},
		"edited":         {stage{verdict: tools.Ask, edited: json.RawMessage(`{"text":"y"}`)}, "tool.invoked tool.completed:1", nil, `{"text":"y"}`},
		"edited badly":   {stage{verdict: tools.Ask, edited: json.RawMessage(`{"text":5}`)}, "tool.invalid_args", tools.ErrToolInvalidArgs, ""},
		"rejected":       {stage{verdict: tools.Ask, approve: fmt.Errorf("%w: not today", tools.ErrToolRejected)}, "tool.denied:approval", tools.ErrToolRejected, ""},
		"expired":        {stage{verdict: tools.Ask, approve: tools.ErrApprovalExpired}, "tool.denied:approval", tools.ErrApprovalExpired, ""},
		"approval fails": {stage{verdict: tools.Ask, approve: errors.New("db gone")}, "tool.denied:approval", tools.ErrToolDenied, ""},
		"overloaded":     {stage{verdict: tools.Allow, overload: tools.ErrOverloaded}, "tool.denied:admission", tools.ErrOverloaded, ""},
		"redacted":       {stage{verdict: tools.Allow, redact: `{"text":"***"}`}, "tool.invoked tool.completed:1", nil, `{"text":"x"}`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s, ran := &c.s, ""
			d := descriptor("t")
			d.Invoke = func(_ context.Context, args json.RawMessage) (tools.ToolResult, error) {
				ran = string(args)
				return tools.ToolResult{Value: args}, nil
			}
			w := watch(t, []tools.CatalogOption{tools.WithStages(tools.Stages{Safety: s, Approver: s, Admission: s, Redactor: s, Recorder: s})}, d)
			res, err := tools.Invoke(adaCtx(), w, "t", json.RawMessage(`{"text":"x"}`))
			if got := strings.Join(w.drain(), " "); got != c.want || ran != c.driver {
				t.Errorf("events %q, driver got %q", got, ran)
			}
			if c.wantErr != nil && !errors.Is(err, c.wantErr) || c.wantErr == nil && err != nil {
				t.Errorf("error %v", err)
			}
			if s.redact != "" && string(res.Structured) != s.redact {
				t.Errorf("result %s", res.Structured)
			}
			if len(s.records) != 1 || (s.records[0].Err == nil) != (err == nil) || s.records[0].Identity.Identity != ada {
				t.Errorf("records %+v", s.records)
			}
			if admitted := c.driver != ""; s.released == 1 != admitted {
				t.Errorf("released %d times", s.released)
			}
			for _, r := range s.requests {
				if r.Identity.Identity != ada || string(r.Args) != `{"text":"x"}` || len(r.ArgsDigest) != 64 || r.Reason != "because" || r.CallID == "" {
					t.Errorf("approval request %+v", r)
				}
			}
		})
	}
}

func TestSwapStagesKeepsCallsInFlight(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	w := watch(t, nil, plain("t", func(context.Context, json.RawMessage) (tools.ToolResult, error) {
		close(began)
		<-goOn
		return tools.ToolResult{Value: "x"}, nil
	}))
	s := &stage{verdict: tools.Deny}
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := tools.Invoke(adaCtx(), w, "t", nil); err != nil {
			t.Errorf("the call in flight: %v", err)
		}
	})
	<-began
	w.SwapStages(tools.Stages{Safety: s, Recorder: s})
	close(goOn)
	wg.Wait()
	if len(s.records) != 0 {
		t.Error("a call was recorded by stages that came after it began")
	}
	if _, err := tools.Invoke(adaCtx(), w, "t", nil); !errors.Is(err, tools.ErrToolDenied) {
		t.Errorf("the next call: %v", err)
	}
}
