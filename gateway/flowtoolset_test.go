package gateway_test

import (
	"testing"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/tools"
)

// What became of a flow's nodes is as much of a toolset as the flow is.
func TestRunsInAToolset(t *testing.T) {
	w := newGateTool()
	g := open(t, parse(t, waiting+`
toolsets:
  - {name: without, include: [text.echo]}
  - {name: with, include: [slow]}
`), &gateway.Options{Register: []func(tools.ToolCatalog) error{w.register}})
	all, local := g.LocalContext(t.Context()), g.LocalAPI()
	w.release <- nil
	if _, err := local.Call(all, api.CallRequest{Name: "slow", Arguments: []byte(`{"text":"private"}`)}); err != nil {
		t.Fatal(err)
	}
	runs, err := local.FlowRuns(all, api.RunsRequest{})
	if err != nil || len(runs.Runs) != 1 {
		t.Fatalf("%+v, %v", runs, err)
	}
	id := runs.Runs[0].ID
	for toolset, shown := range map[string]bool{"without": false, "with": true} {
		ctx, err := g.WithToolset(all, toolset)
		if err != nil {
			t.Fatal(err)
		}
		runs, err := local.FlowRuns(ctx, api.RunsRequest{})
		if err != nil || (len(runs.Runs) == 1) != shown {
			t.Errorf("%s: %+v, %v", toolset, runs, err)
		}
		_, err = local.FlowRun(ctx, id)
		_, canceled := local.CancelRun(ctx, id)
		_, resumed := local.Call(ctx, api.CallRequest{Name: "slow", Resume: id})
		for what, err := range map[string]error{"run": err, "cancel": canceled, "resume": resumed} {
			if (code(err) == api.CodeRunNotFound) == shown {
				t.Errorf("%s: %s: %v", toolset, what, err)
			}
		}
	}
}
