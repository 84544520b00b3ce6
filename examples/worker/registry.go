package main

import (
	"context"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/tools"
)

// reach puts the tools of workers into a catalog without a gateway. Only workers
// that hold the key may serve the toolset post, whose tools only acme sees.
func reach(ctx context.Context, cat tools.LiveCatalog, client stream.Client, records store.Records, key []byte) (*registry.Registry, error) {
	reg, err := registry.New(ctx, client, records, &registry.Options{Admit: registry.AdmitKeys(map[string]registry.KeyGrant{
		"post": {Key: key, Grant: registry.Grant{Tenants: []string{"acme"}}},
	})})
	if err != nil {
		return nil, err
	}
	source := reg.Source()
	source.OnChange(func() {
		if list, err := source.Discover(ctx); err == nil {
			cat.SwapSource(registry.SourceID, list)
		}
	})
	return reg, source.Connect(ctx)
}
