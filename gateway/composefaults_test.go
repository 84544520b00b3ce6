package gateway_test

import (
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/gateway"
)

func TestCompositionFaults(t *testing.T) {
	for text, want := range map[string]string{
		"skills: [{nam: x}]":                                                                                               "1:11: skills[0].nam: unknown key; expected name",
		"skills: [{steps: [{id: a, tool: b}]}]":                                                                            "1:10: skills[0].name: missing",
		"skills: [{file: a.yaml, name: x}]":                                                                                "1:31: skills[0].name: stands beside file; expected file alone",
		"skills: [{file: nosuch.yaml}]":                                                                                    `1:17: skills[0].file: "nosuch.yaml": no such file or directory`,
		"skills: [{folder: nosuch}]":                                                                                       `1:19: skills[0].folder: "nosuch": no such file or directory`,
		"skills: [{name: x, inputs: [a], steps: [{id: a, tool: b}]}]":                                                      "1:28: skills[0].inputs: is not a mapping",
		"skills: [{name: x, inputs: {type: 7}, steps: [{id: a, tool: b}]}]":                                                "1:28: skills[0].inputs: its inputs: ",
		"skills: [{name: x, steps: [{id: a}]}]":                                                                            "1:28: skills[0].steps[0].tool: missing",
		"skills: [{name: x, steps: [{id: a, tool: b}, {id: a, tool: b}]}]":                                                 `1:51: skills[0].steps[1].id: "a" is the ID of step 1 too`,
		"skills: [{name: x, steps: [{id: a, tool: b, needs: [c]}]}]":                                                       `1:53: skills[0].steps[0].needs[0]: step "a" needs "c"; expected one of a`,
		"skills: [{name: x, steps: [{id: a, tool: b, needs: [c]}, {id: c, tool: b, needs: [a]}]}]":                         `skills[0].steps: the needs of its steps go round in a circle: a → c → a`,
		"skills: [{name: x, steps: [{id: a, tool: b, inputs: {q: {r: ['${{ inputs.z }}']}}}]}]":                            `1:62: skills[0].steps[0].inputs.q.r[0]: step "a": expr: /q/r/0: 1:7: inputs.z cannot be read`,
		"skills: [{name: x, steps: [{id: a, tool: b, inputs: {q: .inf}}]}]":                                                `1:57: skills[0].steps[0].inputs.q: is not a finite number`,
		"skills: [{name: x, steps: [{id: a, tool: x}]}]":                                                                   `1:42: skills[0].steps[0].tool: calls itself: x → x`,
		"skills: [{name: tool_get, steps: [{id: a, tool: x}]}]":                                                            `1:17: skills[0].name: "tool_get" is the name of a built-in tool`,
		"skills: [{name: x, steps: [{id: a, tool: y}]}]\nflows: [{name: y, entry: a, exit: a, nodes: [{id: a, tool: x}]}]": `calls itself: x → y → x`,
		"skills: [{name: x, steps: [{id: a, tool: b}]}]\nflows: [{name: x, entry: a, exit: a, nodes: [{id: a, tool: b}]}]": `2:16: flows[0].name: "x" is the name of skills[0] too`,
		"flows: [{name: x, entry: a, exit: a, nodes: [{id: a}]}]":                                                          `1:46: flows[0].nodes[0]: node "a": expected just one of tool, func, flow and ask`,
		"flows: [{name: x, entry: a, exit: b, nodes: [{id: a, tool: t}]}]":                                                 `1:35: flows[0].exit: there is no node "b"`,
		"flows: [{name: x, entry: a, exit: a, nodes: [{id: a, tool: t}, {id: b, tool: t}]}]":                               `1:64: flows[0].nodes[1]: no path leads from the entry "a" to "b"`,
		"flows: [{name: x, entry: a, exit: a, nodes: [{id: a, tool: t, join: some}]}]":                                     `flows[0].nodes[0].join: unknown value "some"; expected any or all`,
		"flows: [{name: x, entry: a, exit: a, nodes: [{id: a, tool: t, for_each: {items: 'inputs.q'}}]}]":                  `1:81: flows[0].nodes[0].for_each.items: `,
		"flows: [{name: x, entry: a, exit: a, nodes: [{id: a, tool: t, for_each: {items: '[1]', limit: 1000000}}]}]":       `flows[0].nodes[0].for_each.limit: is too large; expected at most 100000`,
		"flows: [{name: x, entry: a, exit: a, nodes: [{id: a, flow: {file: y.yaml}}]}]":                                    `flows[0].nodes[0].flow: a flow inside a flow cannot be read from a file`,
		"flows: [{name: x, entry: a, exit: a, nodes: [{id: a, flow: {name: y, entry: b, exit: b, nodes: [{id: b, tool: t, inputs: {q: '${{ nodes.z }}'}}]}}]}]": `1:126: flows[0].nodes[0].flow.nodes[0].inputs.q: `,
		"flows: [{name: x, entry: a, exit: a, budget: {hops: 3}, nodes: [{id: a, tool: t}]}]":                                                                   `flows[0].budget.hops: unknown key; expected`,
	} {
		cfg, err := gateway.Parse("toolcrib.yaml", []byte(text))
		if err == nil {
			_, err = cfg.Examine()
		}
		if err == nil || !strings.Contains(err.Error(), "toolcrib.yaml:"+want) && !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// What is checked without a source: tools that cannot be there, and types where
// they are known.
func TestExamineLooksIntoCompositions(t *testing.T) {
	for text, want := range map[string]string{
		"tools: {built_in: [text.echo]}\nskills: [{name: x, steps: [{id: a, tool: text.echo, inputs: {text: 7}}]}]": `error 2:68: skills[0].steps[0].inputs.text: step "a": the inputs of "text.echo": /text: expected string, got number`,
		"tools: {built_in: [text.echo]}\nskills: [{name: x, steps: [{id: a, tool: text.echo, inputs: {}}]}]":        `missing required property "text"`,
		"tools: {built_in: [text.echo]}\nskills: [{name: x, steps: [{id: a, tool: text.ecko}]}]":                    `warning 2:42: skills[0].steps[0].tool: no source has a tool "text.ecko"; expected text.echo`,
		"skills: [{name: x, steps: [{id: a, tool: text.echo}]}]":                                                    `warning 1:42: skills[0].steps[0].tool: no source has a tool "text.echo"; expected it in tools.built_in`,
		"tools: {mcp_servers: [{name: m, command: [sh]}]}\nskills: [{name: x, steps: [{id: a, tool: m_anything}]}]": ``,
		"tools: {built_in: [text.echo]}\nskills: [{name: x, inputs: {type: object, properties: {n: {type: integer}}}, steps: [{id: a, tool: text.echo, inputs: {text: t}}]}]\nflows: [{name: y, entry: a, exit: a, nodes: [{id: a, tool: x, inputs: {n: word}}]}]": `error 3:75: flows[0].nodes[0].inputs.n: node "a": /n: expected integer, got string`,
	} {
		cfg, err := gateway.Parse("toolcrib.yaml", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		warnings, err := cfg.Examine()
		got := ""
		if err != nil {
			got = "error " + strings.TrimPrefix(err.Error(), "toolcrib.yaml:")
		} else if len(warnings) > 0 {
			got = "warning " + strings.TrimPrefix(warnings.Error(), "toolcrib.yaml:")
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s:\ngot  %s\nwant %s", text, got, want)
		}
	}
}
