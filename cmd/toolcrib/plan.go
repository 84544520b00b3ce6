package main

import (
	"context"
	"log/slog"

	"github.com/toolcrib/toolcrib/gateway"
)

// plan is what serve and mcp are to open.
type plan struct {
	config *gateway.Config
	demo   bool
}

// makePlan reads the named configuration, or the default one, or plans the
// demonstration when there is neither.
func makePlan(file string) (*plan, error) {
	if file == "" && haveDefaultConfig() {
		file = defaultConfig
	}
	cfg, err := gateway.Load(file)
	return &plan{config: cfg}, err
}

func (p *plan) open(ctx context.Context, logger *slog.Logger, data string) (*gateway.Gateway, error) {
	return gateway.Open(ctx, p.config, &gateway.Options{Logger: logger, DataDir: data, Version: buildVersion()})
}
