package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/tools"
)

// composing is a configuration with a skill and two flows over built-in tools, one
// of which calls the other.
const composing = `
tools: {built_in: [text.echo]}
skills:
  - name: shout
    description: Say it twice.
    tags: [voice]
    inputs: {type: object, properties: {text: {type: string}}, required: [text]}
    steps:
      - {id: one, tool: text.echo, inputs: {text: "${{ inputs.text }}!"}}
      - {id: two, tool: text.echo, inputs: {text: "${{ steps.one.text }}!"}, needs: [one]}
    output: {said: "${{ steps.two.text }}", number: 9007199254740993}
flows:
  - name: outer
    inputs: {type: object, properties: {list: {type: array, items: {type: string}}}, required: [list]}
    entry: each
    exit: last
    budget: {deadline_ms: 30000, calls: 20}
    nodes:
      - id: each
        tool: inner
        for_each: {items: inputs.list, limit: 5, parallel: 2}
        inputs: {text: "${{ item }}"}
        next: [{to: last, when: "size(nodes.each) > 0"}]
      - {id: last, tool: text.echo, inputs: {text: "${{ nodes.each.map(e, e.said).join(' ') }}"}}
    output: "${{ nodes.last.text }}"
  - name: inner
    inputs: {type: object, properties: {text: {type: string}}, required: [text]}
    entry: a
    exit: a
    nodes: [{id: a, tool: shout, inputs: {text: "${{ inputs.text }}"}}]
`

func TestSkillsAndFlowsAreTools(t *testing.T) {
	g := open(t, parse(t, composing), nil)
	if got := names(t, g); !slices.Equal(got, []string{"inner", "outer", "shout", "text.echo"}) {
		t.Errorf("got %v", got)
	}
	if got := call(t, g, "shout", `{"text":"hey"}`); got != `{"number":9007199254740993,"said":"hey!!"}` {
		t.Errorf("got %s", got)
	}
	if got := call(t, g, "outer", `{"list":["a","b"]}`); got != `"a!! b!!"` {
		t.Errorf("got %s", got)
	}
	_, err := tools.Invoke(g.LocalContext(bounded(t)), g.Catalog(), "outer", json.RawMessage(`{"list":["1","2","3","4","5","6"]}`))
	if err == nil || !strings.Contains(err.Error(), "inputs.list gives 6 elements; at most 5 are allowed") {
		t.Errorf("got %v", err)
	}
	states := g.Sources()
	if len(states) != 1 || states[0].Kind != "composed" || states[0].State != gateway.SourceReady || states[0].Tools != 3 || len(states[0].Refused) != 0 {
		t.Errorf("got %+v", states)
	}
}

// A skill whose tool is not there is told of with the reason, comes with the tool,
// and goes with it.
func TestCompositionsFollowTheirTools(t *testing.T) {
	g := open(t, parse(t, `
skills:
  - {name: greets, steps: [{id: a, tool: greet, inputs: {text: x}}]}
  - {name: wrong, steps: [{id: a, tool: greet, inputs: {text: 7}}]}
flows:
  - {name: calls, entry: a, exit: a, nodes: [{id: a, tool: greets}]}
`), nil)
	refused := func() []string {
		var out []string
		for _, r := range g.Sources()[0].Refused {
			out = append(out, r.Name+": "+r.Reason)
		}
		return out
	}
	if got := refused(); !slices.Equal(got, []string{"greets: needs what is not there: greet", "wrong: needs what is not there: greet", "calls: needs what is not there: greets"}) {
		t.Errorf("got %q", got)
	}
	if got := names(t, g); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	if err := registerGreet(g.Catalog()); err != nil {
		t.Fatal(err)
	}
	appears(t, g, "calls")
	if got := call(t, g, "calls", `{}`); !strings.Contains(got, "x") {
		t.Errorf("got %s", got)
	}
	await(t, g, func() bool {
		got := refused()
		return len(got) == 1 && strings.Contains(got[0], "wrong: ") && strings.Contains(got[0], "/text: expected string, got number")
	})
	if err := g.Catalog().Deregister("greet"); err != nil {
		t.Fatal(err)
	}
	disappears(t, g, "calls")
}

// appears waits until there is a tool of that name.
func appears(t *testing.T, g *gateway.Gateway, name string) { becomes(t, g, name, true) }

// disappears waits until there is none.
func disappears(t *testing.T, g *gateway.Gateway, name string) { becomes(t, g, name, false) }

func becomes(t *testing.T, g *gateway.Gateway, name string, there bool) {
	t.Helper()
	await(t, g, func() bool {
		_, found := g.Catalog().Resolve(name)
		return found == there
	})
}

// Whoever may not call one of the tools does not see what is made of them.
func TestCompositionsDemandTheScopesOfTheirTools(t *testing.T) {
	secret := func(cat tools.ToolCatalog) error {
		return cat.Register(tools.ToolDescriptor{Tool: tools.Tool{Name: "secret", AuthScopes: []string{"secrets"}},
			Invoke: func(context.Context, json.RawMessage) (tools.ToolResult, error) {
				return tools.ToolResult{Value: "s"}, nil
			}})
	}
	text := `
skills: [{name: reveals, steps: [{id: a, tool: secret}]}]
flows: [{name: passes, entry: a, exit: a, nodes: [{id: a, tool: reveals}]}]
`
	opts := func() *gateway.Options { return &gateway.Options{Register: []func(tools.ToolCatalog) error{secret}} }
	if got := names(t, open(t, parse(t, text), opts())); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	with := open(t, parse(t, text+"tools: {granted_scopes: [secrets]}"), opts())
	if got := names(t, with); !slices.Equal(got, []string{"passes", "reveals", "secret"}) {
		t.Errorf("got %v", got)
	}
	if got := call(t, with, "passes", `{}`); got != `"s"` {
		t.Errorf("got %s", got)
	}
}

func TestCompositionsFromFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write("skills/one.yaml", "name: one\nsteps: [{id: a, tool: text.echo, inputs: {text: x}}]")
	write("skills/review/SKILL.md", "---\nname: review\ndescription: Read it twice.\nlicense: MIT\nallowed-tools: [text.echo]\n---\n# Review\n")
	write("skills/locked/SKILL.md", "---\nname: locked\nallowed-tools: Bash(git:*), Read\n---\nUses tools that are not here.\n")
	write("two.md", "---\nname: two\nsteps: [{id: a, tool: one}]\n---\nText.\n")
	write("flows/three.yml", "name: three\nentry: a\nexit: a\nnodes: [{id: a, tool: two}]")
	write("toolcrib.yaml", "tools: {built_in: [text.echo]}\nskills: [{folder: skills}, {file: two.md}]\nflows: [{folder: flows}]\n")
	cfg, err := gateway.Load(filepath.Join(dir, "toolcrib.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	g := open(t, cfg, nil)
	if got := call(t, g, "three", `{}`); got != `{"text":"x"}` {
		t.Errorf("got %s", got)
	}
	if got := call(t, g, "skill_list", `{}`); got != `{"skills":[{"name":"one"},{"name":"review","description":"Read it twice."},{"name":"two"}],"count":3}` {
		t.Errorf("got %s", got)
	}
	if got := call(t, g, "skill_get", `{"name":"review"}`); !strings.Contains(got, `"instructions":"# Review"`) {
		t.Errorf("got %s", got)
	}
	if got := call(t, g, "skill_get", `{"name":"locked"}`); !strings.Contains(got, `"found":false`) {
		t.Errorf("got %s", got)
	}

	write("skills/one.yaml", "name: one\nsteps: [{id: a, tol: text.echo}]")
	write("skills/again.yaml", "name: two\nsteps: [{id: a, tool: text.echo, inputs: {text: '${{ inputs.q }}'}}]")
	write("flows/three.yml", "name: three\nentry: a\nexit: q\nnodes: [{id: a, tool: two}]")
	err = g.Reload(bounded(t), cfg)
	if err == nil {
		t.Fatal("files that are wrong are applied")
	}
	for _, want := range []string{
		`skills/one.yaml:2:17: unknown field "tol"`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got\n%v\nwant %s", err, want)
		}
	}
	write("skills/one.yaml", "name: one\nsteps: [{id: a, tool: text.echo, inputs: {text: y}}]")
	err = g.Reload(bounded(t), cfg)
	for _, want := range []string{
		`two.md:2:7: name: "two" is the name of skills/again.yaml too`,
		`skills/again.yaml:2:49: steps[0].inputs.text: step "a": expr: /text: 1:7: inputs.q cannot be read`,
		`flows/three.yml:3:7: exit: there is no node "q"; expected one of a`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got\n%v\nwant %s", err, want)
		}
	}
	if err := errors.Join(os.Remove(filepath.Join(dir, "skills/again.yaml"))); err != nil {
		t.Fatal(err)
	}
	write("flows/three.yml", "name: four\nentry: a\nexit: a\nnodes: [{id: a, tool: two}]")
	if err := g.Reload(bounded(t), cfg); err != nil {
		t.Fatal(err)
	}
	appears(t, g, "four")
	disappears(t, g, "three")
	if got := call(t, g, "four", `{}`); got != `{"text":"y"}` {
		t.Errorf("got %s", got)
	}
}

func TestReloadAddsAndRemovesSkills(t *testing.T) {
	g := open(t, parse(t, "tools: {built_in: [text.echo]}"), nil)
	if err := g.Reload(bounded(t), parse(t, composing)); err != nil {
		t.Fatal(err)
	}
	appears(t, g, "outer")
	appears(t, g, "skill_get")
	if err := g.Reload(bounded(t), parse(t, "tools: {built_in: [text.echo]}")); err != nil {
		t.Fatal(err)
	}
	if got := names(t, g); !slices.Equal(got, []string{"text.echo"}) {
		t.Errorf("got %v", got)
	}
	disappears(t, g, "skill_get")
}
