package tools_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"

	"github.com/toolcrib/toolcrib/schema/schematest"
	"github.com/toolcrib/toolcrib/tools"
)

// TestSchemaSuiteThroughTheDoor holds the validation of arguments and results
// to the standard suite. Arguments that are null mean no arguments, so such
// documents are tried as results alone.
func TestSchemaSuiteThroughTheDoor(t *testing.T) {
	schematest.Suite(t, func(t *testing.T, c schematest.Case) bool {
		cat := newCatalog(t, []tools.CatalogOption{tools.WithSchemaResources(c.Resources), tools.WithLogger(slog.New(slog.DiscardHandler))},
			tools.ToolDescriptor{Tool: tools.Tool{Name: "in", ArgsSchema: c.Schema}, Invoke: returning(tools.ToolResult{}, nil)},
			tools.ToolDescriptor{Tool: tools.Tool{Name: "out", OutSchema: c.Schema}, Invoke: returning(tools.ToolResult{Structured: c.Doc}, nil)})
		_, err := tools.Invoke(context.Background(), cat, "out", nil)
		if err != nil && !errors.Is(err, tools.ErrToolInvalidOutput) {
			t.Fatal(err)
		}
		if bytes.Equal(bytes.TrimSpace(c.Doc), []byte("null")) {
			return err == nil
		}
		_, inErr := tools.Invoke(context.Background(), cat, "in", json.RawMessage(c.Doc))
		if inErr != nil && !errors.Is(inErr, tools.ErrToolInvalidArgs) {
			t.Fatal(inErr)
		}
		if (inErr == nil) != (err == nil) {
			t.Errorf("as arguments %v, as result %v", inErr, err)
		}
		return inErr == nil
	})
}
