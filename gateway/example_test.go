package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/tools"
)

func ExampleOpen() {
	cfg, err := gateway.Parse("toolcrib.yaml", []byte(`
tools:
  built_in: [text.echo]
  entries:
    - name: text.echo
      tags: [demo]
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	g, err := gateway.Open(ctx, cfg, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer g.Close(ctx)
	res, err := tools.Invoke(g.LocalContext(ctx), g.Catalog(), "text.echo", json.RawMessage(`{"text":"hello"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := res.JSON()
	fmt.Println(string(out), err)
	// Output: {"text":"hello"} <nil>
}

func ExampleParse() {
	_, err := gateway.Parse("toolcrib.yaml", []byte(`
tools:
  built_in: [clock.now]
  mcp_server:
    - name: files
`))
	fmt.Println(err)
	// Output: toolcrib.yaml:4:3: tools.mcp_server: unknown key; expected mcp_servers
}
