package artifacts_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/toolcrib/toolcrib/examples/artifacts"
)

func Example() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "artifacts")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	agent, shut, err := artifacts.Open(ctx, folder)
	if err != nil {
		panic(err)
	}
	defer shut()

	log, err := agent.Call(ctx, "logs.read", `{"service":"billing"}`)
	if err != nil {
		panic(err)
	}
	shown := strings.Split(log.Text(), "\n")
	kept := log.Artifacts[0]
	fmt.Println(shown[0])
	fmt.Println(kept.MIME, kept.SizeBytes, "bytes are kept, and", len(log.Text()) < 5000, "that little is shown")

	found, err := agent.Call(ctx, "artifact_fetch", `{"ref":"`+kept.Ref+`","search":"memory"}`)
	if err != nil {
		panic(err)
	}
	fmt.Println(strings.ReplaceAll(string(found.Structured), kept.Ref, "REF"))
	// Output:
	// billing: request 1 served
	// text/plain; charset=utf-8 85916 bytes are kept, and true that little is shown
	// {"ref":"REF","mime":"text/plain; charset=utf-8","size_bytes":85916,"content":"3001:billing: out of memory","truncated":false,"matches":1}
}
