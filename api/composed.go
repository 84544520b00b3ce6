package api

import (
	"context"
	"encoding/json"
	"time"
)

// Composed knows the skills and flows of a server, as the caller on ctx may see
// them. What a caller may not see gives the same error as what does not exist. Its
// errors are *Error.
type Composed interface {
	Skills(ctx context.Context) []Composition
	Flows(ctx context.Context) []Composition
	// Plan returns what a skill would do with arguments, and does nothing.
	Plan(ctx context.Context, req PlanRequest) (*PlanResponse, error)
	// Graph draws a flow.
	Graph(ctx context.Context, name string) (*Graph, error)
	// Runs returns the caller's runs of flows, the latest first.
	Runs(ctx context.Context) ([]FlowRun, error)
	// Run returns one of the caller's runs with its inputs and nodes.
	Run(ctx context.Context, id string) (*FlowRun, error)
	// Cancel ends one of the caller's runs.
	Cancel(ctx context.Context, id string) error
	// Resuming returns the context and the arguments of the call that goes on with
	// a run of a flow.
	Resuming(ctx context.Context, name, id string) (context.Context, json.RawMessage, error)
}

// The values of Composition.State.
const (
	CompositionReady       = "ready"
	CompositionUnavailable = "unavailable" // a tool that it calls is not there, or does not fit
	CompositionText        = "text"        // a skill without steps, for models to read
)

// Composition is a skill or a flow in a list.
type Composition struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Tags        []string `json:"tags"`
	// Tools are the tools that it calls or speaks of, sorted.
	Tools []string `json:"tools"`
	// Steps counts the steps of a skill, or the nodes of a flow.
	Steps int    `json:"steps"`
	State string `json:"state"`
	// Reason is why it is unavailable, or empty.
	Reason string `json:"reason,omitempty"`
}

// SkillsResponse lists skills by name.
type SkillsResponse struct {
	Skills []Composition `json:"skills"`
}

// FlowsResponse lists flows by name.
type FlowsResponse struct {
	Flows []Composition `json:"flows"`
}

// PlanRequest asks what a skill would do.
type PlanRequest struct {
	Name string `json:"name"`
	// Arguments is what the skill would be called with, or empty.
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// PlanResponse is what a skill would do.
type PlanResponse struct {
	Name  string        `json:"name"`
	Steps []PlannedStep `json:"steps"`
	// Output is what the skill would give: its expressions, or empty for the
	// result of the last step.
	Output json.RawMessage `json:"output,omitempty"`
}

// PlannedStep is one call that a skill would make. What of its inputs depends on a
// step before stands there as its expression.
type PlannedStep struct {
	ID     string          `json:"id"`
	Tool   string          `json:"tool"`
	Inputs json.RawMessage `json:"inputs"`
	Needs  []string        `json:"needs,omitempty"`
}

// Graph is a flow as a picture.
type Graph struct {
	Name string `json:"name"`
	// Mermaid is a flowchart in the language of Mermaid.
	Mermaid string `json:"mermaid"`
}

// FlowRun is one run of a flow.
type FlowRun struct {
	ID   string `json:"id"`
	Flow string `json:"flow"`
	// Parent is the run that made this one, or empty.
	Parent string `json:"parent,omitempty"`
	// Status is "running", "done", "failed", "cancelled" or "interrupted".
	Status string     `json:"status"`
	Began  time.Time  `json:"began"`
	Ended  *time.Time `json:"ended,omitempty"`
	Error  string     `json:"error,omitempty"`
	// Inputs and Nodes are those of a single run alone.
	Inputs json.RawMessage `json:"inputs,omitempty"`
	Nodes  []FlowNode      `json:"nodes,omitempty"`
}

// FlowNode is what became of a node.
type FlowNode struct {
	Node string `json:"node"`
	// Ran is the node that ran in its place, if it is another.
	Ran string `json:"ran,omitempty"`
	// Status is "started", "done", "skipped", "failed" or "undone".
	Status string          `json:"status"`
	Value  json.RawMessage `json:"value,omitempty"`
	Error  string          `json:"error,omitempty"`
	// OutcomeUnknown says that the node failed and may have left effects.
	OutcomeUnknown bool      `json:"outcome_unknown,omitempty"`
	Attempts       int       `json:"attempts,omitempty"`
	At             time.Time `json:"at"`
}

// RunsRequest selects runs of flows.
type RunsRequest struct {
	// Flow, when not empty, selects the runs of one flow.
	Flow string `json:"flow,omitempty"`
	// Limit is how many to return; 0 means 50.
	Limit int `json:"limit,omitempty"`
}

const (
	defaultRuns = 50
	maxRuns     = 1000
)

// RunsResponse holds runs, the latest first.
type RunsResponse struct {
	Runs []FlowRun `json:"runs"`
	// More says that there are older ones.
	More bool `json:"more"`
}

// Canceled says which run was told to end.
type Canceled struct {
	ID string `json:"id"`
}

type runRequest struct {
	ID string `json:"id"`
}

var errNoCompositions = newError(CodeUnknownMethod, "this server has no skills and flows")

// Skills returns the skills that the caller on ctx may know of.
func (s *Server) Skills(ctx context.Context) (*SkillsResponse, error) {
	if s.opts.Composed == nil {
		return nil, errNoCompositions
	}
	return &SkillsResponse{present(s.opts.Composed.Skills(ctx))}, nil
}

// Flows returns the flows that the caller on ctx may know of.
func (s *Server) Flows(ctx context.Context) (*FlowsResponse, error) {
	if s.opts.Composed == nil {
		return nil, errNoCompositions
	}
	return &FlowsResponse{present(s.opts.Composed.Flows(ctx))}, nil
}

// PlanSkill returns what a skill would do.
func (s *Server) PlanSkill(ctx context.Context, req PlanRequest) (*PlanResponse, error) {
	if s.opts.Composed == nil {
		return nil, errNoCompositions
	}
	return s.opts.Composed.Plan(ctx, req)
}

// FlowGraph draws a flow.
func (s *Server) FlowGraph(ctx context.Context, name string) (*Graph, error) {
	if s.opts.Composed == nil {
		return nil, errNoCompositions
	}
	return s.opts.Composed.Graph(ctx, name)
}

// FlowRuns returns runs of flows of the caller's.
func (s *Server) FlowRuns(ctx context.Context, req RunsRequest) (*RunsResponse, error) {
	if s.opts.Composed == nil {
		return nil, errNoCompositions
	}
	all, err := s.opts.Composed.Runs(ctx)
	if err != nil {
		return nil, err
	}
	limit := req.Limit
	if limit <= 0 || limit > maxRuns {
		limit = defaultRuns
	}
	resp := &RunsResponse{Runs: []FlowRun{}}
	for _, run := range all {
		if req.Flow != "" && run.Flow != req.Flow {
			continue
		}
		if resp.More = len(resp.Runs) == limit; resp.More {
			break
		}
		resp.Runs = append(resp.Runs, run)
	}
	return resp, nil
}

// FlowRun returns one run of the caller's.
func (s *Server) FlowRun(ctx context.Context, id string) (*FlowRun, error) {
	if s.opts.Composed == nil {
		return nil, errNoCompositions
	}
	return s.opts.Composed.Run(ctx, id)
}

// CancelRun ends one run of the caller's. One that ended already stays as it is.
func (s *Server) CancelRun(ctx context.Context, id string) (*Canceled, error) {
	if s.opts.Composed == nil {
		return nil, errNoCompositions
	}
	if err := s.opts.Composed.Cancel(ctx, id); err != nil {
		return nil, err
	}
	return &Canceled{id}, nil
}

// resuming makes of a call that names a run the call that goes on with it.
func (s *Server) resuming(ctx context.Context, req *CallRequest) (context.Context, error) {
	switch {
	case req.Resume == "":
		return ctx, nil
	case s.opts.Composed == nil:
		return nil, errNoCompositions
	case len(req.Arguments) > 0:
		return nil, newError(CodeInvalidRequest, "arguments: the run that is resumed has its own")
	}
	ctx, arguments, err := s.opts.Composed.Resuming(ctx, req.Name, req.Resume)
	req.Arguments = arguments
	return ctx, err
}

func decodePlan(raw []byte) (req PlanRequest, err error) {
	var arguments []byte
	err = decodeObject("", raw, []field{{"name", takeString(&req.Name)}, {"arguments", takeObject(&arguments)}})
	req.Arguments = arguments
	return req, required(err, "name", req.Name)
}

func decodeRuns(raw []byte) (req RunsRequest, err error) {
	err = decodeObject("", raw, []field{{"flow", takeString(&req.Flow)}, {"limit", takeCount(&req.Limit, maxRuns)}})
	return req, err
}

func decodeRun(raw []byte) (id string, err error) {
	err = decodeObject("", raw, []field{{"id", takeString(&id)}})
	return id, required(err, "id", id)
}

func decodeName(raw []byte) (name string, err error) {
	err = decodeObject("", raw, []field{{"name", takeString(&name)}})
	return name, required(err, "name", name)
}

// required refuses a member that is not there.
func required(err error, member, value string) error {
	if err == nil && value == "" {
		return newError(CodeInvalidRequest, member+": missing")
	}
	return err
}

// Skills returns the skills that the caller may know of.
func (c *Client) Skills(ctx context.Context) (*SkillsResponse, error) {
	return ask[SkillsResponse](ctx, c, "/v1/skills/list", struct{}{})
}

// PlanSkill returns what a skill would do.
func (c *Client) PlanSkill(ctx context.Context, req PlanRequest) (*PlanResponse, error) {
	return ask[PlanResponse](ctx, c, "/v1/skills/plan", req)
}

// Flows returns the flows that the caller may know of.
func (c *Client) Flows(ctx context.Context) (*FlowsResponse, error) {
	return ask[FlowsResponse](ctx, c, "/v1/flows/list", struct{}{})
}

// FlowGraph draws a flow.
func (c *Client) FlowGraph(ctx context.Context, name string) (*Graph, error) {
	return ask[Graph](ctx, c, "/v1/flows/graph", nameRequest{name})
}

type nameRequest struct {
	Name string `json:"name"`
}

// FlowRuns returns runs of flows of the caller's.
func (c *Client) FlowRuns(ctx context.Context, req RunsRequest) (*RunsResponse, error) {
	return ask[RunsResponse](ctx, c, "/v1/flows/runs", req)
}

// FlowRun returns one run of the caller's.
func (c *Client) FlowRun(ctx context.Context, id string) (*FlowRun, error) {
	return ask[FlowRun](ctx, c, "/v1/flows/run", runRequest{id})
}

// CancelRun ends one run of the caller's.
func (c *Client) CancelRun(ctx context.Context, id string) (*Canceled, error) {
	return ask[Canceled](ctx, c, "/v1/flows/cancel", runRequest{id})
}
