// Providers declares one tool to each model provider and prints what each of them
// is shown, and what of the tool's schema it does not enforce.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/toolcrib/toolcrib/adapter"
	"github.com/toolcrib/toolcrib/tools"
)

// label is a tool whose schema no two providers take as it is.
var label = tools.Tool{
	Name:        "issues.label",
	Description: "Put labels on an issue.",
	ArgsSchema: json.RawMessage(`{
		"type": "object",
		"properties": {
			"number": {"type": "integer", "minimum": 1},
			"labels": {"type": "object", "additionalProperties": {"type": "string"}},
			"$reason": {"type": "string", "maxLength": 80}
		},
		"required": ["number", "labels"]
	}`),
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(out io.Writer) error {
	for _, provider := range adapter.Providers() {
		a, err := adapter.New(provider, &adapter.Options{Strict: true})
		if err != nil {
			return err
		}
		declared := a.Declare([]tools.Tool{label})
		fmt.Fprintf(out, "%s: %s\n", a.Name(), declared.JSON())
		for _, loss := range declared.Losses {
			fmt.Fprintln(out, "  not enforced:", loss)
		}
		for _, left := range declared.Quarantined {
			fmt.Fprintln(out, "  left out:", left.Tool, left.Reason)
		}
	}
	return nil
}
