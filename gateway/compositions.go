package gateway

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/internal/yamldoc"
	"github.com/toolcrib/toolcrib/skill"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/builtin"
	"github.com/toolcrib/toolcrib/tools/flow"
)

// composition is a skill or a flow of the configuration: a tool made of tools.
type composition struct {
	skill  *skill.Skill
	flow   *flow.Definition
	at     string // its place in the configuration
	file   bool   // it was read from a file
	folder string // in which its file is named, or empty
}

func (c *composition) name() string {
	if c.skill != nil {
		return c.skill.Name
	}
	return c.flow.Name
}

// runs reports whether the composition is a tool: a skill without steps is a text
// for models.
func (c *composition) runs() bool { return c.flow != nil || len(c.skill.Steps) > 0 }

// part is a tool that a composition calls, and the path to where it says so.
type part struct{ tool, path string }

// parts are the tools that the composition calls.
func (c *composition) parts() []part {
	if c.flow != nil {
		return flowParts(c.flow, "")
	}
	var list []part
	for i, step := range c.skill.Steps {
		list = append(list, part{step.ToolID, fmt.Sprintf("steps[%d].tool", i)})
	}
	return list
}

func flowParts(def *flow.Definition, root string) []part {
	var list []part
	for i := range def.Nodes {
		at := fmt.Sprintf("%snodes[%d].", root, i)
		switch n := &def.Nodes[i]; {
		case n.Tool != "":
			list = append(list, part{n.Tool, at + "tool"})
		case n.Flow != nil:
			list = append(list, flowParts(n.Flow, at+"flow.")...)
		}
	}
	return list
}

// compositions are those of a configuration, and what is wrong with them.
type compositions struct {
	cfg    *Config
	list   []composition
	faults ConfigErrors
}

// compositions reads the skills and flows of the configuration, and the files that
// it names. What can be said without the tools that they call is checked.
func (c *Config) compositions() ([]composition, ConfigErrors) {
	all := &compositions{cfg: c}
	for i := range c.Skills {
		all.addSkill(&c.Skills[i], fmt.Sprintf("skills[%d]", i))
	}
	for i := range c.Flows {
		all.addFlow(&c.Flows[i], fmt.Sprintf("flows[%d]", i))
	}
	all.names()
	for i := range all.list {
		all.check(&all.list[i])
	}
	all.circles()
	return all.list, all.faults
}

func (a *compositions) addSkill(s *Skill, at string) {
	if a.misplaced(at, reflect.ValueOf(s).Elem()) {
		return
	}
	if s.Folder == "" && s.File == "" {
		own := s.skill()
		a.list = append(a.list, composition{skill: &own, at: at})
		return
	}
	list, err := a.readSkills(s)
	a.fileFaults(at, s.Folder, s.File, err)
	for i := range list {
		a.list = append(a.list, composition{skill: &list[i], at: at, file: true, folder: s.Folder})
	}
}

func (a *compositions) readSkills(s *Skill) ([]skill.Skill, error) {
	if s.Folder != "" {
		return skill.Load(os.DirFS(a.path(s.Folder)))
	}
	parse := skill.ParseYAML
	if strings.EqualFold(filepath.Ext(s.File), ".md") {
		parse = skill.ParseMarkdown
	}
	doc, err := readDocument(a.path(s.File))
	if err != nil {
		return nil, err
	}
	one, err := parse(s.File, doc)
	if err != nil {
		return nil, err
	}
	return []skill.Skill{one}, nil
}

func (a *compositions) addFlow(f *Flow, at string) {
	if a.misplaced(at, reflect.ValueOf(f).Elem()) || a.inner(f, at) {
		return
	}
	if f.Folder == "" && f.File == "" {
		own := f.definition()
		a.list = append(a.list, composition{flow: &own, at: at})
		return
	}
	list, err := a.readFlows(f)
	a.fileFaults(at, f.Folder, f.File, err)
	for i := range list {
		a.list = append(a.list, composition{flow: &list[i], at: at, file: true, folder: f.Folder})
	}
}

func (a *compositions) readFlows(f *Flow) ([]flow.Definition, error) {
	if f.Folder != "" {
		return flow.Load(os.DirFS(a.path(f.Folder)))
	}
	doc, err := readDocument(a.path(f.File))
	if err != nil {
		return nil, err
	}
	one, err := flow.ParseYAML(f.File, doc)
	if err != nil {
		return nil, err
	}
	return []flow.Definition{one}, nil
}

// inner refuses a flow inside a flow that is to be read from elsewhere.
func (a *compositions) inner(f *Flow, at string) bool {
	found := false
	for i := range f.Nodes {
		within := f.Nodes[i].Flow
		if within == nil {
			continue
		}
		path := fmt.Sprintf("%s.nodes[%d].flow", at, i)
		if within.File != "" || within.Folder != "" {
			a.fault(path, "a flow inside a flow cannot be read from a file", "its keys here, or tool with the name of a flow of its own")
			found = true
		}
		found = a.inner(within, path) || found
	}
	return found
}

// misplaced refuses a file or folder beside other keys, and demands a name where
// there is neither.
func (a *compositions) misplaced(at string, v reflect.Value) bool {
	var given []string
	for i := range v.NumField() {
		key := v.Type().Field(i).Tag.Get("yaml")
		if _, written := a.cfg.places[join(at, key)]; written || !v.Field(i).IsZero() {
			given = append(given, key)
		}
	}
	elsewhere := slices.IndexFunc(given, func(key string) bool { return key == "folder" || key == "file" })
	switch {
	case elsewhere < 0 && v.FieldByName("Name").String() == "":
		a.fault(join(at, "name"), "missing", "a value: it is required, unless there is file or folder")
	case elsewhere >= 0 && len(given) > 1:
		other := given[0]
		if elsewhere == 0 {
			other = given[1]
		}
		a.fault(join(at, other), "stands beside "+given[elsewhere], given[elsewhere]+" alone")
	default:
		return false
	}
	return true
}

func (a *compositions) fault(path, problem, expected string) {
	a.faults = append(a.faults, a.cfg.faultAt(path, problem, expected))
}

func (a *compositions) path(name string) string { return absolute(a.cfg.dir, name) }

// maxDocument bounds a file of a skill or flow, in bytes.
const maxDocument = 4 << 20

func readDocument(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, bare(err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxDocument {
		return nil, fmt.Errorf("is not a file of at most %d bytes", maxDocument)
	}
	doc, err := os.ReadFile(path)
	if err != nil {
		return nil, bare(err)
	}
	return doc, nil
}

// fileFaults states what is wrong with a file, or with those of a folder.
func (a *compositions) fileFaults(at, folder, file string, err error) {
	key := "file"
	if folder != "" {
		key = "folder"
	}
	found := faultsIn(err)
	if err != nil && len(found) == 0 {
		a.fault(join(at, key), fmt.Sprintf("%q: %v", clip(folder+file), bare(err)), "")
	}
	for _, f := range found {
		a.faults = append(a.faults, located(folder, f))
	}
}

// located is a fault in a file that is named as seen from a folder.
func located(folder string, f *yamldoc.Fault) *ConfigError {
	return &ConfigError{File: filepath.Join(folder, f.File), Line: f.Line, Column: f.Column, Path: f.Path, Problem: f.Err.Error()}
}

// faultsIn returns what an error says of documents.
func faultsIn(err error) []*yamldoc.Fault {
	switch err := err.(type) {
	case *yamldoc.Fault:
		return []*yamldoc.Fault{err}
	case interface{ Unwrap() error }:
		return faultsIn(err.Unwrap())
	case interface{ Unwrap() []error }:
		var all []*yamldoc.Fault
		for _, one := range err.Unwrap() {
			all = append(all, faultsIn(one)...)
		}
		return all
	}
	return nil
}

// planned states what is wrong with a composition, at its place in the
// configuration or in its file.
func (a *compositions) planned(c *composition, err error) {
	f, ok := errors.AsType[*yamldoc.Fault](err)
	switch {
	case !ok:
		a.fault(c.at, err.Error(), "")
	case c.file:
		a.faults = append(a.faults, located(c.folder, f))
	default:
		a.fault(strings.TrimSuffix(join(c.at, f.Path), "."), f.Err.Error(), "")
	}
}

// place states a fault of the value at a path inside a composition.
func (a *compositions) place(c *composition, path, problem string) {
	err := errors.New(problem)
	var doc *yamldoc.Doc
	if c.skill != nil {
		doc = c.skill.Document
	} else {
		doc = c.flow.Document()
	}
	a.planned(c, doc.Fault(path, err))
}

// names refuses a name that two have, or one of the tools that are always there.
func (a *compositions) names() {
	first := map[string]*composition{}
	reserved := slices.Concat(builtin.Names(), builtin.SkillNames(), []string{builtin.FetchName})
	for i := range a.list {
		c := &a.list[i]
		switch other := first[c.name()]; {
		case other != nil:
			a.place(c, "name", fmt.Sprintf("%q is the name of %s too", clip(c.name()), other.whence()))
		case slices.Contains(reserved, c.name()):
			a.place(c, "name", fmt.Sprintf("%q is the name of a built-in tool", clip(c.name())))
		default:
			first[c.name()] = c
		}
	}
}

// whence says where the composition stands, for people.
func (c *composition) whence() string {
	if !c.file {
		return c.at
	}
	if c.skill != nil && c.skill.Document != nil {
		return filepath.Join(c.folder, c.skill.Document.File)
	}
	if c.flow != nil && c.flow.Document() != nil {
		return filepath.Join(c.folder, c.flow.Document().File)
	}
	return c.at
}

// check looks at one composition by itself: its tools may be anything.
func (a *compositions) check(c *composition) {
	if !c.runs() {
		if err := tools.CheckName(c.name()); err != nil {
			a.place(c, "name", err.Error())
		}
		return
	}
	if _, err := c.build(context.Background(), blind{}, nil); err != nil {
		a.planned(c, err)
	}
}

// circles refuses compositions that call themselves by way of others.
func (a *compositions) circles() {
	byName := map[string]*composition{}
	for i := range a.list {
		byName[a.list[i].name()] = &a.list[i]
	}
	walk := &circling{byName: byName, state: map[*composition]int{}}
	for i := range a.list {
		if part, path := walk.from(&a.list[i], nil); path != "" {
			a.place(part.owner, part.path, "calls itself: "+path)
			return
		}
	}
}

// circling looks for circles among compositions, depth first.
type circling struct {
	byName map[string]*composition
	state  map[*composition]int // 1 while it is on the trail, 2 once it is clear
}

type calling struct {
	owner *composition
	path  string
}

// from returns the call that closes a circle and the names on it, or nothing.
func (w *circling) from(c *composition, trail []string) (calling, string) {
	if w.state[c] == 2 {
		return calling{}, ""
	}
	w.state[c] = 1
	trail = append(trail, c.name())
	for _, p := range c.parts() {
		next := w.byName[p.tool]
		if next == nil {
			continue
		}
		if w.state[next] == 1 {
			circle := append(slices.Clone(trail[slices.Index(trail, next.name()):]), next.name())
			return calling{c, p.path}, strings.Join(circle, " → ")
		}
		if call, path := w.from(next, trail); path != "" {
			return call, path
		}
	}
	w.state[c] = 2
	return calling{}, ""
}
