package runs_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/store/sqlstore"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/flow"
	"github.com/toolcrib/toolcrib/tools/flow/runs"
)

// The child runs a flow in the folder that this variable names, whose last node has
// the effect that follows the colon, and never comes to its end.
const childEnv = "TOOLCRIB_TEST_RUNS_CHILD"

const crashLease = 300 * time.Millisecond

func child() {
	dir, effect, ok := strings.Cut(os.Getenv(childEnv), ":")
	if !ok {
		return
	}
	err := func() error {
		db, err := sqlstore.Open(context.Background(), filepath.Join(dir, "runs.db"), nil)
		if err != nil {
			return err
		}
		f, err := crashing(dir, tools.SideEffect(effect), runs.New(db, &runs.Options{Lease: crashLease}))
		if err != nil {
			return err
		}
		_, err = f.Run(ada(context.Background()), json.RawMessage(`{"text":"x"}`))
		return err
	}()
	fmt.Println("the child came to an end:", err)
	os.Exit(1)
}

// worker runs the tools of the flow: one writes a line, one waits until a file is
// there.
type worker struct {
	dir    string
	effect tools.SideEffect
}

func (w worker) Describes() bool { return true }

func (w worker) Describe(_ context.Context, name string) (tools.Tool, bool) {
	effect := tools.SideEffectWrite
	if name == "wait" {
		effect = w.effect
	}
	return tools.Tool{Name: name, SideEffects: effect}, true
}

func (w worker) Run(ctx context.Context, name string, inputs map[string]any) (any, error) {
	if name == "write" {
		f, err := os.OpenFile(filepath.Join(w.dir, "lines"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		_, err = fmt.Fprintln(f, inputs["text"])
		return "written", errors.Join(err, f.Close())
	}
	fmt.Println("waiting")
	if _, err := os.Stat(filepath.Join(w.dir, "go")); err == nil {
		return "went on", nil
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func crashing(dir string, effect tools.SideEffect, log flow.Recorder) (*flow.Flow, error) {
	def, err := flow.ParseYAML("crash.yaml", []byte(`
name: crash
inputs: {type: object, properties: {text: {type: string}}}
entry: write
exit: wait
nodes:
  - {id: write, tool: write, inputs: {text: "${{ inputs.text }}"}, next: [{to: wait}]}
  - {id: wait, tool: wait, inputs: {after: "${{ nodes.write }}"}}
`))
	if err != nil {
		return nil, err
	}
	return flow.Compose(def, &flow.Options{Runner: worker{dir, effect}, Recorder: log})
}

// A process that is killed leaves its runs interrupted. They go on in another
// process, which repeats nothing that may have had an effect.
func TestRunsSurviveAKilledProcess(t *testing.T) {
	for effect, want := range map[tools.SideEffect]error{tools.SideEffectRead: nil, tools.SideEffectWrite: tools.ErrOutcomeUnknown} {
		t.Run(string(effect), func(t *testing.T) {
			dir := t.TempDir()
			kill(t, dir, effect)
			log, _ := open(t, filepath.Join(dir, "runs.db"), nil)
			s := awaitStatus(t, log, flow.RunInterrupted)
			state, err := log.Get(ada(t.Context()), s.ID)
			if err != nil || string(state.Inputs) != `{"text":"x"}` || len(state.Nodes) != 2 ||
				state.Nodes[0].Status != flow.Done || state.Nodes[1].Status != flow.Started {
				t.Fatalf("got %+v, %v", state, err)
			}
			if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := crashing(dir, effect, log)
			if err != nil {
				t.Fatal(err)
			}
			out, err := f.Resume(ada(t.Context()), s.ID)
			if !errors.Is(err, want) || err == nil && out != "went on" {
				t.Errorf("got %v, %v", out, err)
			}
			if lines, err := os.ReadFile(filepath.Join(dir, "lines")); err != nil || string(lines) != "x\n" {
				t.Errorf("got %q, %v", lines, err)
			}
			if s := latest(t, log); want == nil && s.Status != flow.RunDone {
				t.Errorf("got %+v", s)
			}
		})
	}
}

// kill starts a child, waits until its flow waits, and kills it.
func kill(t *testing.T, dir string, effect tools.SideEffect) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childEnv+"="+dir+":"+string(effect))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if killErr := cmd.Process.Kill(); killErr != nil {
		t.Error(killErr)
	}
	_ = cmd.Wait() // it was killed
	if err != nil || line != "waiting\n" {
		t.Fatalf("got %q, %v", line, err)
	}
}
