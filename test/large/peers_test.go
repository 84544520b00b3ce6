//go:build peers

package large

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/toolcrib/toolcrib/internal/peertest"
)

// The same with a server that is not made of Go, and knows nothing of this module.
func TestLargeResultsOfTypeScriptServers(t *testing.T) {
	skipWhereUnmeasured(t)
	program, err := filepath.Abs("testdata/server.cjs")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("stdio", func(t *testing.T) {
		measure(t, fmt.Sprintf("command: [%q, %q], env: {%s: %q}", peertest.Node(t), program, peertest.PeersEnv, peertest.PeersDir(t)))
	})
	for _, mode := range []string{"http", "json"} {
		t.Run(mode, func(t *testing.T) {
			cmd := exec.Command(peertest.Node(t), program, mode)
			cmd.Env = append(os.Environ(), peertest.PeersEnv+"="+peertest.PeersDir(t))
			url := peertest.Start(t, cmd).Line(t, `^listening on (http://\S+)`)[1]
			measure(t, "url: "+url)
		})
	}
}
