package builtin

import (
	"context"

	"github.com/toolcrib/toolcrib/artifacts"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
)

// FetchName is the tool that reads parts of large results.
const FetchName = artifacts.FetchTool

// RegisterFetch adds artifact_fetch to a catalog: callers read with it what they
// keep in a store of artifacts. A ref that is not theirs is an answer with an
// error in it, like one that never was. Options may say more.
func RegisterFetch(cat tools.ToolCatalog, kept *artifacts.Store, opts ...tools.DescriptorOption) error {
	opts = append([]tools.DescriptorOption{
		tools.WithDescription("Read a part of a large result by its ref: from an offset, by lines, by search, or, of JSON, by a jq query."),
		tools.WithSideEffect(tools.SideEffectRead),
		tools.WithLoading(tools.LoadingAlways),
		tools.WithCategory("artifacts"),
	}, opts...)
	return inproc.RegisterFunc(cat, FetchName, func(ctx context.Context, in artifacts.FetchArgs) (artifacts.FetchResult, error) {
		return kept.Fetch(ctx, in)
	}, opts...)
}
