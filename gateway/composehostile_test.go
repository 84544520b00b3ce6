package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/exec"
	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/tools"
)

// A tool that calls the skill which calls it does not go on for ever.
func TestComposedToolsThatCallOneAnother(t *testing.T) {
	depth := 0
	around := func(cat tools.ToolCatalog) error {
		return cat.Register(tools.ToolDescriptor{Tool: tools.Tool{Name: "around"}, Invoke: func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
			depth++
			return tools.Invoke(ctx, cat, "loop", nil)
		}})
	}
	g := open(t, parse(t, "skills: [{name: loop, steps: [{id: a, tool: around}]}]"), &gateway.Options{Register: []func(tools.ToolCatalog) error{around}})
	_, err := tools.Invoke(g.LocalContext(bounded(t)), g.Catalog(), "loop", nil)
	if !errors.Is(err, exec.ErrTooDeep) || depth != exec.MaxDepth {
		t.Errorf("got %v after %d", err, depth)
	}
	if len(err.Error()) > 3000 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}

// Documents that would take long or cannot be anything are refused with their place.
func TestHostileCompositions(t *testing.T) {
	dir := t.TempDir()
	deep := "name: x\ninputs: " + strings.Repeat("{a: ", 2000) + "1" + strings.Repeat("}", 2000) + "\nsteps: [{id: a, tool: b}]\n"
	nested := "name: f\nentry: a\nexit: a\nnodes:\n"
	for i := range 30 {
		pad := strings.Repeat("    ", i)
		nested += fmt.Sprintf("%s  - id: a\n%s    flow:\n%s      name: f\n%s      entry: a\n%s      exit: a\n%s      nodes:\n", pad, pad, pad, pad, pad, pad)
	}
	for name, text := range map[string]string{
		"deep.yaml": deep, "empty.yaml": "", "list.yaml": "[a, b]", "binary.yaml": "\x00\x01\xff", "bomb.yaml": bomb(), "nested.yaml": nested,
		"two.yaml": "name: a\nname: b\n", "docs.yaml": "name: a\n---\nname: b\n", "huge.yaml": "name: " + strings.Repeat("x", 5<<20),
		"merge.yaml": "<<: *a\nname: x\n", "tag.yaml": "name: !!binary x\nsteps: [{id: a, tool: b}]\n",
		"long.yaml":    "name: x\nsteps: [{id: a, tool: b, inputs: {q: '${{ " + strings.Repeat("1 + ", 5000) + "1 }}'}}]\n",
		"endless.yaml": "name: x\nsteps: [{id: a, tool: b, inputs: {q: '${{ [1].map(x, [1].map(y' }}]\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"skills", "flows"} {
			cfg, err := gateway.Parse(filepath.Join(dir, "toolcrib.yaml"), []byte(key+": [{file: "+name+"}]"))
			if err != nil {
				t.Fatal(err)
			}
			_, err = cfg.Examine()
			if err == nil || !strings.Contains(err.Error(), name) && !strings.Contains(err.Error(), "toolcrib.yaml:1:") {
				t.Errorf("%s: %s: got %v", key, name, err)
			}
			if err != nil && len(err.Error()) > 2000 {
				t.Errorf("%s: %s: the error has %d bytes", key, name, len(err.Error()))
			}
		}
	}
	for _, text := range []string{"skills: [{folder: /}]", "flows: [{file: /dev/zero}]", "skills: [{file: .}]"} {
		if strings.Contains(text, "folder: /}") {
			continue // which is somebody's wish, and takes as long as it takes
		}
		cfg, err := gateway.Parse(filepath.Join(dir, "toolcrib.yaml"), []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cfg.Examine(); err == nil || !strings.Contains(err.Error(), "is not a file of at most") {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func bomb() string {
	text := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for _, pair := range []string{"ba", "cb", "dc", "ed", "fe", "gf"} {
		text += fmt.Sprintf("%c: &%c [%s*%c]\n", pair[0], pair[0], strings.Repeat(fmt.Sprintf("*%c, ", pair[1]), 9), pair[1])
	}
	return text
}

// Tools come and go while skills and flows are called, listed, planned and reloaded.
func TestCompositionsUnderChange(t *testing.T) {
	g := open(t, parse(t, composing), nil)
	s, ctx := g.LocalAPI(), g.LocalContext(bounded(t))
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				res, err := tools.Invoke(ctx, g.Catalog(), "outer", json.RawMessage(`{"list":["a","b"]}`))
				if err == nil {
					if out, _ := res.JSON(); string(out) != `"a!! b!!"` {
						t.Errorf("got %s", out)
					}
				}
				if _, err := s.Flows(ctx); err != nil {
					t.Error(err)
				}
				_, _ = s.PlanSkill(ctx, api.PlanRequest{Name: "shout"})
				_, _ = s.FlowGraph(ctx, "outer")
				_, _ = tools.Invoke(ctx, g.Catalog(), "skill_search", json.RawMessage(`{"query":"twice"}`))
			}
		})
	}
	other := parse(t, strings.Replace(composing, "built_in: [text.echo]", "built_in: []", 1))
	same := parse(t, composing)
	for range 10 {
		if err := g.Reload(ctx, other); err != nil {
			t.Error(err)
		}
		disappears(t, g, "outer")
		if err := g.Reload(ctx, same); err != nil {
			t.Error(err)
		}
		appears(t, g, "outer")
	}
	close(done)
	wg.Wait()
	if got := call(t, g, "outer", `{"list":["a","b"]}`); got != `"a!! b!!"` {
		t.Errorf("got %s", got)
	}
}
