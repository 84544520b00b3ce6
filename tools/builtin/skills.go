package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/search"
	"github.com/toolcrib/toolcrib/view"
)

// The names of the tools about skills.
const (
	SkillSearchName = "skill_search"
	SkillGetName    = "skill_get"
	SkillListName   = "skill_list"
)

// SkillNames lists the tools about skills, sorted.
func SkillNames() []string { return []string{SkillGetName, SkillListName, SkillSearchName} }

// Skill is a skill as the tools about skills show it.
type Skill struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	// Instructions is a text for whoever carries the work out.
	Instructions string `json:"instructions,omitempty"`
	// Tools are the tools that the skill needs. A caller that does not see every
	// one does not see the skill.
	Tools []string `json:"tools,omitempty"`
	// Steps are the calls that the skill makes, in order.
	Steps []SkillStep `json:"steps,omitempty"`
	// ArgsSchema is what the skill's own tool takes, or empty for a skill that is
	// none.
	ArgsSchema json.RawMessage `json:"args_schema,omitempty"`
}

// SkillStep is one call of a skill.
type SkillStep struct {
	ID   string `json:"id"`
	Tool string `json:"tool"`
}

// SkillOptions configure the tools about skills.
type SkillOptions struct {
	// List returns all skills, sorted by name. What it returns does not change.
	List func() []Skill
	// Memory keeps the tools of skills that callers were shown, as that of
	// MetaOptions keeps others.
	Memory view.Memory
	// Index finds skills. Nil is a new one.
	Index *search.Index
}

// RegisterSkills adds skill_search, skill_get and skill_list to a catalog. They
// show a caller the skills whose every tool it sees, and no others.
func RegisterSkills(cat tools.LiveCatalog, opts *SkillOptions) error {
	s := &skills{meta: meta{cat: cat, opts: MetaOptions{Memory: opts.Memory, Index: opts.Index, Loading: tools.LoadingAlways}}, list: opts.List}
	if s.opts.Index == nil {
		s.opts.Index = search.New(nil)
	}
	if err := cat.RegisterAll([]tools.ToolDescriptor{s.searchTool(), s.getTool(), s.listTool()}); err != nil {
		return fmt.Errorf("builtin: %w", err)
	}
	return nil
}

// skills is the tools about skills of one catalog.
type skills struct {
	meta
	list func() []Skill
}

func (s *skills) descriptor(t tools.Tool, invoke tools.Invoker) tools.ToolDescriptor {
	d := s.meta.descriptor(t, invoke, tools.WithSideEffect(tools.SideEffectRead))
	d.Tool.Category = "skills"
	return d
}

// visible returns the skills that the caller on ctx may know of.
func (s *skills) visible(ctx context.Context) []Skill {
	v := view.From(ctx, s.cat)
	return slices.DeleteFunc(slices.Clone(s.list()), func(one Skill) bool { return !Permits(v, &one) })
}

// Permits reports whether a caller sees every tool that a skill needs, and its own
// tool if it is one.
func Permits(v view.View, s *Skill) bool {
	if len(s.ArgsSchema) > 0 && !v.Has(s.Name) {
		return false
	}
	return !slices.ContainsFunc(s.Tools, func(name string) bool { return !v.Has(name) })
}

// SkillRow is a skill in a list.
type SkillRow struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Tags        []string `json:"tags,omitempty"`
}

// SkillsResult is the result of skill_list and skill_search.
type SkillsResult struct {
	Skills []SkillRow `json:"skills"`
	Count  int        `json:"count"`
}

func rowsOf(list []Skill) SkillsResult {
	out := SkillsResult{Skills: []SkillRow{}, Count: len(list)}
	for _, one := range list {
		out.Skills = append(out.Skills, SkillRow{one.Name, one.Description, one.Tags})
	}
	return out
}

func (s *skills) listTool() tools.ToolDescriptor {
	return s.descriptor(tools.Tool{Name: SkillListName,
		Description: "List the skills: workflows that are made of tools.",
		ArgsSchema:  json.RawMessage(`{"type":"object","properties":{}}`),
	}, func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
		return answer(rowsOf(s.visible(ctx)))
	})
}

// SkillGetArgs are the arguments of skill_get.
type SkillGetArgs struct {
	Name string `json:"name"`
}

// SkillGetResult is the result of skill_get. A skill that does not exist, or that
// the caller may not see, is an answer with Found false and an Error.
type SkillGetResult struct {
	Skill
	Found bool   `json:"found"`
	Error string `json:"error,omitempty"`
}

func (s *skills) getTool() tools.ToolDescriptor {
	return s.descriptor(tools.Tool{Name: SkillGetName,
		Description: "Show a skill by its exact name: its instructions, steps and tools, and args_schema if it can be called as a tool.",
		ArgsSchema:  json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`),
	}, s.get)
}

func (s *skills) get(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
	var in SkillGetArgs
	if err := json.Unmarshal(args, &in); err != nil {
		return tools.ToolResult{}, err
	}
	list := s.visible(ctx)
	i := slices.IndexFunc(list, func(one Skill) bool { return one.Name == in.Name })
	if i < 0 {
		return answer(SkillGetResult{Skill: Skill{Name: cut(in.Name, 128)}, Error: "there is no skill of this name"})
	}
	out := SkillGetResult{Skill: list[i], Found: true}
	names := list[i].Tools
	if len(list[i].ArgsSchema) > 0 {
		names = []string{list[i].Name}
	}
	if err := s.remember(ctx, names...); err != nil {
		out.Error = notRemembered
	}
	return answer(out)
}

// SkillSearchArgs are the arguments of skill_search.
type SkillSearchArgs struct {
	Query string   `json:"query"`
	Tags  []string `json:"tags,omitempty"`
	Limit int      `json:"limit,omitempty"`
}

// The bounds of SkillSearchArgs.Limit.
const (
	defaultSkills = 10
	maxSkills     = 50
)

func (s *skills) searchTool() tools.ToolDescriptor {
	return s.descriptor(tools.Tool{Name: SkillSearchName,
		Description: "Find skills by what they do, in plain words.",
		ArgsSchema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}},` +
			`"limit":{"type":"integer","minimum":1,"maximum":50}},"required":["query"]}`),
	}, s.find)
}

func (s *skills) find(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
	var in SkillSearchArgs
	if err := json.Unmarshal(args, &in); err != nil {
		return tools.ToolResult{}, err
	}
	if in.Limit <= 0 {
		in.Limit = defaultSkills
	}
	all := s.visible(ctx)
	shelf, err := shelve(all)
	if err != nil {
		return tools.ToolResult{}, err
	}
	found, err := s.opts.Index.Find(ctx, shelf, search.Query{Text: in.Query, Tags: in.Tags, Limit: min(in.Limit, maxSkills)})
	if err != nil {
		return tools.ToolResult{}, err
	}
	var hits []Skill
	for _, h := range found.Hits {
		if i := slices.IndexFunc(all, func(one Skill) bool { return one.Name == h.Name }); i >= 0 {
			hits = append(hits, all[i])
		}
	}
	return answer(rowsOf(hits))
}

// shelve makes of skills what an index can look through.
func shelve(list []Skill) (*tools.VisibleSet, error) {
	shelf, _ := tools.NewCatalog().(tools.LiveCatalog)
	descriptors := make([]tools.ToolDescriptor, len(list))
	for i, one := range list {
		t := tools.Tool{Name: one.Name, Description: one.Description, Tags: one.Tags, ArgsSchema: one.ArgsSchema}
		if t.Description == "" {
			t.Description, _, _ = strings.Cut(one.Instructions, "\n")
		}
		descriptors[i] = tools.ToolDescriptor{Tool: t, Invoke: neverRun}
	}
	if err := shelf.RegisterAll(descriptors); err != nil {
		return nil, err
	}
	return shelf.Snapshot().Visible(tools.CatalogFilter{}), nil
}
