package gateway

import (
	"cmp"
	"slices"

	"github.com/toolcrib/toolcrib/skill"
	"github.com/toolcrib/toolcrib/tools/builtin"
)

// hasSkillTools reports whether the tools about skills are there: where there are
// skills, and where the operator names one of them.
func (c *Config) hasSkillTools() bool {
	return len(c.Skills) > 0 || slices.ContainsFunc(c.Tools.BuiltIn, func(name string) bool { return slices.Contains(builtin.SkillNames(), name) })
}

// registerSkillTools adds the tools about skills, if there are to be any.
func (g *Gateway) registerSkillTools(cfg *Config) error {
	if !cfg.hasSkillTools() {
		return nil
	}
	return builtin.RegisterSkills(g.cat, &builtin.SkillOptions{List: g.shownSkills, Memory: g.found, Index: g.index})
}

// reloadSkillTools adds the tools about skills where they are new, and removes them
// where they are not wanted any more. With an error nothing changed.
func (g *Gateway) reloadSkillTools(before, after *Config) error {
	switch had, has := before.hasSkillTools(), after.hasSkillTools(); {
	case has && !had:
		return g.registerSkillTools(after)
	case had && !has:
		for _, name := range builtin.SkillNames() {
			_ = g.cat.Deregister(name) // a Go program may have removed it
		}
	}
	return nil
}

// shownSkills are the skills of the configuration as the tools about skills show
// them: those that run as long as they can, and those that are texts for models.
func (g *Gateway) shownSkills() []builtin.Skill {
	c := g.composer()
	if c == nil {
		return nil
	}
	var list []builtin.Skill
	for i := range c.list {
		s := c.list[i].skill
		if s == nil {
			continue
		}
		shown := builtin.Skill{Name: s.Name, Description: s.Description, Tags: s.Tags, Instructions: s.Instructions, Tools: s.Tools()}
		if c.list[i].runs() {
			made, ok := c.made(s.Name)
			if !ok {
				continue
			}
			shown.ArgsSchema, shown.Steps = made.plan.InputsSchema(), stepsOf(made.plan)
		}
		list = append(list, shown)
	}
	slices.SortFunc(list, func(a, b builtin.Skill) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// ReadsCatalog reports whether the tool of that name tells of others, so that who
// calls it wants all of them to be there.
func ReadsCatalog(name string) bool {
	return slices.Contains(builtin.MetaNames(), name) || slices.Contains(builtin.SkillNames(), name)
}

func stepsOf(p *skill.Plan) []builtin.SkillStep {
	var out []builtin.SkillStep
	for _, step := range p.Skill().Steps {
		out = append(out, builtin.SkillStep{ID: step.ID, Tool: step.ToolID})
	}
	return out
}
