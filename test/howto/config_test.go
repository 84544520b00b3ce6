package howto

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/tools"
)

func parse(t *testing.T, name string) *gateway.Config {
	t.Helper()
	path := filepath.Join("testdata", "config", name)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	config, err := gateway.Parse(path, text)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return config
}

func TestLoadingConfig(t *testing.T) {
	config := parse(t, "loading.yaml")
	want := []gateway.Entry{
		{Name: "text.echo", LoadingMode: tools.LoadingAlways},
		{Name: "clock.now", LoadingMode: tools.LoadingDeferred},
	}
	if diff := cmp.Diff(want, config.Tools.Entries); diff != "" {
		t.Error(diff)
	}
	builtIn := []string{"tool_search", "tool_get", "artifact_fetch", "clock.now", "text.echo"}
	if diff := cmp.Diff(builtIn, config.Tools.BuiltIn); diff != "" {
		t.Error(diff)
	}
}

func TestPolicyConfig(t *testing.T) {
	servers := parse(t, "policies.yaml").Tools.MCPServers
	want := []gateway.MCPServer{{
		Name:          "videos",
		TransportMode: "streamable_http",
		URL:           "https://videos.example/mcp",
		Policy: &gateway.Policy{
			MaxAttempts: 3,
			TimeoutMS:   10000,
			RetryOn:     []tools.ErrorClass{tools.ErrClassTransient, tools.ErrClassTimeout, tools.ErrClass5xx},
		},
		ToolPolicies: map[string]gateway.Policy{
			"get_metadata": {MaxAttempts: 1, TimeoutMS: 60000},
			"search":       {MaxAttempts: 6},
		},
	}}
	if diff := cmp.Diff(want, servers); diff != "" {
		t.Error(diff)
	}
}

func TestPartialPolicyConfig(t *testing.T) {
	config := parse(t, "partial_policy.yaml")
	if got := config.Tools.MCPServers[0].Policy; got.TimeoutMS != 5000 || got.MaxAttempts != 0 || got.RetryOn != nil {
		t.Errorf("policy = %+v, want the time limit alone", got)
	}
	if config.Artifacts.HeavyOutputThresholdBytes != 32768 {
		t.Errorf("threshold = %d", config.Artifacts.HeavyOutputThresholdBytes)
	}
	if parallel := config.Planner.ParallelToolCalls; parallel == nil || *parallel {
		t.Error("parallel_tool_calls: false was not read")
	}
}
