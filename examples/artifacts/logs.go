// Package artifacts shows how an agent keeps results that are too large for its
// model, and lets the model read parts of them.
package artifacts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"gocloud.dev/blob/fileblob"

	"github.com/toolcrib/toolcrib/artifacts"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/store/sqlstore"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
)

// Agent calls tools for one user.
type Agent struct {
	catalog tools.ToolCatalog
	kept    *artifacts.Store
	bounder *artifacts.Bounder
	who     identity.Identity
}

// Open makes an agent that keeps large results in a folder.
func Open(ctx context.Context, folder string) (*Agent, func() error, error) {
	records, err := sqlstore.Open(ctx, filepath.Join(folder, "toolcrib.db"), nil)
	if err != nil {
		return nil, nil, err
	}
	bucket, err := fileblob.OpenBucket(filepath.Join(folder, "artifacts"), &fileblob.Options{
		CreateDir: true, NoTempDir: true, DirFileMode: 0o700, Metadata: fileblob.MetadataDontWrite})
	if err != nil {
		return nil, records.Close, err
	}
	kept := artifacts.New(bucket, records, nil)
	a := &Agent{catalog: tools.NewCatalog(), kept: kept, bounder: kept.Bounder(nil), who: identity.Identity{TenantID: "acme", UserID: "ada", SessionID: "s1"}}
	shut := func() error { return errors.Join(bucket.Close(), records.Close()) }
	return a, shut, errors.Join(
		inproc.RegisterFunc(a.catalog, "logs.read", readLog, tools.WithDescription("Read the log of a service."), tools.WithSideEffect(tools.SideEffectRead)),
		inproc.RegisterFunc(a.catalog, artifacts.FetchTool, kept.Fetch, tools.WithDescription("Read a part of a result that was kept as an artifact."),
			tools.WithSideEffect(tools.SideEffectRead)),
	)
}

// Call calls a tool and returns what the model is to see.
func (a *Agent) Call(ctx context.Context, name, args string) (tools.ToolResult, error) {
	ctx = identity.With(ctx, a.who)
	tool, ok := a.catalog.Resolve(name)
	if !ok {
		return tools.ToolResult{}, tools.ErrToolNotFound
	}
	res, err := tool.Invoke(tools.WithEntrance(ctx, tools.Entrance{Sink: a.bounder}), json.RawMessage(args))
	if err != nil {
		return tools.ToolResult{}, err
	}
	return a.bounder.Bound(ctx, &tool.Tool, res)
}

type logArgs struct {
	Service string `json:"service" jsonschema:"the service whose log is wanted"`
}

func readLog(_ context.Context, args logArgs) (tools.ToolResult, error) {
	var log strings.Builder
	for i := 1; i <= 3000; i++ {
		fmt.Fprintf(&log, "%s: request %d served\n", args.Service, i)
	}
	log.WriteString(args.Service + ": out of memory\n")
	return tools.ToolResult{Content: []tools.Content{tools.TextContent(log.String())}}, nil
}
