package gateway

import (
	"encoding/json"
	"time"

	"github.com/toolcrib/toolcrib/internal/expr"
	"github.com/toolcrib/toolcrib/skill"
	"github.com/toolcrib/toolcrib/tools/flow"
)

// Skill is a skill, or where skills are read from: a folder or a file.
type Skill struct {
	Folder      string          `yaml:"folder" doc:"Folder to read skills from, each *.yaml and *.yml file and each SKILL.md in it and below; in the place of what follows."`
	File        string          `yaml:"file" doc:"File to read one skill from, YAML or a SKILL.md; in the place of what follows."`
	Name        string          `yaml:"name" rule:"name" doc:"Name of the skill and of its tool."`
	Description string          `yaml:"description" doc:"What the skill does."`
	Tags        []string        `yaml:"tags" doc:"Tags of the tool."`
	Inputs      json.RawMessage `yaml:"inputs" rule:"object" doc:"JSON Schema of what the skill takes, an object; nothing when absent."`
	Steps       []SkillStep     `yaml:"steps" doc:"The calls that the skill makes, one after the other by id."`
	Output      json.RawMessage `yaml:"output" doc:"What the skill gives, with expressions in its texts; the result of the last step when absent."`
}

// SkillStep is one call of a skill.
type SkillStep struct {
	ID     string          `yaml:"id" rule:"required" doc:"Name of the step within the skill."`
	Tool   string          `yaml:"tool" rule:"required,name" doc:"Canonical name of the tool to call."`
	Inputs json.RawMessage `yaml:"inputs" rule:"object" doc:"Arguments, with expressions in their texts."`
	Needs  []string        `yaml:"needs" doc:"Steps that must run before this one."`
}

// Flow is a flow, or where flows are read from: a folder or a file.
type Flow struct {
	Folder      string          `yaml:"folder" doc:"Folder to read flows from, each *.yaml and *.yml file in it and below; in the place of what follows."`
	File        string          `yaml:"file" doc:"File to read one flow from; in the place of what follows."`
	Name        string          `yaml:"name" rule:"name" doc:"Name of the flow and of its tool."`
	Description string          `yaml:"description" doc:"What the flow does."`
	Tags        []string        `yaml:"tags" doc:"Tags of the tool."`
	Inputs      json.RawMessage `yaml:"inputs" rule:"object" doc:"JSON Schema of what the flow takes, an object; nothing when absent."`
	Entry       string          `yaml:"entry" doc:"Id of the first node."`
	Exit        string          `yaml:"exit" doc:"Id of the last node."`
	Nodes       []FlowNode      `yaml:"nodes" doc:"The nodes, in any order."`
	Output      json.RawMessage `yaml:"output" doc:"What the flow gives, with expressions in its texts; the result of the exit when absent."`
	Budget      FlowBudget      `yaml:"budget" doc:"Limits of each run."`
	Parallel    int             `yaml:"parallel" rule:"min=1" doc:"Most nodes of one run that run at once; 8 when absent."`
}

// FlowBudget limits a run. On every axis zero is no limit.
type FlowBudget struct {
	DeadlineMS int     `yaml:"deadline_ms" rule:"min=1" doc:"How long a run may take, in milliseconds."`
	HopBudget  int     `yaml:"hop_budget" rule:"min=1" doc:"How many nodes may run; each element of a for_each is one."`
	Calls      int     `yaml:"calls" rule:"min=1" doc:"How many calls of tools may be made."`
	CostCap    float64 `yaml:"cost_cap" rule:"min=0" doc:"How much the nodes that run may cost together."`
}

// FlowNode is one node of a flow: one of tool, flow and ask says what it does.
type FlowNode struct {
	ID        string          `yaml:"id" rule:"required" doc:"Name of the node within the flow."`
	Tool      string          `yaml:"tool" rule:"name" doc:"Canonical name of the tool to call."`
	Flow      *Flow           `yaml:"flow" doc:"Flow to run, as part of this one."`
	Ask       *FlowQuestion   `yaml:"ask" doc:"Question to put to the caller."`
	Inputs    json.RawMessage `yaml:"inputs" rule:"object" doc:"What the node is given, with expressions in its texts."`
	Next      []FlowEdge      `yaml:"next" doc:"Edges to other nodes."`
	Join      flow.Join       `yaml:"join" rule:"enum=any|all" doc:"Whether any or all of the edges into the node must be taken."`
	ForEach   *FlowLoop       `yaml:"for_each" doc:"Runs the node once for each element of a list."`
	TimeoutMS int             `yaml:"timeout_ms" rule:"min=1" doc:"Time limit of each attempt, in milliseconds."`
	Retry     FlowRetry       `yaml:"retry" doc:"How often a failure is tried again."`
	OnError   FlowHandling    `yaml:"on_error" doc:"What a failure does to the flow."`
	Undo      string          `yaml:"undo" doc:"Id of the node that undoes this one."`
	Cost      float64         `yaml:"cost" rule:"min=0" doc:"What one run of the node costs."`
}

// FlowEdge leads to another node.
type FlowEdge struct {
	To   string `yaml:"to" rule:"required" doc:"Id of the node that the edge leads to."`
	When string `yaml:"when" doc:"Condition, an expression; always when absent."`
}

// FlowQuestion is put to the caller.
type FlowQuestion struct {
	Message string          `yaml:"message" rule:"required" doc:"What is asked, with expressions."`
	Schema  json.RawMessage `yaml:"schema" rule:"object" doc:"JSON Schema of the answer; approval is asked for when absent."`
}

// FlowLoop runs a node for each element of a list.
type FlowLoop struct {
	Items    string `yaml:"items" rule:"required" doc:"Expression that gives the list."`
	Limit    int    `yaml:"limit" rule:"min=1,max=100000" doc:"Most elements; 100 when absent."`
	Parallel int    `yaml:"parallel" rule:"min=1" doc:"Elements that run at once; 1 when absent."`
}

// FlowRetry says how often a failed attempt is made again.
type FlowRetry struct {
	Attempts  int `yaml:"attempts" rule:"min=1,max=100" doc:"Attempts in all, the first one included."`
	BackoffMS int `yaml:"backoff_ms" rule:"min=0" doc:"Wait before the second attempt in milliseconds, doubled for each further one."`
}

// FlowHandling says what a node's failure does to the flow.
type FlowHandling struct {
	Do   flow.Handling `yaml:"do" rule:"enum=fail|skip|fallback|compensate" doc:"fail ends the flow, skip goes on with null, fallback runs another node, compensate undoes what was done."`
	Node string        `yaml:"node" doc:"Id of the node that fallback runs."`
}

// skill returns the skill in the words of package skill.
func (s *Skill) skill() skill.Skill {
	out := skill.Skill{Name: s.Name, Description: s.Description, Inputs: s.Inputs, Output: free(s.Output), Tags: s.Tags}
	for _, step := range s.Steps {
		inputs, _ := free(step.Inputs).(map[string]any)
		out.Steps = append(out.Steps, skill.Step{ID: step.ID, ToolID: step.Tool, Inputs: inputs, Needs: step.Needs})
	}
	return out
}

// free is a value of any form, or nil. What was decoded from the file is JSON.
func free(raw json.RawMessage) any {
	v, err := expr.Decode(raw)
	if err != nil {
		return nil
	}
	return v
}

// definition returns the flow in the words of package flow.
func (f *Flow) definition() flow.Definition {
	out := flow.Definition{Name: f.Name, Description: f.Description, Inputs: f.Inputs, Output: free(f.Output), Entry: f.Entry, Exit: f.Exit,
		Parallel: f.Parallel, Tags: f.Tags, Budget: flow.Budget{Deadline: pause(f.Budget.DeadlineMS), HopBudget: f.Budget.HopBudget,
			Calls: f.Budget.Calls, CostCap: f.Budget.CostCap}}
	for i := range f.Nodes {
		out.Nodes = append(out.Nodes, f.Nodes[i].node())
	}
	return out
}

func pause(ms int) time.Duration { return time.Duration(ms) * time.Millisecond }

func (n *FlowNode) node() flow.Node {
	out := flow.Node{ID: n.ID, Tool: n.Tool, Inputs: free(n.Inputs), Join: n.Join, Timeout: pause(n.TimeoutMS), Undo: n.Undo, Cost: n.Cost,
		Retry: flow.Retry{Attempts: n.Retry.Attempts, Backoff: pause(n.Retry.BackoffMS)}, OnError: flow.OnError(n.OnError)}
	for _, e := range n.Next {
		out.Next = append(out.Next, flow.Edge(e))
	}
	if n.ForEach != nil {
		each := flow.ForEach(*n.ForEach)
		out.ForEach = &each
	}
	if n.Ask != nil {
		asked := flow.Question(*n.Ask)
		out.Ask = &asked
	}
	if n.Flow != nil {
		inner := n.Flow.definition()
		out.Flow = &inner
	}
	return out
}
