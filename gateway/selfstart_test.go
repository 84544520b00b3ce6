package gateway_test

import (
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/gateway"
)

func TestAConfigurationDoesNotStartItself(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "other.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for command, itself := range map[string]bool{
		"[" + self + ", mcp]":                     true,
		"[./link, mcp, --log-level, info]":        true,
		"[./link, serve, -c, toolcrib.yaml]":      true,
		"[./link, mcp, --config=./toolcrib.yaml]": true,
		"[./link, mcp, -c, other.yaml]":           false,
		"[./link, demo]":                          false,
		"[toolcrib-that-is-not-there, mcp]":       false,
		"[sh, -c, 'exit 0']":                      false,
	} {
		file := filepath.Join(dir, "toolcrib.yaml")
		if err := os.WriteFile(file, []byte("tools: {mcp_servers: [{name: me, command: "+command+"}]}"), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := gateway.Load(file)
		if err == nil {
			err = cfg.Validate()
		}
		var faults gateway.ConfigErrors
		if found := errors.As(err, &faults) && strings.Contains(err.Error(), "starts this program with this configuration"); found != itself {
			t.Errorf("%s: %v", command, err)
		}
	}
}

// A gateway that is a source of its own refuses itself.
func TestAGatewayIsNoSourceOfItsOwn(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	t.Cleanup(server.Close) // after the gateway, whose streams it would wait for
	url := "http://" + server.Listener.Addr().String() + "/mcp"
	g := openFor(t, "tools: {built_in: [text.echo], mcp_servers: [{name: me, url: '"+url+"'}]}")
	server.Config.Handler = g.Handler()
	server.Start()
	await(t, g, func() bool {
		state := g.Sources()[0]
		return state.State != gateway.SourceReady && strings.Contains(state.Error, "is this program itself")
	})
	if _, found := g.Catalog().Resolve("me_text.echo"); found {
		t.Error("its own tool is there twice")
	}
}
