package skill

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/internal/yamldoc"
)

// declared is a skill as YAML states it.
type declared struct {
	Name        string         `yaml:"name"`
	Description string         `yaml:"description"`
	Inputs      map[string]any `yaml:"inputs"`
	Output      any            `yaml:"output"`
	Tags        []string       `yaml:"tags"`
	Steps       []declaredStep `yaml:"steps"`
}

type declaredStep struct {
	ID     string         `yaml:"id"`
	Tool   string         `yaml:"tool"`
	Inputs map[string]any `yaml:"inputs"`
	Needs  []string       `yaml:"needs"`
}

// ParseYAML reads one skill:
//
//	name: triage
//	description: File a report where similar ones are.
//	inputs: {type: object, properties: {title: {type: string}}, required: [title]}
//	steps:
//	  - {id: find, tool: tracker_search, inputs: {q: "${{ inputs.title }}"}}
//	  - {id: open, tool: tracker_create, inputs: {title: "${{ inputs.title }}", like: "${{ steps.find.items[0].id }}"}}
//	output: ${{ steps.open }}
//
// An unknown key is an error. Errors name the file, line and column.
func ParseYAML(file string, doc []byte) (Skill, error) {
	d := declared{}
	from := &Document{File: file, Data: doc}
	if err := from.Decode(&d, true); err != nil {
		return Skill{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return d.skill(from)
}

func (d *declared) skill(from *Document) (Skill, error) {
	s := Skill{Name: d.Name, Description: d.Description, Output: d.Output, Tags: d.Tags, Document: from}
	if d.Inputs != nil {
		raw, err := json.Marshal(d.Inputs)
		if err != nil {
			return Skill{}, fmt.Errorf("%w: %w", ErrInvalid, from.Fault("inputs", err))
		}
		s.Inputs = raw
	}
	for _, step := range d.Steps {
		s.Steps = append(s.Steps, Step{ID: step.ID, ToolID: step.Tool, Inputs: step.Inputs, Needs: step.Needs})
	}
	if s.Name == "" {
		return Skill{}, fmt.Errorf("%w: %w", ErrInvalid, from.Fault("", errors.New("it has no name")))
	}
	return s, nil
}

// fence opens and closes the front matter of a SKILL.md.
const fence = "---"

// frontMatter is what the front matter of a SKILL.md may say, beside a workflow
// of our own. Other keys belong to other programs.
type frontMatter struct {
	Skill        declared `yaml:",inline"`
	AllowedTools any      `yaml:"allowed-tools"`
}

// ParseMarkdown reads a SKILL.md: front matter with name and description, and
// perhaps allowed-tools, inputs, steps and output, before instructions for a
// model. A skill without steps can be read and not planned.
func ParseMarkdown(file string, doc []byte) (Skill, error) {
	text := strings.ReplaceAll(strings.TrimPrefix(string(doc), "\ufeff"), "\r\n", "\n")
	rest, ok := strings.CutPrefix(text, fence+"\n")
	if !ok {
		return Skill{}, noFence(file, "expected a line of %q, which opens the front matter", fence)
	}
	front, body, ok := strings.Cut("\n"+rest, "\n"+fence+"\n")
	if !ok {
		if front, ok = strings.CutSuffix("\n"+rest, "\n"+fence); !ok {
			return Skill{}, noFence(file, "the front matter has no line of %q that closes it", fence)
		}
	}
	var matter frontMatter
	from := &Document{File: file, Data: []byte(front)} // its lines are those of the file
	if err := from.Decode(&matter, false); err != nil {
		return Skill{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	s, err := matter.Skill.skill(from)
	if err != nil {
		return Skill{}, err
	}
	if s.Uses, err = allowed(matter.AllowedTools); err != nil {
		return Skill{}, fmt.Errorf("%w: %w", ErrInvalid, from.Fault("allowed-tools", err))
	}
	s.Instructions = strings.TrimSpace(body)
	return s, nil
}

func noFence(file, format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInvalid, &yamldoc.Fault{File: file, Line: 1, Column: 1, Err: fmt.Errorf(format, args...)})
}

// allowed reads a list of tools, or a text with spaces or commas between them.
func allowed(v any) ([]string, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		return strings.FieldsFunc(v, func(r rune) bool { return r == ' ' || r == ',' || r == '\n' || r == '\t' }), nil
	case []any:
		var names []string
		for _, e := range v {
			name, ok := e.(string)
			if !ok {
				return nil, fmt.Errorf("expected names, found %v", e)
			}
			names = append(names, name)
		}
		return names, nil
	}
	return nil, fmt.Errorf("expected a list of names")
}

// Load reads all skills of a folder: each *.yaml and *.yml file, and each
// SKILL.md, in it and below, apart from folders whose names begin with a dot. They
// are sorted by name. What is wrong with several files is reported at once; two
// skills of one name are an error.
func Load(folder fs.FS) ([]Skill, error) {
	var (
		skills []Skill
		faults []error
	)
	files := map[string]string{}
	err := yamldoc.Each(folder, holdsSkill, func(file string, data []byte, err error) {
		var s Skill
		if err == nil {
			s, err = parserOf(file)(file, data)
		}
		switch other, taken := files[s.Name]; {
		case err != nil:
			faults = append(faults, err)
		case taken:
			faults = append(faults, fmt.Errorf("%w: %w", ErrInvalid, s.Document.Fault("name", fmt.Errorf("the name %q is that of %s too", s.Name, other))))
		default:
			files[s.Name] = file
			skills = append(skills, s)
		}
	})
	if err = errors.Join(append(faults, err)...); err != nil {
		return nil, err
	}
	slices.SortFunc(skills, func(a, b Skill) int { return strings.Compare(a.Name, b.Name) })
	return skills, nil
}

func holdsSkill(file string) bool { return parserOf(file) != nil }

// parserOf returns what reads the file, or nil for one that holds no skill.
func parserOf(file string) func(file string, doc []byte) (Skill, error) {
	switch {
	case path.Base(file) == "SKILL.md":
		return ParseMarkdown
	case path.Ext(file) == ".yaml" || path.Ext(file) == ".yml":
		return ParseYAML
	}
	return nil
}
